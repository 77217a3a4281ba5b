"""A group of one person is listed with its number of rows, and with nothing from which its score could be read."""

import json
import re

import numpy as np
import polars as pl
import pytest

import fairtransport as ft
from fairtransport.auditing.tables import EMPTY, WITHHELD

SCORE = 0.7310529
OPTIONS = "--score s --sensitive sex --n-bootstrap 20 --n-permutations 20"


@pytest.fixture
def here(here):
    rng = np.random.default_rng(0)
    sex = np.array(["F"] * 120 + ["M"] * 119 + ["X"])
    scores = rng.beta(2, 3, sex.size).round(3)
    labels = (rng.random(sex.size) < scores).astype(int)
    outcome = (scores + rng.normal(0, 0.1, sex.size)).round(3)
    for name, values in {"probabilities": scores, "logits": (4 * scores - 2).round(3)}.items():
        values[-1] = SCORE
        table = {"s": values, "sex": sex, "y": labels, "wage": outcome, "other": np.resize(["p", "q"], sex.size)}
        pl.DataFrame(table).write_csv(f"{name}.csv")
    return here


def places_of_score(text):
    """Return where the score stands, with all its digits or rounded."""
    return re.findall(r".{0,40}\b0?\.(?:73105\d*|7311|731)\b.{0,40}", text)


@pytest.mark.parametrize("labels", ["", "--label y", "--label wage --task regression", "--label y --strata other"])
@pytest.mark.parametrize("name", ["probabilities", "logits"])
def test_no_output_has_the_score_of_a_group_of_one(run, here, name, labels):
    outputs = "--json audit.json --html page.html --markdown audit.md"
    result = run(f"audit {name}.csv {OPTIONS} {labels} {outputs}")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    texts = [result.stdout, *((here / file).read_text() for file in ("audit.json", "page.html", "audit.md"))]
    for text in texts:
        assert not places_of_score(text)
    line = next(line for line in result.stdout.splitlines() if line.startswith("X "))
    assert re.fullmatch(rf"X\s+1(\s+{EMPTY})+ \?", line)
    assert WITHHELD in " ".join(result.stdout.split())
    stored = json.loads(texts[1])
    group = stored["groups"][2]
    assert (group["name"], group["rows"], group["mean"], set(group["quantiles"])) == ("X", 1, None, {None})
    histograms = ft.Audit.from_json(texts[1]).histograms
    assert histograms.group_rows.tolist() == [120, 119, 1]
    assert histograms.weights.tolist() == [120, 119, 0]
    assert SCORE not in histograms.grid.positions
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', texts[2], re.DOTALL)[1])
    assert sum(sum(masses) for masses in data["audits"][0]["groups"][2]["masses"]) == 0
    assert [group["withheld"] for group in data["groups"]] == [False, False, True]
    assert str(ft.Audit.from_json(texts[1])) == result.stdout.split("\nPage")[0].rstrip("\n")


def test_comparisons_and_series_withhold_it(run, here):
    scored = "--scores s,t --sensitive sex --json compared.json --html page.html"
    pl.read_csv("probabilities.csv").with_columns(t=pl.col("wage").clip(0, 1)).write_csv("other.csv")
    result = run("compare", "probabilities.csv", "other.csv", scored)
    assert result.exit_code == 0, result.output
    series = run(f"audit probabilities.csv {OPTIONS} --by other --json series.json --html series.html")
    assert series.exit_code == 0, series.output
    files = [(here / name).read_text() for name in ("compared.json", "page.html", "series.json", "series.html")]
    for text in (result.stdout, series.stdout, *files):
        assert not places_of_score(text)
    assert WITHHELD in " ".join(result.stdout.split())


def test_overlapping_groups_lose_the_rows_of_the_small_one_only():
    rng = np.random.default_rng(0)
    columns = {"sex": np.array(["F", "M"] * 100), "race": np.array(["a"] * 99 + ["b"] * 100 + ["c"])}
    scores = rng.random(200)
    audit = ft.audit(scores, sensitive_features=columns, groups=ft.GroupPolicy(crossed=False))
    assert [group.withheld for group in audit.groups].count(True) == 1
    assert (audit.rows, audit.histograms.everyone.sum()) == (200, 199)
    assert np.isnan(audit.shown.cdf([0.5])).ravel().tolist() == [group.withheld for group in audit.groups]
    ft.Audit.from_json(audit.to_json()).to_html()


def test_the_audit_in_memory_keeps_the_figures():
    audit = ft.audit([0.25, 0.5, 0.75], sensitive_features=["a", "b", "b"])
    assert audit.groups[0].mean == 0.25
    assert np.isnan(audit.shown.groups[0].mean)
    assert audit.shown.shown is audit.shown or str(audit.shown.shown) == str(audit.shown)
    assert "25.0%" not in audit.to_html()


@pytest.mark.parametrize("figure", ["error_rates", "separation", "thresholds"])
def test_differences_that_the_small_group_decides_are_withheld(figure):
    """With one group that can be judged, all are compared, so that the extremes are those of the small one."""
    scores = np.r_[np.linspace(0, 0.4, 100), 0.7310529, 0.7310528]
    labels = np.r_[np.arange(100) % 2, 0, 1]
    stored = ft.audit(scores, labels, sensitive_features=["a"] * 100 + ["b"] * 2).to_dict()
    assert "0.731" not in json.dumps(stored[figure])
    assert stored["thresholds"][0]["ratio"]["value"] is None
    assert stored["error_rates"][0]["equalized_odds"] is None
    assert stored["separation"]["equalized_odds"] is None


def test_the_page_of_a_pool_of_few_people():
    groups = np.repeat(["many", "others", "one", "two"], [60, 40, 1, 1])
    scores = np.random.default_rng(0).random(groups.size).round(2)
    scores[-2:] = SCORE
    audit = ft.audit(scores, sensitive_features=groups, groups=ft.GroupPolicy(small="pool", min_size=30))
    assert audit.groups[-1].rows == 2
    assert not places_of_score(audit.to_html())


# Nothing that is written may depend on the score or the label of a person who is a group of one.

INFERENCE = ft.auditing.Inference(n_bootstrap=20, n_permutations=20)
TABLES = (
    "groups metrics thresholds rates pairs strata separation error_rates calibration reliability cross_auc residuals"
)


def people(score, label, n_men=119):
    """Return columns in which one person is a group, with this score and label."""
    sex = np.array(["F"] * 120 + ["M"] * n_men + ["X"])
    rng = np.random.default_rng(0)
    scores = rng.beta(2, 3, sex.size).round(3)
    labels = (rng.random(sex.size) < scores).astype(int)
    scores[-1], labels[-1] = score, label
    return {"s": scores, "sex": sex, "y": labels, "race": np.resize(["a", "b"], sex.size)}


def outputs(result):
    """Return all that is written of an audit, a series or a comparison, but for the date."""
    written = [str(result), result.to_json(), result.to_html()]
    if isinstance(result, ft.Audit):
        written += [result.to_markdown(), *(result.to_frame(table).to_csv() for table in TABLES.split())]
    else:
        written.append(result.to_frame().to_csv())
    return [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "", text) for text in written]


def audit_rows(scores, sensitive, labels=None, **options):
    return ft.audit(scores, labels, sensitive_features=sensitive, inference=INFERENCE, **options)


MAKERS = {
    "probabilities": lambda p: audit_rows(p["s"], p["sex"], p["y"]),
    "without bounds": lambda p: audit_rows(9 * p["s"] - 3, p["sex"], p["y"]),
    "within labels and strata": lambda p: audit_rows(
        p["s"], p["sex"], p["y"], criterion="equalized_odds", strata=p["race"]
    ),
    "regression": lambda p: audit_rows(9 * p["s"] - 3, p["sex"], 4.5 * p["y"] + p["s"], task="regression"),
    "weights": lambda p: audit_rows(p["s"], p["sex"], p["y"], sample_weight=np.linspace(1, 2, p["s"].size)),
    "overlapping groups": lambda p: audit_rows(
        p["s"], {"sex": p["sex"], "race": p["race"]}, p["y"], groups=ft.GroupPolicy(crossed=False)
    ),
    "histograms": lambda p: ft.audit_table(
        pl.DataFrame(p), score="s", sensitive_features="sex", label="y", strata="race", inference=INFERENCE
    ),
    "histograms without bounds": lambda p: ft.audit_table(
        pl.DataFrame(p).with_columns(s=9 * pl.col("s") - 3), score="s", sensitive_features="sex", inference=INFERENCE
    ),
    "series": lambda p: ft.audit_table(
        pl.DataFrame(p).with_columns(
            sex=pl.when(pl.int_range(pl.len()) >= 220).then(pl.lit("X")).otherwise("sex"),
            month=pl.when((pl.int_range(pl.len()) % 2 == 0) & (pl.int_range(pl.len()) < 220) | (pl.col("sex") == "X"))
            .then(pl.lit("2024-01-01"))
            .otherwise(pl.lit("2024-02-01")),
        ),
        score="s",
        sensitive_features="sex",
        label="y",
        by="month",
        inference=INFERENCE,
    ),
    "comparison": lambda p: ft.compare(
        audit_rows(p["s"], p["sex"], p["y"]), audit_rows(np.sqrt(p["s"]), p["sex"], p["y"])
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_no_output_depends_on_the_score_or_label_of_a_group_of_one(name):
    one, other = (outputs(MAKERS[name](people(*person))) for person in ((0.731, 1), (0.004, 0)))
    assert one == other


def test_means_over_all_groups_are_left_out():
    columns = people(0.731, 1)
    audit = audit_rows(columns["s"], columns["sex"])
    assert audit.metrics_all_groups == {} == ft.Audit.from_json(audit.to_json()).metrics_all_groups
    assert "Means over all" not in str(audit)


def test_with_one_other_group_nothing_is_said_about_both_or_about_everyone():
    columns = people(0.731, 1, n_men=0)
    audit = audit_rows(columns["s"], columns["sex"], columns["y"])
    stored = audit.to_dict()
    assert {reading["value"] for reading in stored["readings"].values()} == {None}
    assert (stored["thresholds"][0]["overall"], stored["thresholds"][0]["ratios"]) == (None, [None, None])
    assert (stored["auc"], stored["metrics_all_groups"]) == (None, {})
    assert "nan" not in str(audit)
    assert str(ft.Audit.from_json(audit.to_json())) == str(audit)
    audit.to_html()


def test_a_group_of_one_is_no_target():
    columns = people(0.731, 1)
    with pytest.raises(ValueError, match="fewer than 5 rows"):
        audit_rows(columns["s"], columns["sex"], target="X")
