"""``fairtransport compare``: audits in JSON, or files of scores."""

import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairtransport as ft
from fairtransport.auditing import Audit


@pytest.fixture
def here(here):
    rng = np.random.default_rng(0)
    race = rng.choice(["B", "W"], 800)
    scores = np.round(rng.beta(2, 3, 800) * (1 - 0.4 * (race == "B")), 5)
    repaired = ft.QuantileRepair().fit_transform(scores, sensitive_features=race)
    pl.DataFrame({"s": scores, "fair": repaired, "race": race, "y": rng.integers(0, 2, 800)}).write_csv("scores.csv")
    return here


def audited(run, column, path, *options):
    result = run("audit", "scores.csv", "--score", column, "--sensitive", "race", "--json", path, *options)
    assert result.exit_code == 0, result.output
    return path


def test_audits_in_files_and_files_of_scores_give_the_same_comparison(run, here):
    paths = [audited(run, "s", "before.json"), audited(run, "fair", "after.json")]
    result = run("compare", *paths, "--html", "change.html", "--json", "change.json")
    assert result.exit_code == 0, result.output
    assert "before.json: 800 rows; after.json: 800 rows" in result.stdout
    assert "Page: change.html" in result.stdout
    pl.read_csv("scores.csv").write_csv("again.csv")
    direct = run("compare", "scores.csv", "again.csv", "--scores", "s,fair", "--sensitive", "race",
                 "--names", "before.json,after.json")  # fmt: skip
    assert direct.stdout.splitlines()[:12] == result.stdout.splitlines()[:12]
    of_one_file = run("compare", "scores.csv", "--scores", "s,fair", "--sensitive", "race")
    assert of_one_file.exit_code == 0, of_one_file.output
    assert "s: 800 rows; fair: 800 rows" in of_one_file.stdout
    change = json.loads(Path("change.json").read_text())["changes"]["strong_pairwise_disparity"]
    assert change["high"] < 0
    assert change["beyond_noise"]


def test_an_audit_names_what_it_is_about(run, here):
    path = audited(run, "s", "audit.json", "--label", "y", "--title", "March", "--seed", 7)
    provenance = Audit.from_json(path).provenance
    assert provenance.title == "March"
    assert [file.name for file in provenance.files] == ["scores.csv"]
    assert provenance.files[0].sha256 == hashlib.sha256(Path("scores.csv").read_bytes()).hexdigest()
    assert provenance.columns == {"score": ("s",), "sensitive_features": ("race",), "label": ("y",)}
    assert (provenance.rows, provenance.positive, provenance.seed) == (800, "1", 7)
    assert "positive label: 1" in run("compare", "audit.json", "audit.json").stdout
    assert provenance.date is not None
    assert provenance.versions["fairtransport"] == ft.__version__


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["scores.csv", "a.json"],
            1,
            "scores.csv is a file of scores; name its columns with --scores and --sensitive.",
        ),
        (["scores.csv", "--scores", "s"], 64, "name two files, or two columns of one: --scores before,after"),
        (["a.json", "--scores", "s,t"], 64, "name two files, or two columns of one: --scores before,after"),
        (["a.json", "none.json"], 1, "none.json"),
        (["a.json", "other.json"], 1, "other.json is not an audit"),
        (["a.json", "later.json"], 1, "later.json has version 9"),
        (["a.json", "groups.json"], 1, "2 and 2 groups, 0 of them in both"),
        (["a.json", "a.json", "--names", "one"], 64, "--names must be two names"),
        (["a.json", "a.json", "--scores", "a,b,c"], 64, "--scores must be one column, or one for each"),
        (["a.json", "a.json", "--html", "a.json"], 1, "a.json is an input"),
    ],
)
def test_bad_input_is_one_line(run, here, arguments, status, message):
    audited(run, "s", "a.json")
    run("audit", "scores.csv", "--score", "s", "--sensitive", "y", "--json", "groups.json")
    Path("other.json").write_text('{"a": 1}')
    Path("later.json").write_text('{"format": "fairtransport audit", "version": 9}')
    result = run("compare", *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr
