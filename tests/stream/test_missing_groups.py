"""Rows without a group are scored; an operator hears that the model is not adjusted to them."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.worlds import people
from typer.testing import CliRunner

import fairtransport as ft
from fairtransport.cli.app import app
from fairtransport.stream import ContinualAdjuster, read_journal

ROWS = 60
WORLD = {"groups": ("F", "M"), "shift": (0.0, 1.0), "coef": (1.0, 1.0), "names": "ab"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Model files: linear models that do not need the group, one of which adopts new groups."""
    folder = tmp_path_factory.mktemp("models")
    X, y, sex = people(600, 0, **WORLD)
    for name, new_groups in {"linear": "error", "adopting": "adopt"}.items():
        model = ft.TransportClassifier(parity_weight=0.5, groups=ft.GroupPolicy(new=new_groups))
        ft.save(model.fit(X, y, sensitive_features={"sex": sex}), folder / f"{name}.ft")
    return folder


@pytest.fixture
def stream(models, tmp_path, monkeypatch):
    """Return a function that runs the command on rows whose group is in a column of this name, or in none."""
    monkeypatch.chdir(tmp_path)

    def call(column, *options, kind="jsonl", model="linear", values=None):
        X, _, sex = people(ROWS, 1, **WORLD)
        table = X if column is None else X.assign(**{column: sex if values is None else values})
        if kind == "csv":
            table.to_csv("rows.csv", index=False)
        else:
            table.to_json("rows.jsonl", orient="records", lines=True)
        fixed = ["stream", "--model", str(models / f"{model}.ft"), "--batch", "20", "--store", "st", "--out", "out"]
        return CliRunner().invoke(app, [*fixed, *options, f"rows.{kind}"])

    return call


def journal(name):
    return [entry[name] for entry in read_journal("st") if name in entry]


def test_a_header_without_the_group_ends_a_run_that_would_adjust(stream, tmp_path):
    result = stream("Sex", kind="csv")
    assert result.exit_code == 1
    message = " ".join(result.stderr.split())
    assert "The input has no column 'sex' (close to it: 'Sex')," in message
    assert "--freeze" in message
    assert (tmp_path / "out").read_text() == ""


@pytest.mark.parametrize("options", [("--freeze",), ("--unknown-group", "pooled")])
def test_a_header_without_the_group_is_scored_when_asked(stream, options):
    result = stream(None, *options, kind="csv")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("warning: the input has no column 'sex'. Rows without a group are scored") == 1
    assert f"done: {ROWS} rows scored ({ROWS} without a known group)," in result.stderr
    assert set(journal("updates")) == {0}


@pytest.mark.parametrize(
    ("column", "values", "warning"),
    [
        ("Sex", None, "none of the first 20 rows has a column 'sex' (close to it: 'Sex'). Rows without a group"),
        (None, None, "none of the first 20 rows has a column 'sex'. Rows without a group"),
        ("sex", "female", "none of the first 20 rows has a group that the model knows: check the values of column"),
    ],
)
def test_json_lines_without_the_group_are_warned_of_once(stream, column, values, warning):
    result = stream(column, values=values)
    assert result.exit_code == 0, result.output
    assert result.stderr.count(warning) == 1
    assert result.stderr.count("none of") == 1
    assert "female" not in result.stderr
    assert f"done: {ROWS} rows scored ({ROWS} without a known group)," in result.stderr
    assert journal("rows_without_group") == [20, 40, 60]
    assert set(journal("updates")) == {0}
    assert ContinualAdjuster.resume("st").rows_without_group == ROWS


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_with_groups_are_not_warned_of(stream, kind):
    result = stream("sex", kind=kind)
    assert result.exit_code == 0, result.output
    assert result.stderr == f"done: {ROWS} rows scored, 0 lines rejected, 0 alarms\n"


@pytest.mark.parametrize("values", [None, [None, "F", "X"] * (ROWS // 3)])
def test_a_model_that_adopts_groups_adopts_none_for_rows_without_one(stream, values):
    result = stream(None if values is None else "sex", model="adopting", values=values)
    assert result.exit_code == 0, result.output
    with ContinualAdjuster.resume("st") as adjuster:
        assert adjuster.model.groups_.labels == (("F", "M") if values is None else ("F", "M", "X"))
        assert adjuster.rows_without_group == (ROWS if values is None else ROWS // 3)
        assert adjuster.rows == ROWS
    assert all("score" in json.loads(line) for line in Path("out").read_text().splitlines())


@pytest.mark.parametrize("unknown_group", ["error", "pooled", "common"])
def test_a_repair_that_adopts_groups_treats_rows_without_one_as_told(unknown_group):
    rng = np.random.default_rng(0)
    scores, group = rng.beta(2, 3, 300), np.array(["a", "b", "b"])[np.arange(300) % 3]
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(new="adopt")).fit(scores, sensitive_features=group)
    adjuster = ContinualAdjuster(repair, unknown_group=unknown_group)
    adjuster.adjust(scores[:9], sensitive_features=["a", "b", "new"] * 3)
    batch = ["a", "newer", None] * 3
    if unknown_group == "error":
        with pytest.raises(ValueError, match="missing values"):
            adjuster.adjust(scores[:9], sensitive_features=batch)
        return
    report = adjuster.adjust(scores[:9], sensitive_features=batch)
    assert [reading.name for reading in report.groups] == ["a", "b", "new", "newer"]
    assert [reading.rows for reading in report.groups] == ([3, 0, 0, 3] if unknown_group == "pooled" else [3, 3, 0, 3])
    assert report.rows_without_group == (3 if unknown_group == "pooled" else 0)
