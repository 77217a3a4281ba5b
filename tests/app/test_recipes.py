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
