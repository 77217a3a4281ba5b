"""``fairtransport train``: a raw table in, a model file and an honest table out; wrong input in one line."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairtransport as ft
from fairtransport.cli._errors import _name_options

CANARY = "CANARY"
HOSTILE = ["<script>alert(1)</script>", "=cmd()", "🦊", "x" * 300, "\u202egpj", "a,b"]


@pytest.fixture
def here(here, raw_people):
    """A folder with a raw table."""
    raw_people(600).write_csv("people.csv")
    return here


def call(run, *arguments, files=("people.csv",), label="hired", sensitive="sex", method="dpp", out="model.ft"):
    options = ("--label", label, "--sensitive", sensitive, "--method", method, "--out", out)
    return run("train", *files, *options, *arguments)


def summary_of(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


ODDS = ("--criterion equalized_odds", "separation_disparity", "Distance within labels")
OPPORTUNITY = ("--criterion equal_opportunity", "opportunity_disparity", "Within the positive label")
WITHIN = ("--strata job", "conditional_disparity", "Distance within strata")


@pytest.mark.parametrize(
    ("method", "options", "name", "title"),
    [
        ("cot", *ODDS),
        ("dpp", *WITHIN),
        ("cot", "--strata job,hours --criterion equalized_odds", "separation_disparity", "Distance within"),
        pytest.param("dot", *OPPORTUNITY, marks=pytest.mark.trust),
        pytest.param("dpp", *ODDS, marks=pytest.mark.trust),
        pytest.param("lr", *WITHIN, marks=pytest.mark.trust),
        pytest.param("trees", *ODDS, marks=pytest.mark.models),
    ],
)
def test_other_criteria_and_strata(run, here, method, options, name, title):
    options = options.split()
    summary = summary_of(call(run, *options, "--json", method=method))
    strata = options[options.index("--strata") + 1].split(",") if "--strata" in options else []
    assert summary["strata"] == strata
    assert summary["criterion"] == (options[-1] if "--criterion" in options else "demographic_parity")
    figures = summary["held_out"]["figures"]
    assert 0 < figures[method][name] < 1
    assert 0 < summary["held_out"]["noise_floor"][name] < 0.2
    if method in {"cot", "trees"} and not strata:
        assert figures[method][name] < figures["lr"][name]
    needed = {"dpp": ["job"]}.get(method, []) if strata else []
    model = ft.load("model.ft")
    assert (model.strata if model.needs_strata else []) == needed
    shown = call(run, *options, "--force", method=method)
    assert title in shown.stdout
    assert ("Needed to score, too, for the stratum of a row: job." in shown.stdout) == bool(needed)


@pytest.mark.parametrize(
    ("aware", "base"), [(True, "linear"), (False, "linear"), pytest.param(True, "trees", marks=pytest.mark.trust)]
)
def test_the_best_method_at_a_limit_is_chosen(run, here, aware, base):
    limit = "0.08" if base == "trees" else "0.05"
    options = ("--aware" if aware else "--blind", "--base", base, "--max-disparity", limit)
    summary = summary_of(call(run, *options, "--json", method="auto"))
    trained = "trees" if base == "trees" else "cot"
    assert summary["method"] in {trained, "dpp" if aware else "blind-repair"}
    assert summary["method"] in summary["held_out"]["figures"]
    model = ft.load("model.ft")
    names = [trained, f"{'dpp' if aware else 'blind-repair'} ({base})"]
    assert list(model.candidates) == summary["tried"] == names
    assert type(model.estimator_) is type(model.candidates[model.chosen_])
    assert summary["chosen"] == model.chosen_
    shown = call(run, *options, "--force", method="auto").stdout
    said = f"Lowest error at this disparity, of {', '.join(names)}: {model.chosen_}."
    assert said in " ".join(shown.split())
    above = summary["held_out"]["figures"][summary["method"]]["pairwise_disparity"] > float(limit)
    assert (f"above --max-disparity {limit}" in shown) == above
    refused = call(run, method="auto")
    assert refused.exit_code == 64
    assert "give --max-disparity" in refused.stderr


@pytest.mark.parametrize(
    "options", [("--base", "linear"), pytest.param(("--strata", "job"), marks=pytest.mark.trust)], ids=" ".join
)
def test_blind_repair_scores_without_the_groups(run, here, raw_people, options):
    raw_people(2400).write_csv("people.csv")  # of 600 rows in strata, too few are left to show that it helps
    summary = summary_of(call(run, *options, "--json", method="blind-repair"))
    figures = summary["held_out"]["figures"]
    before = figures["lr" if "linear" in options else "unrepaired"]
    assert figures["blind-repair"]["pairwise_disparity"] < 0.7 * before["pairwise_disparity"]
    assert 0 < summary["group_model"]["information"] < 0.5
    assert {"job", "hours"} <= {*summary["needed_to_score"]} <= {*pl.read_csv("people.csv").columns} - {"sex", "hired"}
    raw_people(40, seed=1).drop("sex", "hired").write_csv("new.csv")
    scored = run("score", "model.ft", "new.csv", "--out", "scored.csv")
    assert scored.exit_code == 0, scored.output
    scores = pl.read_csv("scored.csv")["score"]
    assert scores.is_between(0, 1).all()
    expected = ft.load("model.ft").score_rows(raw_people(40, seed=1)).scores
    np.testing.assert_allclose(scores, expected, atol=1e-12)


@pytest.mark.trust
@pytest.mark.parametrize("method", ["blind-repair", "dpp"])
def test_trees_are_repaired(run, here, raw_people, method):
    """Of classes and of numbers; the figures show the model before its repair beside the repaired one."""
    pay = pl.col("hours").cast(float) * 10 + pl.col("skill").fill_null(0) * 30
    raw_people(600).with_columns(pay=pay).write_csv("pay.csv")
    for files, label in (("people.csv",), "hired"), (("pay.csv",), "pay"):
        summary = summary_of(call(run, "--base", "trees", "--json", "--force", files=files, label=label, method=method))
        plain, repaired = (summary["held_out"]["figures"][name] for name in ("unrepaired", method))
        assert repaired["pairwise_disparity"] < plain["pairwise_disparity"]
        assert ft.load("model.ft").estimator_.amount == 1.0


def test_the_table_shows_before_and_after_at_80_columns(run, here):
    result = call(run, method="cot")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert max(map(len, lines)) <= 80
    assert re.fullmatch(r"15[01] test rows in 2 groups", lines[0])
    assert lines[1].split() == ["LR", "COT", "by", "chance"]
    figures = {line[:29].strip(): [float(word) for word in line[29:].split()] for line in lines[2:6]}
    lr, cot, floor = figures["Distance between pairs, mean"]
    assert cot < lr / 2
    assert 0 < floor < lr / 2
    assert figures["Error"][0] < figures["Error"][1] < 0.5
    assert "The score is the probability that hired is 'yes'." in lines
    assert "Needed to score: 5 columns, without sex." in lines
    assert "Columns used: region, hours, skill, job, joined." in lines
    assert "Left out: person (almost every row has a text of its own)." in lines
    assert lines[-1] == "Written: model.ft"


def test_other_files_are_measured_on(run, here, raw_people):
    raw_people(500, seed=1).write_csv("new.csv")
    shown = summary_of(call(run, "--test", "new.csv", "--json", method="lr"))
    assert (shown["rows"], shown["held_out"]["rows"]) == (600, 500)


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize(
    "method", ["dpp", "lr", *(pytest.param(name, marks=pytest.mark.models) for name in ("cot", "dot"))]
)
def test_methods_aware_and_blind(run, here, method, aware):
    shown = summary_of(call(run, "--json", *(["--aware"] if aware else []), method=method))
    model = ft.load("model.ft")
    assert shown["method"] == method
    assert ("sex" in model.encoder_.names) == aware
    assert model.needs_groups_ == (method == "dpp" or (aware and method != "lr"))
    assert shown["needed_to_score"] == model.columns
    assert list(shown["held_out"]["figures"]) == (["lr"] if method == "lr" else ["lr", method])
    assert not getattr(model.estimator_, "verbose", False)


@pytest.mark.models
def test_options_reach_the_model(run, here):
    options = ("--parity-weight", 1.5, "--amount", 0.4, "--seed", 7, "--drop", "person,region", "--pos-label", "no")
    shown = summary_of(call(run, *options, "--json", "--test-share", 0, method="cot"))
    model = ft.load("model.ft")
    assert (model.estimator_.parity_weight, model.estimator_.amount) == (1.5, 0.4)
    assert (shown["held_out"], shown["rows"], shown["positive"]) == (None, 600, "no")
    assert set(model.columns) == {"hours", "skill", "job", "joined"}
    again = summary_of(call(run, *options, "--json", "--test-share", 0, method="cot", out="again.ft"))
    assert Path("again.ft").read_bytes() == Path("model.ft").read_bytes()
    assert again["outcome"] == shown["outcome"]


def test_a_column_that_gives_the_label_away_is_named(run, here, raw_people):
    letter = pl.col("hired").replace_strict({"yes": "contract", "no": "refusal"})
    raw_people(800).with_columns(letter=letter).write_csv("leak.csv")
    result = call(run, files=["leak.csv"])
    assert "Note: The labels can be told almost without error from column 'letter' alone." in result.stdout
    assert "leave it out with --drop." in " ".join(result.stdout.split())
    assert "almost without error" not in call(run, "--drop", "letter", "--force", files=["leak.csv"]).stdout


def test_columns_that_nearly_tell_the_groups_are_named(run, here, raw_people, monkeypatch):
    raw_people(600).with_columns(title=pl.col("sex").replace_strict({"F": "Ms", "M": "Mr"})).write_csv("titles.csv")
    result = call(run, files=["titles.csv"], method="cot")
    assert "Nearly tells sex, and can be left out with --drop: title." in result.stdout
    monkeypatch.setattr("fairtransport.cli.train._MOST_ROWS", 200)
    pl.read_csv("titles.csv").sort("sex").write_csv("titles.csv")
    assert "Nearly tells sex" in call(run, "--force", files=["titles.csv"], method="cot").stdout
    assert summary_of(call(run, "--json", "--force", method="cot"))["proxies"] == {"sex": []}


@pytest.mark.parametrize("method", ["cot", "blind-repair"])
def test_figures_of_amount_one_are_said_to_be_such(run, here, method):
    result = call(run, "--amount", "0.3", method=method)
    said = " ".join(result.stdout.split())
    assert result.exit_code == 0, result.output
    assert re.search(r"At amount 1, .*\. The model written has amount 0\.30\.", said)
    for note in re.findall(r"Note: (.{12})", said):
        assert note == "At amount 1 "


def test_a_model_that_parity_ruined_says_so(run, here):
    shown = " ".join(call(run, "--parity-weight", 1000, method="cot").stdout.split())
    assert "Note: Parity cost most of the model" in shown
    assert "--parity-weight auto" in shown
    assert "group_specific" not in shown
    assert "-" not in shown.partition(" of the plain model's gain")[0].split()[-1]


@pytest.mark.parametrize("more", ["", ", or QuantileRepairClassifier", ", or QuantileRepairRegressor"])
def test_advice_to_repair_trees_names_options(more):
    assert (
        _name_options(f"Repair (repair=QuantileRepair(){more}) helps.") == "Repair (--method dpp --base trees) helps."
    )


def test_rows_without_label_or_group_are_counted(run, here, raw_people):
    frame = raw_people(400)
    sex, hired = [None] * 3 + frame["sex"].to_list()[3:], ["?"] * 2 + frame["hired"].to_list()[2:]
    frame.with_columns(sex=pl.Series(sex), hired=pl.Series(hired)).write_csv("gaps.csv")
    result = call(run, "--test-share", 0, files=["gaps.csv"])
    assert "Not used for training: 2 rows, no label.\nNot used for training: 1 row, no group.\n" in result.stdout
    options = "--test-share 0 --missing group --min-group-size 1 --json"
    shown = summary_of(call(run, options, files=["gaps.csv"], out="g.ft"))
    assert shown["set_aside"] == {"no label": 2}


@pytest.mark.parametrize("method", ["cot", "dpp"])
@pytest.mark.parametrize("policy", ["keep", "pool", "drop"])
def test_small_groups_are_scored_and_reported(run, here, raw_people, policy, method):
    frame = raw_people(600)
    town = ["small"] * 16 + ["tiny"] * 8 + ["large", "larger"] * 288
    frame.with_columns(town=pl.Series(town)).write_csv("towns.csv")
    more = ("--aware", "--parity-weight", 0.3) if method == "cot" else ()
    result = call(run, "--small-groups", policy, *more, files=["towns.csv"], sensitive="town", method=method)
    assert result.exit_code == 0, result.output
    assert "unknown group" not in result.stdout
    if method == "cot":
        text = " ".join(result.stdout.split())
        assert ("Pooled as (small groups): 2 groups too small" in text) == (policy == "pool")
        assert ("Left out of the comparisons: 2 groups too small" in text) == (policy == "drop")
        assert ("rows, of groups too small to be compared" in text) == (policy == "drop")
        groups = {"keep": 4, "pool": 3, "drop": 2}[policy]
        assert f"test rows in {groups} groups" in text
        assert ("have little weight in training: small; tiny." in text) == (policy == "keep")
        assert ("(small; tiny)." in text) == (policy != "keep")
        assert "Parity weight 0.3." in text
    scored = ft.load("model.ft").score_rows(pl.read_csv("towns.csv", infer_schema=False))
    assert np.isfinite(scored.scores).all()


def test_groups_without_a_map_of_their_own_are_named(run, here):
    people = pl.read_csv("people.csv")
    people = people.with_columns(sex=pl.Series([*["X"] * 8, *people["sex"].to_list()[8:]]))
    people.write_csv("few.csv")
    text = " ".join(call(run, "--amount", 0.9, files=["few.csv"]).stdout.split())
    assert "Groups with fewer than 30 training rows use the map of everyone: X." in text
    assert "small_groups_" not in text


def test_columns_are_listed_and_other_scores_hinted_at(run, here):
    people = pl.read_csv("people.csv")
    rng = np.random.default_rng(0)
    more = {f"more{number}": rng.normal(size=600) for number in range(14)}
    people.with_columns(**more, bank_score=rng.random(600), job_score=pl.col("job")).write_csv("wide.csv")
    text = " ".join(call(run, files=["wide.csv"], method="lr").stdout.split())
    assert re.search(r"Columns used: region, hours, (\w+, ){13}and 6 more\.", text)
    assert "If bank_score is the score of another model, leave it out with --drop bank_score." in text
    assert "If job_score" not in text
    shown = summary_of(call(run, "--drop", "bank_score", "--json", "--force", files=["wide.csv"], method="lr"))
    assert shown["named_like_scores"] == []


def test_a_plain_model_within_the_limit_is_said_to_be(run, here):
    text = " ".join(call(run, "--max-disparity", 0.9, method="cot").stdout.split())
    assert re.search(r"rows\. The plain model is already within the limit of 0\.9\. The score is", text)


def test_hostile_names_of_groups_are_only_names(run, here, raw_people):
    raw_people(600).with_columns(group=pl.Series(HOSTILE * 100)).write_csv("groups.csv")
    result = call(run, files=["groups.csv"], sensitive="group")
    assert result.exit_code == 0, result.output
    assert not any(name in result.output for name in HOSTILE)
    assert set(ft.load("model.ft").estimator_.repair_.groups_.labels) == set(HOSTILE)


@pytest.fixture
def paid(raw_people):
    """Return people with a wage that is higher for men."""
    frame = raw_people(600)
    rng = np.random.default_rng(3)
    signal = rng.normal(size=600) + (frame["hired"] == "yes").to_numpy()
    wage = 1500 + 300 * signal + 400 * rng.normal(size=600)
    return frame.drop("hired").with_columns(signal=signal, wage=wage.round(2))


@pytest.mark.parametrize("method", ["cot", "dot", "dpp", "lr"])
def test_numbers_are_predicted(run, here, paid, method):
    paid.write_csv("paid.csv")
    result = call(run, "--json", files=["paid.csv"], label="wage", method=method)
    shown = summary_of(result)
    assert (shown["task"], shown["positive"]) == ("regression", None)
    figures = shown["held_out"]["figures"]
    assert 0 < figures[method]["rmse"] < 1000
    model = ft.load("model.ft")
    scores = model.score_rows(paid).scores
    assert 1000 < scores.mean() < 3000
    least, most = sorted(figures[each]["rank_disparity"] for each in (method, "lr"))
    if least < most * 0.999:  # otherwise the plain model is kept: groups differ little, and the error would rise
        assert figures[method]["rank_disparity"] == least


def test_hostile_names_of_columns(run, here, raw_people):
    frame = raw_people(300).rename({"region": "[red]reg\x1b[31m ion", "job": "=cmd()", "person": "<b>\u202e"})
    frame.write_csv("names.csv")
    result = call(run, files=["names.csv"])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "Left out: <b>" in result.output


# Files that are not read into memory, and clusters.


@pytest.fixture
def on_disk(monkeypatch):
    from fairtransport.linear import table_training  # noqa: PLC0415

    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 5_000)


@pytest.fixture
def many(here, raw_people):
    raw_people(9_000).write_parquet("many.parquet")
    return {"files": ["many.parquet"], "method": "cot"}


def test_large_files_are_not_read_into_memory_and_it_is_said(run, many, on_disk):
    summary = summary_of(call(run, "--json", "--parity-weight", "0.3", **many))
    assert summary["rows_in"] == "files"
    assert summary["rows"] + summary["held_out"]["rows"] + sum(summary["held_out"]["set_aside"].values()) == 9_000
    assert {"lr", "cot"} == {*summary["held_out"]["figures"]}
    figures = summary["held_out"]["figures"]
    assert figures["cot"]["rank_disparity"] < figures["lr"]["rank_disparity"]
    shown = call(run, "--parity-weight", "0.3", "--force", **many)
    assert "Rows stayed in their files, which have more than 5,000 cells." in shown.stdout
    assert ft.load("model.ft").score_rows(pl.read_parquet("many.parquet")).scores.shape == (9_000,)


def test_blind_repair_of_a_large_file(run, many, on_disk):
    many["method"], options = "blind-repair", ("--base", "linear")
    summary = summary_of(call(run, "--json", *options, **many))
    assert summary["rows_in"] == "files"
    assert summary["group_model"]["n_rows"] == summary["rows"] - sum(summary["set_aside"].values())
    figures = summary["held_out"]["figures"]
    assert figures["blind-repair"]["rank_disparity"] < 0.7 * figures["lr"]["rank_disparity"]
    assert "Rows stayed in their files" in call(run, *options, "--force", **many).stdout
    result = call(run, *options, "--checkpoint", "steps", "--force", **many)
    assert "--checkpoint cannot be combined with --method blind-repair" in result.output


def test_the_plain_model_of_a_large_file_is_that_of_rows_in_memory(run, many, on_disk, monkeypatch):
    found = [summary_of(call(run, "--json", "--test", "many.parquet", "--force", **many))]
    monkeypatch.setattr(ft.linear.table_training, "MOST_IN_MEMORY", 50_000_000)
    found.append(summary_of(call(run, "--json", "--test", "many.parquet", "--force", **many)))
    assert [one["rows_in"] for one in found] == ["files", "memory"]
    assert found[0]["rows"] == found[1]["rows"]
    for name, value in found[1]["held_out"]["figures"]["lr"].items():
        assert found[0]["held_out"]["figures"]["lr"][name] == pytest.approx(value, abs=2e-3)
    assert found[0]["left_out"] == found[1]["left_out"]
    assert sorted(found[0]["needed_to_score"]) == sorted(found[1]["needed_to_score"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "dask://127.0.0.1:1"), "No Dask scheduler answers at 127.0.0.1:1"),
        (("--engine", "ray"), "--engine must be dask://HOST:PORT or spark"),
        (("--engine", "spark", "--method", "blind-repair"), "blind-repair with --base linear"),
        (("--engine", "spark", "--null", "?"), "--engine cannot be combined with --null"),
        (("--engine", "spark", "--format", "jsonl"), "--engine takes CSV and Parquet files"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_clusters_that_are_not_there(run, many, arguments, message):
    result = call(run, *arguments, **many)
    assert result.exit_code
    assert message in result.output
    assert not Path("model.ft").exists()


@pytest.fixture
def passes(monkeypatch):
    """The passes over encoded rows; the twelfth is interrupted."""
    from fairtransport.linear import _partitions  # noqa: PLC0415

    total, passes = _partitions.DiskCache.total, []

    def interrupted(self, work, *shared):
        passes.append(work)
        if len(passes) == 12:
            raise KeyboardInterrupt
        return total(self, work, *shared)

    monkeypatch.setattr(_partitions.DiskCache, "total", interrupted)
    return passes


def test_an_interrupted_training_of_a_file_continues_from_its_checkpoint(run, many, on_disk, passes):
    options = ("--json", "--parity-weight", "0.3", "--checkpoint", "steps")
    assert call(run, *options, **many).exit_code
    assert not Path("model.ft").exists()
    assert Path("steps").exists()
    summary_of(call(run, *options, **many))
    assert not Path("steps").exists()
    repeated, found = passes[12:], ft.load("model.ft").estimator_.coef_
    passes[12:] = []
    summary_of(call(run, *options, "--force", **many))
    np.testing.assert_array_equal(found, ft.load("model.ft").estimator_.coef_)
    assert len(repeated) == len(passes) - 12 - 10  # those before the interruption were read from the file


def test_a_file_that_is_no_checkpoint_is_refused_and_kept(run, many, on_disk):
    content = Path("many.parquet").read_bytes()
    for name, message in {"many.parquet": "not a checkpoint", "nowhere/steps": "no such folder"}.items():
        result = call(run, "--parity-weight", "0.3", "--checkpoint", name, **many)
        assert result.exit_code
        assert message in result.output
    assert Path("many.parquet").read_bytes() == content
    assert not Path("model.ft").exists()


def test_a_table_that_has_changed_is_trained_on_from_the_beginning(run, many, on_disk, passes):
    options = ("--json", "--parity-weight", "0.3", "--checkpoint", "steps")
    right = pl.read_parquet("many.parquet")
    name = next(name for name, kind in right.schema.items() if kind == pl.Float64)
    right.with_columns(pl.col(name).shuffle(seed=0)).write_parquet("many.parquet")
    assert call(run, *options, **many).exit_code
    assert len(passes) == 12
    right.write_parquet("many.parquet")
    found = ft.load(summary_of(call(run, *options, **many))["written"]).estimator_.coef_
    summary_of(call(run, *options, "--force", **many))
    np.testing.assert_array_equal(found, ft.load("model.ft").estimator_.coef_)


def test_text_among_the_numbers_of_a_large_csv_is_what_it_is_in_memory(run, many, on_disk, monkeypatch):
    rows = pl.read_parquet("many.parquet")
    name = next(name for name, kind in rows.schema.items() if kind == pl.Float64)
    late = pl.when(pl.int_range(len(rows)) > 8_990).then(pl.lit("?")).otherwise(pl.col(name).cast(pl.String))
    rows.with_columns(late.alias(name)).write_csv("many.csv")
    many = {**many, "files": ["many.csv"]}
    found = [summary_of(call(run, "--json", "--test-share", "0.9", "--force", **many))]
    monkeypatch.setattr(ft.linear.table_training, "MOST_IN_MEMORY", 50_000_000)
    found.append(summary_of(call(run, "--json", "--force", **many)))
    assert [one["rows_in"] for one in found] == ["files", "memory"]
    assert found[0]["rows"] > 4_000
    assert found[0]["left_out"] == found[1]["left_out"]
    assert sorted(found[0]["needed_to_score"]) == sorted(found[1]["needed_to_score"])
