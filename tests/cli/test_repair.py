"""``fairtransport repair``: its output is the table with one more column."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.feather as feather
import pytest
from tests.worlds import score_table

import fairtransport as ft


def rows(n=900, seed=0):
    return score_table(n, seed, races=("B", "W", "X")).with_columns(sex=(pl.col("sex") == "M").cast(int)).drop("region")


@pytest.fixture
def here(here):
    rows().write_parquet("scores.parquet")
    rows().write_csv("scores.csv")
    return here


def call(run, *arguments, files=("scores.parquet",), sensitive="race", out="out.parquet"):
    return run("repair", *files, "--score", "s", "--sensitive", sensitive, "--out", out, *arguments)


def read(path):
    name = str(path)
    if ".csv" in name or ".tsv" in name:
        return pl.read_csv(path, separator="\t" if ".tsv" in name else ",")
    if ".jsonl" in name:
        return pl.read_ndjson(path)
    return pl.read_parquet(path) if name.endswith("parquet") else pl.from_arrow(feather.read_table(path))


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("scores.parquet", "out.parquet"),
        ("scores.parquet", "out.csv.gz"),
        ("scores.parquet", "out.jsonl.zst"),
        ("scores.csv", "out.feather"),
        ("scores.csv", "out.csv"),
        ("scores.csv", "out.tsv"),
    ],
)
def test_rows_columns_and_order_stay_and_scores_are_those_of_the_library(run, here, name, out):
    result = call(run, "--guess-types", files=[name], out=out)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    repaired, frame = read(out), rows()
    assert repaired.columns == [*frame.columns, "s_repaired"]
    assert repaired.select(frame.columns).rows() == frame.rows()
    fitted = ft.repair.TableRepair(score="s", sensitive_features="race").fit(frame)
    expected = fitted.transform(frame)["repaired"]
    np.testing.assert_allclose(repaired["s_repaired"], expected, rtol=0, atol=1e-12)
    assert result.stdout.endswith(f"Written: {out}\n")


def test_held_out_figures_are_those_of_fresh_rows(run, here):
    """Rows that a repair has never seen show as much as the held-out figures say, and more than the in-sample ones."""
    name = "pairwise_disparity"
    held_out, in_sample, fresh = [], [], []
    for seed in range(4):
        rows(1000, seed).write_parquet("seen.parquet")
        result = json.loads(call(run, "--json", "-", "--force", files=["seen.parquet"]).stdout)
        rows(200, 100 + seed).write_parquet("new.parquet")  # as many as a fold has
        arguments = ("--json", "-", "--force", "--fit-on", "seen.parquet")
        others = json.loads(call(run, *arguments, files=["new.parquet"]).stdout)
        assert (result["fitted_to_these_rows"], others["fitted_to_these_rows"]) == (True, False)
        assert "held_out" not in others
        held_out.append(result["held_out"][name]["value"])
        in_sample.append(result["after"][name]["value"])
        fresh.append(others["after"][name]["value"])
    error = np.std(fresh) / np.sqrt(len(fresh))
    assert np.mean(held_out) == pytest.approx(np.mean(fresh), abs=3 * error)
    assert np.mean(in_sample) < np.mean(fresh) - 3 * error


def test_a_repair_that_increases_a_distance_says_so(run, here):
    """Groups that do not differ: maps that were fitted to few rows move them apart."""
    rng = np.random.default_rng(4)
    for name, n in (("few.parquet", 150), ("new.parquet", 20_000)):
        pl.DataFrame({"s": rng.beta(2, 3, n), "race": rng.choice(["B", "W"], n)}).write_parquet(name)
    result = call(run, "--fit-on", "few.parquet", files=["new.parquet"])
    assert result.exit_code == 0, result.output
    assert "Larger after the repair: mean distance to target" in " ".join(result.stdout.split())
    assert "Larger after" not in call(run, "--force").stdout  # groups that differ


def test_no_more_is_said_where_chance_or_strata_explain_a_larger_distance(run, here):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=6000)  # the groups are alike, but within each stratum one is .1 higher
    stratum = (rng.random(6000) < np.where(group == 1, 0.25, 0.75)).astype(int)
    scores = 0.6 * rng.beta(4, 4, 6000) + 0.2 * stratum + 0.1 * group
    names = {"race": np.array(["B", "W"])[group], "k": np.array(["u", "v"])[stratum]}
    pl.DataFrame({"s": scores, **names}).write_parquet("strata.parquet")
    result = call(run, "--strata", "k", files=["strata.parquet"])
    assert result.exit_code == 0, result.output
    assert "Larger after" not in result.stdout
    said = []
    for seed in range(5):  # of fifths of 2,000 rows chance shows .020, which is more than before, .016
        rng = np.random.default_rng(100 + seed)
        race = rng.choice(["B", "W"], 2000)
        table = pl.DataFrame({"s": 0.9 * rng.beta(4, 4, 2000) + 0.018 * (race == "B"), "race": race})
        table.write_parquet("near.parquet")
        said.append("Larger after" in call(run, "--force", files=["near.parquet"]).stdout)
    assert sum(said) <= 1


def test_a_label_that_is_rare_in_a_part_of_the_rows_is_not_measured_there(run, here):
    rng = np.random.default_rng(0)
    race, y = np.array(["B", "W"])[(np.arange(400) % 5 > 0).astype(int)], np.zeros(400, dtype=int)
    y[[0, 5, 10, 1, 2, 3, 4, 6, 7, 8, 9, 11]] = 1  # of B, 3: fewer than parts
    pl.DataFrame({"s": rng.random(400), "race": race, "y": y}).write_parquet("rare.parquet")
    result = call(run, "--criterion", "equal_opportunity", "--label", "y", "--json", "-", files=["rare.parquet"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert "pairwise_disparity_label_1" in figures["before"]
    assert "held_out" not in figures


def test_options_reach_the_repair(run, here):
    frame = rows().with_columns(pl.col("s") * 550 + 300)
    frame.write_parquet("points.parquet")
    arguments = "--amount 0.5 --target W --range 300,850 --bins 1000 --column fair"
    result = call(run, arguments, files=["points.parquet"])
    assert result.exit_code == 0, result.output
    fitted = ft.repair.TableRepair(
        ft.QuantileRepair(target="W", amount=0.5), score="s", sensitive_features="race", range=(300, 850), n_bins=1000
    ).fit(frame)
    expected = fitted.transform(frame)["repaired"]
    np.testing.assert_allclose(pl.read_parquet("out.parquet")["fair"], expected, rtol=0, atol=1e-9)


def test_scores_without_bounds_are_repaired_in_a_range_that_is_learned(run, here):
    frame = rows().with_columns(s=1e5 * pl.col("s") + 2e4)
    frame.write_parquet("prices.parquet")
    refused = call(run, files=["prices.parquet"])
    assert refused.exit_code == 1
    assert "900 of 900 values outside [0, 1]" in refused.stderr
    assert "or set --range learned for scores without bounds, such as predicted prices" in refused.stderr
    result = call(run, "--range", "learned", files=["prices.parquet"])
    assert result.exit_code == 0, result.output
    lines = {line[:29].strip(): line[29:].split() for line in result.stdout.splitlines()}
    assert re.fullmatch(r"\d{1,3},\d{3}", lines["Mean distance between pairs"][0])
    assert float(lines["Rank disparity"][1]) < float(lines["Rank disparity"][0]) / 3
    moved = read("out.parquet")["s_repaired"].to_numpy()
    expected = ft.QuantileRepair(range="learned").fit_transform(frame["s"].to_numpy(), sensitive_features=frame["race"])
    assert np.abs(moved - expected).mean() < 6.0  # 1e5 / 16,384: scores are counted in bins


@pytest.mark.parametrize("name", ["new.parquet", "new.csv"])
def test_learned_on_one_file_and_applied_to_another(run, here, name):
    """Groups are numbers in Parquet and text in CSV; scores outside the range are clamped; a new group gets none."""
    new = pl.DataFrame({"s": [0.3, 1.7, -2.0, None, 0.5, 0.5], "sex": [0, 1, 0, 1, 7, None]})
    (new.write_csv if name.endswith("csv") else new.write_parquet)(name)
    result = call(run, "--fit-on", "scores.parquet", files=[name], sensitive="sex")
    assert result.exit_code == 0, result.output
    fitted = ft.repair.TableRepair(score="s", sensitive_features="sex").fit(rows())
    expected = fitted.repair_.transform([0.3, 1.0, 0.0], sensitive_features=[0, 1, 0])
    repaired = pl.read_parquet("out.parquet")["s_repaired"].to_list()
    assert repaired[:3] == pytest.approx(expected, abs=1e-12)
    assert repaired[3:] == [None, None, None]
    said = result.stdout
    assert "Clamped to the fitted range: 2 rows." in said
    for reason in ("no score", "no group", "unknown group"):
        assert f"Without a repaired score: 1 row, {reason}." in said


def repaired_by_sql():
    """Return what the SQL that was written makes of the file of scores."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE scores AS SELECT * FROM 'scores.parquet'")
        *made, query = [part for part in Path("repair.sql").read_text().split(";\n") if part]
        for statement in made:
            database.execute(statement)
        return database.sql(query).order("id").fetchnumpy()["s_repaired"]


def test_sql_and_lookup_table_repair_as_the_file_does(run, here):
    result = call(run, "--sql", "repair.sql", "--lookup", "lookup.parquet", "--bins", 500)
    assert result.stdout.endswith("Written: out.parquet\nSQL: repair.sql\nLookup table: lookup.parquet\n")
    repaired = pl.read_parquet("out.parquet")
    np.testing.assert_allclose(repaired_by_sql(), repaired["s_repaired"], rtol=0, atol=1e-12)
    lookup = pl.read_parquet("lookup.parquet")
    assert lookup.columns == ["race", "bin", "start", "base", "slope"]
    assert lookup.height == 3 * 501


def test_ctrl_c_of_a_real_process(here):
    """Stopped while it writes: exit status 130, one line, and no file but the ones before."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    pl.DataFrame({"s": rng.random(n), "race": rng.choice(["a", "b"], n)}).write_parquet("big.parquet")
    before = sorted(path.name for path in here.iterdir())
    repair = ["repair", "big.parquet", "--score", "s", "--sensitive", "race"]
    command = [sys.executable, "-m", "fairtransport.cli", *repair]
    process = subprocess.Popen(
        [*command, "--out", "out.csv"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while process.poll() is None and not list(here.glob(".out.csv.*")):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, "", "stopped\n")
    assert sorted(path.name for path in here.iterdir()) == before


def test_the_output_is_not_more_open_than_the_mask_allows(run, here):
    mask = os.umask(0o077)
    try:
        call(run)
    finally:
        os.umask(mask)
    assert Path("out.parquet").stat().st_mode & 0o777 == 0o600


def distances(table, column, by="race", label=None):
    """Sum of distances between pairs of groups."""
    used = table if label is None else table.filter(pl.col("y") == label)
    return ft.metrics.pairwise_disparity(used[column].to_numpy(), sensitive_features=used[by].to_numpy())


@pytest.mark.parametrize("criterion", ["equal_opportunity", "equalized_odds"])
def test_labels_are_used_to_fit_and_figures_are_those_of_the_criterion(here, run, criterion):
    result = call(run, "--criterion", criterion, "--label", "y", "--json", "figures.json")
    assert result.exit_code == 0, result.output
    out = pl.read_parquet("out.parquet")
    expected = ft.QuantileRepair(criterion=criterion).fit(out["s"].to_numpy(), out["y"], sensitive_features=out["race"])
    found = expected.transform(out["s"].to_numpy(), sensitive_features=out["race"])
    assert np.abs(out["s_repaired"].to_numpy() - found).mean() < 5e-3  # counted at nodes of a grid
    figures = json.loads(Path("figures.json").read_text())
    names = {"error_rate", "pairwise_disparity_label_1"}
    names |= {"pairwise_disparity_label_0"} if criterion == "equalized_odds" else set()
    assert set(figures["before"]) == set(figures["after"]) == set(figures["held_out"]) == names
    for label in (0, 1)[len(names) == 2 :]:
        after = figures["after"][f"pairwise_disparity_label_{label}"]["value"]
        assert after == pytest.approx(distances(out, "s_repaired", label=label), abs=1e-3)
    assert figures["after"]["pairwise_disparity_label_1"]["value"] < distances(out, "s", label=1) / 2
    assert "Pairs, positive label" in result.output
    assert (figures["positive"], "Positive label of y: 1." in result.output) == ("1", True)


def test_repair_within_strata_and_its_sql(here, run):
    table = rows(3000, seed=3)
    table = table.with_columns(s=(pl.col("s") + 0.1 * pl.col("sex")).clip(0, 1))
    table.write_parquet("scores.parquet")
    result = call(run, "--strata sex --bins 1024 --sql repair.sql --dialect duckdb --json figures.json")
    assert result.exit_code == 0, result.output
    out = pl.read_parquet("out.parquet")
    for sex in (0, 1):
        part = out.filter(pl.col("sex") == sex)
        assert distances(part, "s_repaired") < 0.01 < distances(part, "s")
    figures = json.loads(Path("figures.json").read_text())
    assert figures["after"]["conditional_pairwise_disparity"]["value"] < 0.01
    assert figures["held_out"]["conditional_pairwise_disparity"]["value"] < 0.1
    assert "within strata" in result.output
    np.testing.assert_allclose(repaired_by_sql(), out["s_repaired"], atol=1e-12)


def test_a_row_of_an_unseen_stratum_gets_no_score_and_is_counted(here, run):
    pl.concat([rows(50), rows(50).with_columns(sex=pl.lit(7, pl.Int64))]).write_parquet("new.parquet")
    result = call(run, "--strata", "sex", "--fit-on", "scores.parquet", files=("new.parquet",))
    assert result.exit_code == 0, result.output
    assert pl.read_parquet("out.parquet")["s_repaired"].null_count() == 50
    assert "50 rows, unknown group" in result.output
