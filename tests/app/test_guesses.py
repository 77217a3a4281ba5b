"""Guesses about columns have a reason, and identifiers, leaks and proxies are warned of."""

import numpy as np
from tests.workbench import people

from fairtransport.app.guesses import _information, describe_columns, find_warnings, guess_roles


def test_roles_and_warnings_of_a_table_of_applicants():
    table = people().to_arrow()
    columns = describe_columns(table)
    roles, why = guess_roles(columns, table)
    assert (roles["score"], roles["label"], roles["pos_label"]) == ("score", "hired", "yes")
    assert roles["sensitive"] == ["sex"]
    assert roles["drop"] == ["person"]
    assert all(why.values())
    found = find_warnings(columns, table, roles)
    assert [text.split()[0].strip(":") for text in found] == ["person", "salary", "title"]


def test_information_is_that_of_the_definition_and_none_for_noise():
    rng = np.random.default_rng(0)
    noise, target = rng.integers(50, size=4000), rng.integers(2, size=4000)
    assert abs(_information(noise, target)) < 0.01  # 0.009 before the correction for bias
    assert _information(target, target) > 0.999
    half = np.where(rng.random(4000) < 0.5, target, 2)  # half of the rows tell all
    assert abs(_information(half, target) - 0.5) < 0.03


def test_an_empty_column_and_a_table_without_features_are_described():
    table = people(60).select("person").to_arrow().append_column("empty", [[None] * 60])
    columns = describe_columns(table)
    assert [one["missing"] for one in columns] == [0, 60]
    assert guess_roles(columns, table)[0]["score"] == ""
