"""``--small-groups`` and ``--min-group-size``; the report of an audit predicts the errors after ``repair``."""

import json

import polars as pl
import pytest
from tests.worlds import sized_groups

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.metrics import error_rate
from fairtransport.report import WhatIf

QUICK = ("--n-bootstrap", 20, "--n-permutations", 20)


@pytest.fixture
def here(here):
    scores, labels, groups = sized_groups({"a": 900, "b": 600, "c": 20, "d": 8})
    pl.DataFrame({"s": scores, "g": groups, "y": labels}).write_parquet("scores.parquet")
    return here


def repaired(run, *options):
    result = run("repair", "scores.parquet", "--score", "s", "--sensitive", "g", "--label", "y",
                 "--out", "out.parquet", "--force", *options)  # fmt: skip
    assert result.exit_code == 0, result.output
    return result, pl.read_parquet("out.parquet")


@pytest.mark.parametrize(
    ("options", "policy"), [((), "keep"), (("--small-groups", "pool"), "pool"), (("--small-groups", "drop"), "drop")]
)
def test_the_report_predicts_the_errors_after_repair(run, here, options, policy):
    result = run("audit", "scores.parquet", "--score", "s", "--sensitive", "g", "--label", "y", *QUICK, *options)
    assert result.exit_code == 0, result.output
    table = pl.read_parquet("scores.parquet")
    quick = {"inference": Inference(n_bootstrap=20, n_permutations=20, random_state=0)}
    small = ft.GroupPolicy(small=policy)
    audit = ft.audit_table(table, score="s", sensitive_features="g", label="y", groups=small, **quick)
    predicted = WhatIf.of(audit).at(0.5, amount=1.0)
    _, out = repaired(run, *options)
    judged = out.filter(pl.col("g").is_in(["a", "b"])) if policy == "drop" else out
    measured = error_rate(judged["y"].to_numpy(), judged["s_repaired"].to_numpy())
    # A bin of 1/16384 can put single people on the other side of the threshold.
    assert predicted.error == pytest.approx(measured, abs=2 / len(judged))


def test_repair_reports_groups_without_a_map_of_their_own(run, here):
    result, _ = repaired(run, "--json", "out.json")
    said = "2 of 4 groups have fewer than 30 rows and no maps of their own. Such groups use the map of everyone: c; d."
    assert said in " ".join(result.stdout.split())
    assert json.loads((here / "out.json").read_text())["without_own_map"] == {"groups": 2, "rows": 28}
    result, _ = repaired(run, "--min-group-size", 8)
    assert "maps of their own" not in result.stdout
    result, _ = repaired(run, "--min-group-size", 25)  # of which both together have enough
    assert "Such groups share one map: c; d." in " ".join(result.stdout.split())


def test_audit_reports_pooled_and_dropped_groups(run, here):
    base = ("audit", "scores.parquet", "--score", "s", "--sensitive", "g", *QUICK)
    kept, pooled, dropped = (run(*base, "--small-groups", word) for word in ("keep", "pool", "drop"))
    assert "(small groups)" not in kept.stdout
    assert "Pooled as (small groups): 28 rows of 2 groups" in pooled.stdout
    assert "Left out: 28 rows of 2 groups" in dropped.stdout
    assert "Audit of 1,500 rows in 2 groups" in dropped.stdout
    page = run(*base, "--small-groups", "drop", "--html", "page.html")
    assert page.exit_code == 0, page.output
    assert "Left out: 28 rows of 2 groups" in (here / "page.html").read_text()
