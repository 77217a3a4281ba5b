"""``fairtransport audit``: what is printed, written and returned, and what is refused in one line."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.worlds import score_table

import fairtransport as ft
from fairtransport._text import plain
from fairtransport.auditing import Inference

QUICK = "--n-bootstrap 20 --n-permutations 20"
FEW = Inference(n_bootstrap=20, n_permutations=20, random_state=0)
TABLE = score_table()


@pytest.fixture
def here(here):
    """A folder with a table in several files."""
    TABLE.write_csv("scores.csv")
    TABLE.write_parquet("scores.parquet")
    return here


def call(run, *arguments, files=("scores.csv",), score="s", sensitive="race", **options):
    return run("audit", *files, "--score", score, "--sensitive", sensitive, QUICK, *arguments, **options)


def test_output_has_the_metrics_their_intervals_and_a_verdict(run, here):
    few = "--n-bootstrap 99 --n-permutations 99"
    result = call(run, f"--label y --strata region --threshold .25 --threshold .5 {few}")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    options = {"label": "y", "strata": "region", "thresholds": [0.25, 0.5]}
    many = Inference(n_bootstrap=99, n_permutations=99, random_state=0)
    expected = ft.audit_table(TABLE, score="s", sensitive_features="race", inference=many, **options)
    assert result.stdout.startswith(str(expected))
    assert plain(expected.verdict.sentence) in " ".join(result.stdout.split())
    assert "; positive label: 1\n" in result.stdout
    assert "Among people in the same stratum (region), the two groups are scored" in result.stdout


def test_the_criterion_has_its_limits_and_needs_labels(run, here):
    result = call(run, "--label y --criterion equalized_odds --fail-above separation=0 --surely")
    assert result.exit_code == 2
    assert "limit exceeded: separation is " in result.stderr
    assert "Among people with the same outcome, the two groups" in result.stdout


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "sco*.parquet"])
def test_json_on_standard_output_is_the_audit_and_nothing_else(run, here, name):
    result = call(run, "--json", "-", "--weight", "w", files=[name], sensitive="race,sex")
    assert (result.exit_code, result.stderr) == (0, "")
    groups = ["race", "sex"]
    expected = ft.audit_table(TABLE, score="s", sensitive_features=groups, weight="w", inference=FEW)
    assert without_provenance(result.stdout) == without_provenance(expected.to_json())


def without_provenance(text):
    content = json.loads(text)
    del content["provenance"]
    return content


def test_json_and_page_are_written_to_files(run, here):
    result = call(run, "--json", "a.json", "--html", "a.html")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert result.stdout.endswith("Page: a.html\nJSON: a.json\n")
    assert Path("a.html").read_text(encoding="utf-8").startswith("<!")
    assert json.loads(Path("a.json").read_text())["rows"] == 600


def test_options_reach_the_audit(run, here):
    frame = TABLE.with_columns(pl.col("s") * 550 + 300, y=pl.col("y").replace_strict({0: "yes", 1: "no"}))
    frame.write_csv("points.csv", separator=";")
    options = "--label y --pos-label no --target 'B, F' --bins 100 --confidence 0.9 --seed 7 --delimiter ';' --json -"
    more = ("--range", "300,850", "--favourable", "low", "--reference", "W, F")
    result = call(run, options, *more, files=["points.csv"], sensitive="race,sex")
    assert result.exit_code == 0, result.output
    options = {"label": "y", "pos_label": "no", "range": (300, 850), "target": "B, F", "n_bins": 100}
    options |= {"favourable": "low", "reference": "W, F"}
    few = Inference(confidence=0.9, n_bootstrap=20, n_permutations=20, random_state=7)
    expected = ft.audit_table(frame, score="s", sensitive_features=["race", "sex"], inference=few, **options)
    assert without_provenance(result.stdout) == without_provenance(expected.to_json())


@pytest.mark.parametrize(
    ("option", "limit", "status"),
    [
        ("--fail-above", "spdd=.05", 2),
        ("--fail-above", "strong_pairwise_disparity=.05", 2),
        ("--fail-above", "spdd=.9", 0),
        ("--fail-above", "sdd=.05", 2),
        ("--fail-above", "wass1=.05", 2),
        ("--fail-above", "err=.1", 2),
        ("--fail-above", "err=.9", 0),
        ("--fail-above", "difference=.05", 2),
        ("--fail-below", "ratio=.8", 2),
        ("--fail-below", "ratio=.01", 0),
    ],
)
def test_a_limit_that_is_exceeded_ends_with_2(run, here, option, limit, status):
    result = call(run, "--label", "y", option, limit)
    assert result.exit_code == status
    assert result.stdout.startswith("Audit of 600 rows")
    name, _, bound = limit.partition("=")
    sign = "<" if option == "--fail-below" else ">"
    message = f"limit exceeded: {name} is "
    assert result.stderr.startswith(message) if status else result.stderr == ""
    assert not status or result.stderr.endswith(f") {sign} {float(bound):g}\n")


def test_every_exceeded_limit_is_reported(run, here):
    result = call(run, "--fail-above", "spdd=.05", "--fail-above", "sdd=.9", "--fail-above", "wass1=.05", "--json", "-")
    assert result.exit_code == 2
    assert [line.split()[2] for line in result.stderr.splitlines()] == ["spdd", "wass1"]
    json.loads(result.stdout)


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1)])
def test_on_a_terminal_it_asks_before_replacing(run, here, monkeypatch, answer, status):
    monkeypatch.setattr("fairtransport.cli._output.can_ask", lambda: True)
    Path("a.json").write_text("old")
    result = call(run, "--json", "a.json", input=f"{answer}\n")
    assert result.exit_code == status, result.output
    assert "a.json exists. Overwrite it?" in result.stderr
    assert (Path("a.json").read_text() == "old") is (status == 1)


def test_without_the_extra_one_line_says_what_to_install(run, here, one_line, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert one_line(call(run)) == 'error: Files of tables need duckdb: pip install "fairtransport[tables]"'


def test_predictions_and_labels_that_are_numbers(run, here):
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 600)
    predicted = np.exp(10 + 0.4 * rng.normal(0.5 * (sex == "M"), 1.0, 600)).round(2)
    wage = (predicted * np.exp(rng.normal(0, 0.2, 600))).round(2)
    pl.DataFrame({"p": predicted, "wage": wage, "sex": sex, "grade": rng.integers(1, 6, 600)}).write_csv("wages.csv")
    command = ["audit wages.csv --score p --sensitive sex --n-bootstrap 50 --n-permutations 50"]
    limited = run(*command, "--label", "wage", "--threshold", "top 20%", "--fail-above", "rank=.05", "--json", "a.json")
    assert limited.exit_code == 2
    assert "limit exceeded: rank is" in limited.stderr
    for text in ("averaged over all shares of people selected", "In the top 20% of predictions", "RMSE", "R²"):
        assert text in " ".join(limited.stdout.split()), text
    audit = ft.Audit.from_json("a.json")
    assert audit.settings.task == "regression"
    assert audit.metrics["rank_disparity"] > 0.05
    assert run(*command, "--label", "grade", "--task", "regression").exit_code == 0
    bounded = run(*command, "--range", "0,1000000", "--fail-above", "ks=.1")
    assert "A limit on ks cannot be judged" in bounded.stderr


@pytest.fixture
def mislabelled(here):
    """Replace the table by one in which the scores of one group are too high."""
    rng = np.random.default_rng(0)
    race, scores = rng.choice(["B", "W"], 1500), np.round(rng.beta(2, 3, 1500), 4)
    labels = rng.random(1500) < np.where(race == "B", scores**2, scores)
    table = pl.DataFrame({"s": scores, "race": race, "y": labels.astype(int)})
    table.write_csv("scores.csv")
    return table


def test_limits_refer_to_the_worst_threshold_and_to_the_largest_difference(run, mislabelled):
    limits = (f"--fail-above={name}=0" for name in ("tpr", "fpr", "fnr", "npv", "acc", "eo", "eop", "ece"))
    result = call(run, "--label y --threshold .3 --threshold .6 --json -", *limits)
    audit = json.loads(result.stdout)
    lines = dict(line.removeprefix("limit exceeded: ").split(" is ") for line in result.stderr.splitlines())
    assert (result.exit_code, len(lines)) == (2, 8)
    expected = {
        "acc": max(at["gaps"]["accuracy"]["difference"]["corrected"] for at in audit["error_rates"]),
        "eo": max(at["equalized_odds"]["corrected"] for at in audit["error_rates"]),
    }
    for name, value in expected.items():
        assert lines[name].startswith(f"{value:.4g} (")


def test_surely_needs_the_whole_interval(run, mislabelled):
    result = call(run, "--label", "y", "--json", "-")
    gap = json.loads(result.stdout)["error_rates"][0]["gaps"]["positive_predictive_value"]["difference"]
    bound = (gap["low"] + gap["corrected"]) / 2
    assert call(run, "--label", "y", "--fail-above", f"ppv={bound}").exit_code == 2
    assert call(run, "--label", "y", "--fail-above", f"ppv={bound}", "--surely").exit_code == 0
    assert call(run, "--label", "y", "--fail-above", f"ppv={gap['low'] / 2}", "--surely").exit_code == 2


def test_a_limit_that_cannot_be_judged_is_an_error_and_no_success(run, mislabelled):
    mislabelled.with_columns(y=pl.lit(0)).write_csv("scores.csv")
    result = call(run, "--label", "y", "--fail-above", "tpr=.1")
    assert result.exit_code == 1
    assert "A limit on tpr cannot be judged" in result.stderr
