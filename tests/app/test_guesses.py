"""Guesses about columns have a reason, and identifiers, leaks and proxies are warned of."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score
from tests.workbench import people

import fairtransport as ft
from fairtransport.app import TEXTS
from fairtransport.app.server import find_warnings
from fairtransport.app.worker import find_tells
from fairtransport.tabular import describe_columns, guess_roles
from fairtransport.tabular.proxies import tell_apart


def warn(columns, table, roles):
    return find_warnings(columns, find_tells(columns, table, roles), roles)


def test_roles_and_warnings_of_a_table_of_applicants():
    table = people().to_arrow()
    columns = describe_columns(table)
    roles, why = guess_roles(columns)
    assert (roles["score"], roles["label"], roles["pos_label"]) == ("score", "hired", "yes")
    assert roles["sensitive"] == ["sex"]
    assert roles["drop"] == ["person"]
    assert all(f"why_{reason}" in TEXTS for reason in why.values())
    found = warn(columns, table, roles)
    assert [text.split()[0].strip(":") for text in found] == ["person", "salary", "title"]
    tells = find_tells(columns, table, roles)  # once for all roles that a person may choose later
    found = find_warnings(columns, tells, {**roles, "label": "region", "sensitive": ["title"]})
    assert [text.split()[0].strip(":") for text in found] == ["person", "sex"]


@pytest.mark.parametrize("risk", [False, True], ids=["credit", "risk"])
def test_the_positive_label_is_that_of_the_higher_scores_where_its_name_does_not_say_so(risk):
    rng = np.random.default_rng(0)
    bad = rng.random(500) < 0.3
    score = np.where(rng.random(500) < 0.02, np.nan, rng.normal(50 + 20 * (bad == risk), 15))
    table = pa.table({"score": score, "outcome": np.where(bad, "bad", "good")})
    columns = describe_columns(table)
    roles, why = guess_roles(columns, table)
    assert (roles["pos_label"], why["pos_label"]) == ("bad" if risk else "good", "positive_high")
    assert guess_roles(columns)[0]["pos_label"] == "bad"  # the rarer of the two


def test_areas_are_those_of_scikit_learn_for_shares_of_the_other_half_and_a_half_for_noise():
    rng = np.random.default_rng(0)
    noise, values = rng.integers(50, size=4000), rng.integers(3, size=4000)
    values[:40] = 3  # few members, of whom 50 codes could tell much in the same rows
    assert np.abs(tell_apart(noise, values) - 0.5).max() < 0.1
    assert tell_apart(values, values) == pytest.approx(np.ones(4))
    column = np.where(rng.random(4000) < 0.4, values, noise % 7)
    halves = np.random.default_rng([2, 4000]).integers(2, size=4000)
    shares = np.zeros(4000)
    for half in (0, 1):
        fitted = halves != half
        rows = np.bincount(column[fitted], minlength=7) + 1
        members = np.bincount(column[fitted & (values == 1)], minlength=7) + (values == 1).mean()
        shares[~fitted] = (members / rows)[column[~fitted]]
    assert tell_apart(column, values)[1] == pytest.approx(roc_auc_score(values == 1, shares))


def test_values_of_few_rows_and_missing_ones_are_not_judged():
    values = np.repeat([0, 1, -1], [500, 20, 100])
    assert tell_apart(values + 1, values).tolist() == [0.5, 0.5]


def test_the_proxies_of_adult_are_named_and_others_are_not():
    data = ft.datasets.load_adult()
    table = pa.Table.from_pandas(data.data.assign(**data.sensitive_features, income=data.target), preserve_index=False)
    columns = describe_columns(table)
    roles = {"score": "", "label": "income", "sensitive": ["race", "sex"], "drop": []}
    found = [text.split()[0] for text in warn(columns, table, roles) if "in place of the group" in text]
    assert found == ["native_country", "relationship"]  # of Asian people, whom it tells by their country; and of sex


def test_a_leak_of_a_number_is_one_that_tells_who_is_above_the_middle():
    rng = np.random.default_rng(0)
    pay = rng.normal(3000, 500, 2000).round(2)
    table = pa.table({"pay": pay, "net": pay * 0.7, "hours": pay / 100 + rng.normal(0, 5, 2000)})
    roles = {"score": "", "label": "pay", "sensitive": [], "drop": []}
    (text,) = warn(describe_columns(table), table, roles)
    assert text.startswith("net alone tells people with “pay: up to ")


def test_an_empty_column_and_a_table_without_features_are_described():
    table = people(60).select("person").to_arrow().append_column("empty", [[None] * 60])
    columns = describe_columns(table)
    assert [one["missing"] for one in columns] == [0, 60]
    assert guess_roles(columns)[0]["score"] == ""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["sex", "personal_status_sex", "age_group"], ["sex", "age_group"]),  # names that say it and nothing else
        (["Sex, at birth", "hours worked", "sexton"], ["Sex, at birth"]),
        (["applicant_gender", "trace"], ["applicant_gender"]),
        (["town", "shift"], []),
    ],
)
def test_sensitive_columns_are_guessed_from_names_that_contain_the_word_where_none_is_the_word(names, expected):
    columns = describe_columns(pa.table({name: ["a", "b", "c"] * 20 for name in names}))
    roles, why = guess_roles(columns)
    assert roles["sensitive"] == expected
    assert why["sensitive"] == ("sensitive" if expected else "none")
