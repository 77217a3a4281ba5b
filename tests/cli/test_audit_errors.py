"""``fairtransport audit`` with labels: limits on error rates, the reference group and the direction of the scores."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

QUICK = ("--n-bootstrap", 40, "--n-permutations", 40)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    race = rng.choice(["B", "W"], 1500)
    scores = np.round(rng.beta(2, 3, 1500), 4)
    labels = rng.random(1500) < np.where(race == "B", scores**2, scores)  # the scores of B are too high
    return pl.DataFrame({"s": scores, "race": race, "y": labels.astype(int)})


@pytest.fixture
def here(here, table):
    table.write_csv("scores.csv")
    return here


def call(run, *arguments):
    return run("audit", "scores.csv", "--score", "s", "--sensitive", "race", *QUICK, *arguments)


@pytest.mark.parametrize(
    ("limit", "status"), [("positive_predictive_value=.1", 2), ("ppv=.9", 0), ("ece=.05", 2), ("ece=.5", 0)]
)
def test_a_limit_on_errors_sets_the_exit_status(run, here, limit, status):
    result = call(run, "--label", "y", "--fail-above", limit)
    assert result.exit_code == status, result.output
    assert ("limit exceeded" in result.stderr) == (status == 2)


def test_limits_refer_to_the_worst_threshold_and_to_the_largest_difference(run, here):
    limits = (f"--fail-above={name}=0" for name in ("tpr", "fpr", "fnr", "npv", "acc", "eo", "eop"))
    result = call(run, "--label y --threshold .3 --threshold .6 --json -", *limits)
    audit = json.loads(result.stdout)
    lines = dict(line.removeprefix("limit exceeded: ").split(" is ") for line in result.stderr.splitlines())
    expected = {
        "acc": max(at["gaps"]["accuracy"]["difference"]["corrected"] for at in audit["error_rates"]),
        "eo": max(at["equalized_odds"]["corrected"] for at in audit["error_rates"]),
    }
    for name, value in expected.items():
        assert lines[name].startswith(f"{value:.4g} (")


def test_surely_needs_the_whole_interval(run, here):
    result = call(run, "--label", "y", "--json", "-")
    gap = json.loads(result.stdout)["error_rates"][0]["gaps"]["positive_predictive_value"]["difference"]
    bound = (gap["low"] + gap["corrected"]) / 2
    assert call(run, "--label", "y", "--fail-above", f"ppv={bound}").exit_code == 2
    assert call(run, "--label", "y", "--fail-above", f"ppv={bound}", "--surely").exit_code == 0
    assert call(run, "--label", "y", "--fail-above", f"ppv={gap['low'] / 2}", "--surely").exit_code == 2


def test_a_limit_that_cannot_be_judged_is_an_error_and_no_success(run, here, table):
    table.with_columns(y=pl.lit(0)).write_csv("scores.csv")
    result = call(run, "--label", "y", "--fail-above", "tpr=.1")
    assert result.exit_code == 1
    assert "A limit on tpr cannot be judged" in result.stderr


def test_direction_and_reference(run, here):
    result = call(run, "--label", "y", "--favourable", "low", "--reference", "W", "--json", "-")
    audit = json.loads(result.stdout)
    assert audit["settings"]["favourable"] == "low"
    assert audit["error_rates"][0]["reference"] == "W"
