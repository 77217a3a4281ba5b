"""Blind repair in a stream: rows are scored without their groups, and monitored where the groups are known."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from tests.worlds import people
from typer.testing import CliRunner

import fairtransport as ft
from fairtransport.cli.app import app
from fairtransport.stream import ContinualAdjuster
from fairtransport.tabular import TableModel

LOGISTIC = LogisticRegression()
WORLD = {"shift": (1.2, 0.0), "coef": (1.0, 1.0)}


def test_scores_need_no_group_and_known_groups_are_monitored(tmp_path):
    X, y, group = people(1200, **WORLD)
    model = ft.BlindRepairClassifier(LOGISTIC, LOGISTIC, cv=2).fit(X, y, sensitive_features=group)
    new, _, new_group = people(400, seed=1, **WORLD)
    expected = model.predict_proba(new)[:, 1]
    some = np.where(np.arange(400) < 300, new_group, "unseen")
    with ContinualAdjuster(model, store=tmp_path / "store") as adjuster:
        without = adjuster.adjust(new)
        report = adjuster.adjust(new, sensitive_features=some)
        for one in (without, report):
            np.testing.assert_array_equal(one.scores, expected)
            assert (one.updates, one.moved) == (0, 0.0)
        assert [reading.rows for reading in without.groups] == [0, 0]
        assert sum(reading.rows for reading in report.groups) == 300
        assert 0 < report.disparity_after < 0.2
        again = adjuster.adjust(new, sensitive_features=new_group).disparity_after
        adjuster.checkpoint()
    resumed = ContinualAdjuster.resume(tmp_path / "store")
    assert (resumed.batches, resumed.rows) == (3, 1200)
    assert resumed.adjust(new, sensitive_features=new_group).disparity_after == pytest.approx(again, abs=0.02)
    resumed.close()


def test_a_drift_raises_an_alarm_without_labels():
    X, y, group = people(1200, **WORLD)
    model = ft.BlindRepairRegressor(LinearRegression(), LOGISTIC, cv=2).fit(X, y, sensitive_features=group)
    adjuster, alarms = ContinualAdjuster(model), []
    for batch in range(30):
        new, _, new_group = people(100, seed=batch + 1, **WORLD)
        alarms.append(adjuster.adjust(new + (1.5 if batch >= 15 else 0.0), sensitive_features=new_group).alarm)
    assert not any(alarms[:15])
    assert any(alarms[15:])


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_without_the_group(kind, tmp_path):
    """Absent, missing and unseen groups are scored; a feature that is absent is not."""
    X, y, group = people(600, **WORLD)
    table = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "hired": np.where(y, "yes", "no"), "sex": group})
    repair = ft.BlindRepairClassifier(LOGISTIC, LOGISTIC, cv=2)
    model = TableModel(repair, label="hired", sensitive_features=["sex"]).fit(table)
    ft.save(model, tmp_path / "model.ft")
    new = table[["x", "z", "sex"]].head(4)
    if kind == "csv":
        new.drop(columns="sex").to_csv(tmp_path / "rows.csv", index=False)
    else:
        rows = new.to_dict("records")
        rows[1]["sex"], rows[2]["sex"] = None, "unseen"
        del rows[3]["sex"]
        lines = [*rows, {"x": 1.0, "sex": "a"}]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    options = ("--model", tmp_path / "model.ft", "--sensitive", "sex", "--out", tmp_path / f"out.{kind}")
    limit = ("--max-rejected", "1")
    result = CliRunner().invoke(app, [*map(str, ("stream", *options, *limit, tmp_path / f"rows.{kind}"))])
    assert result.exit_code == 0, result.output
    out = pd.read_csv(tmp_path / "out.csv") if kind == "csv" else pd.read_json(tmp_path / "out.jsonl", lines=True)
    np.testing.assert_allclose(out["score"], model.score_rows(new).scores, atol=1e-9)
    assert len(out) == 4
