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
    assert audit.histograms.everyone.sum() - audit.shown.histograms.everyone.sum() == 1
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
