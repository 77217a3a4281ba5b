"""What the workbench writes is what its command line and its Python code write."""

import contextlib
import shlex
import warnings

import numpy as np
import polars as pl
import pytest
from tests.workbench import people
from typer.testing import CliRunner

import fairtransport as ft
from fairtransport.app import worker
from fairtransport.app.projects import STEPS
from fairtransport.app.recipes import METHODS, audit_command, take_code, take_commands
from fairtransport.cli.app import app

SETTINGS = {name: value for fields in STEPS.values() for name, value in fields.items()}
ROLES = {"score": "score", "label": "hired", "pos_label": "yes", "sensitive": ["sex"], "drop": ["person", "salary"]}
REPORT = worker.Report([].append)


@pytest.fixture
def data(tmp_path, monkeypatch):
    people().write_csv(tmp_path / "people.csv")
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    return tmp_path / "people.csv"


def run(command):
    for line in command.splitlines():
        name, *words = shlex.split(line)
        result = CliRunner().invoke(app, words)
        assert name == "fairtransport"
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"criterion": "equalized_odds", "favourable": "low", "thresholds": ["0.4", "top 10%"], "small": "pool"},
        {"strata": ["region"], "min_size": "40"},
        {"by": "region"},
    ],
    ids=["default", "odds", "strata", "by"],
)
def test_the_audit_is_that_of_the_command(data, tmp_path, changes):
    settings = {**SETTINGS, **ROLES, "thresholds": [], **changes}
    command = audit_command(str(data), settings)
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings, "command": command}
    made = worker.audit(job, REPORT)
    run(command)
    for name in made["files"]:
        assert (data.parent / "there" / name).stat().st_size == pytest.approx((tmp_path / name).stat().st_size, rel=0.2)
    if not settings["by"]:
        ours, theirs = (ft.Audit.from_json(folder / "audit.json") for folder in (tmp_path, tmp_path / "there"))
        assert ours.verdict == theirs.verdict
        assert ours.metrics == theirs.metrics
        assert ours.provenance.files == theirs.provenance.files


@pytest.mark.parametrize(
    ("method", "amount", "changes"),
    [
        ("repair", 0.5, {}),
        ("repair", 1.0, {"criterion": "equal_opportunity"}),
        ("dpp", 0.7, {}),
        ("cot-aware", 1.0, {"criterion": "equalized_odds"}),
        ("cot-blind", 0.4, {}),
        ("blind-repair", 0.6, {}),
    ],
)
def test_scores_are_those_of_the_command_and_of_the_code(data, tmp_path, monkeypatch, method, amount, changes):
    settings = {**SETTINGS, **ROLES, "thresholds": [], "methods": [method], **changes}
    settings |= {"action": "repair" if method == "repair" else "train", "situation": METHODS[method][1]}
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings}
    curve = worker.tradeoff(job, REPORT)
    for name in curve["models"]:  # as the server does with the result
        (tmp_path / f"{name}.new.ft").replace(tmp_path / f"{name}.ft")
    chosen = {"method": method, "amount": amount}
    made = worker.take({**job, "chosen": chosen, "range": curve["range"]}, REPORT)
    file, column = ("repaired.csv", "score_repaired") if method == "repair" else ("scored.csv", "fair_score")
    ours = pl.read_csv(tmp_path / file)[column].to_numpy()
    assert file in made["files"]
    recipe = (str(data), settings, chosen, curve["range"])
    run(take_commands(*recipe))
    np.testing.assert_allclose(pl.read_csv(file)[column].to_numpy(), ours, atol=1e-9)
    names = {}
    with contextlib.suppress(ft.FairnessWarning), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(take_code(*recipe), names)  # noqa: S102 - what users are given
    np.testing.assert_allclose(np.asarray(names["result"][column]), ours, atol=1e-9)
    points = {(point["method"], point["amount"]): point for point in curve["points"]}
    assert points[method, 1.0]["rank_disparity"] < points[method, 0.0]["rank_disparity"]
    assert points[method, 0.0]["kept"] == pytest.approx(1.0)


def test_names_that_would_run_in_a_shell_or_in_python_are_quoted():
    hostile = """x'; rm -rf ~; echo " $(id) `id`\\"""
    settings = {**SETTINGS, **ROLES, "thresholds": [], "sensitive": [hostile], "label": hostile}
    words = shlex.split(take_commands("a b.csv", settings, {"method": "dpp", "amount": 1.0}).splitlines()[0])
    assert words[words.index("--sensitive") + 1] == hostile
    code = compile(take_code("a b.csv", settings, {"method": "dpp", "amount": 1.0}), "code", "exec")
    assert hostile in [text for part in code.co_consts for text in (part if isinstance(part, tuple) else (part,))]


def test_scores_beyond_0_and_1_are_repaired_within_their_range(data, tmp_path):
    people().with_columns(score=pl.col("score") * 600 + 250).write_csv(data)
    settings = {**SETTINGS, **ROLES, "label": "", "thresholds": [], "action": "repair", "methods": ["repair"]}
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings}
    curve = worker.tradeoff(job, REPORT)
    assert curve["range"][0] >= 250
    assert curve["points"][0]["error"] == 0.0  # without labels, how far scores move
    recipe = (str(data), settings, {"method": "repair", "amount": 1.0}, curve["range"])
    worker.take({**job, "chosen": recipe[2], "range": curve["range"]}, REPORT)
    run(take_commands(*recipe))
    ours, theirs = (pl.read_csv(folder / "repaired.csv")["score_repaired"] for folder in (tmp_path, tmp_path / "there"))
    np.testing.assert_allclose(theirs, ours, atol=1e-9)


REPAIRED = {**SETTINGS, **ROLES, "thresholds": [], "action": "repair", "methods": ["repair"]}


def repair_curve(data, table, **changes):
    table.write_parquet(data.with_suffix(".parquet"))
    job = {"path": str(data.with_suffix(".parquet")), "folder": str(data.parent), "settings": {**REPAIRED, **changes}}
    return worker.tradeoff(job, REPORT), job


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_labelled_scores_beyond_0_and_1_are_not_compared_with_labels(data, criterion):
    table = people().with_columns(score=pl.col("score") * 600 + 250)
    curve, job = repair_curve(data, table, criterion=criterion)
    points = curve["points"]
    assert not curve["labelled"]
    assert "not compared with labels" in curve["notes"][0]
    assert (points[0]["error"], points[0]["kept"]) == (0.0, None)
    assert points[-1]["disparity"] < points[0]["disparity"]
    made = worker.take({**job, "chosen": {"method": "repair", "amount": 1.0}, "range": curve["range"]}, REPORT)
    assert "repaired.parquet" in made["files"]


def test_the_positive_label_is_that_of_the_library_or_has_to_be_named(data):
    named, _ = repair_curve(data, people())
    assert repair_curve(data, people(), pos_label="")[0]["points"] == named["points"]  # of no and yes
    words = people().with_columns(hired=pl.col("hired").replace({"yes": "good", "no": "bad"}))
    assert repair_curve(data, words, pos_label="good")[0]["points"] == named["points"]
    with pytest.raises(ValueError, match="specify which of them is positive"):
        repair_curve(data, words, pos_label="")
    with pytest.raises(ValueError, match="has 3 different labels"):
        repair_curve(data, people().with_columns(hired=pl.col("region")), pos_label="north")


def test_missing_scores_are_set_aside_and_counted_and_scores_that_are_no_number_are_named(data):
    some = np.arange(1500) % 10 == 0
    missing = people().with_columns(score=pl.when(~pl.Series(some)).then(pl.col("score")))
    curve, _ = repair_curve(data, missing)
    assert curve["rows"] == 1350
    assert curve["notes"] == ["Rows set aside, because a score, a label or a group is missing: 150."]
    with pytest.raises(ValueError, match=r"The score of 150 rows is not a number \(NaN\)"):
        repair_curve(data, missing.with_columns(pl.col("score").fill_null(np.nan)))


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds", "equal_opportunity", "strata"])
def test_the_floor_is_that_of_the_groups_and_of_the_measure_beside_it(criterion):
    """Scores that are independent of the group: the disparity is about the floor; a tiny group counts in neither."""
    rng = np.random.default_rng(0)
    codes, strata = rng.integers(2, size=4000), rng.integers(8, size=4000)
    codes[:5] = 2
    scores = rng.random(4000) / 4 + strata / 20
    labels = (rng.random(4000) < scores).astype(int)
    named = {"strata": "demographic_parity"}.get(criterion, criterion)
    columns = {"strata": strata} if criterion == "strata" else None
    held, large = worker.HeldOut(ft.make_groups(codes), labels, named, columns), codes < 2
    cut = None if columns is None else {"strata": strata[large]}
    alone = worker.HeldOut(ft.make_groups(codes[large]), labels[large], named, cut)
    assert held.floor(scores) == pytest.approx(alone.floor(scores[large]))
    shuffled = [
        worker.HeldOut(ft.make_groups(rng.permutation(codes[large])), labels[large], named, cut).measure(
            scores[large], scores[large]
        )["disparity"]
        for _ in range(40)
    ]
    assert held.floor(scores) == pytest.approx(np.mean(shuffled), rel=0.25)
