"""Models of any kind in a stream: scored line by line as by themselves, resumed exactly, monitored where groups are.

Rows of unknown groups are rejected, pooled or taken for the largest group, as one option says.
"""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.worlds import people
from typer.testing import CliRunner

import fairtransport as ft
from fairtransport.cli.app import app
from fairtransport.linear import OnlineSettings
from fairtransport.metrics import kolmogorov_smirnov_disparity
from fairtransport.stream import ContinualAdjuster
from fairtransport.tabular import RowScorer, TableModel

N = 500
RNG = np.random.default_rng(0)
SEX = RNG.choice(["F", "M"], N, p=[0.6, 0.4])
FRAME = pd.DataFrame(
    {
        "hours": RNG.normal(35, 5, N) + 2 * (SEX == "M"),
        "job": RNG.choice(["cook", "clerk"], N),
        "age": RNG.normal(size=N),
    }
)
Y = (FRAME["hours"] + RNG.normal(0, 4, N) > 37).to_numpy().astype(int)
TABLE = FRAME.assign(sex=SEX)
GROUPS = pd.DataFrame({"sex": SEX})


def encoder():
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("numbers", SimpleImputer(), ["hours", "age"]), ("words", words, ["job"])])


def aware_pipeline():
    model = ft.TransportClassifier(parity_weight=0.5, group_specific=True)
    pipe = make_pipeline(encoder(), model)
    return pipe.fit(FRAME, Y, transportclassifier__sensitive_features=GROUPS)


def table_model(estimator):
    table = TABLE.assign(hired=np.where(Y, "yes", "no"))
    return TableModel(estimator, label="hired", sensitive_features=["sex"]).fit(table)


MODELS = {
    "pipeline": lambda: make_pipeline(encoder(), LogisticRegression(max_iter=1000)).fit(FRAME, Y),
    "aware pipeline": aware_pipeline,
    "repair of a pipeline": lambda: ft.QuantileRepairClassifier(
        make_pipeline(encoder(), LogisticRegression(max_iter=1000))
    ).fit(FRAME, Y, sensitive_features=GROUPS),
    "histogram trees": lambda: HistGradientBoostingClassifier(max_iter=5, categorical_features=["job"]).fit(FRAME, Y),
    "table": lambda: table_model(LogisticRegression(max_iter=1000)),
    "aware table": lambda: table_model(ft.QuantileRepairClassifier(LogisticRegression(max_iter=1000))),
}


def run(folder, *arguments):
    return CliRunner().invoke(app, ["stream", "--model", str(folder / "model.ft"), *map(str, arguments)])


def write_rows(path, table):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")))
    return path


@pytest.mark.parametrize("name", MODELS)
def test_lines_have_the_scores_of_the_model_and_a_run_in_parts_is_the_whole_run(name, tmp_path):
    model = MODELS[name]()
    ft.save(model, tmp_path / "model.ft", people_per_point=1)
    rows = write_rows(tmp_path / "rows.jsonl", TABLE)
    options = ("--freeze", "--batch", 60, "--checkpoint-every", 2)
    result = run(tmp_path, rows, "--out", tmp_path / "scored.jsonl", *options)
    assert result.exit_code == 0, result.stderr
    scored = [json.loads(line)["score"] for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    expected = RowScorer(ft.load(tmp_path / "model.ft")).score_rows(TABLE).scores
    np.testing.assert_allclose(scored, expected, rtol=1e-12)
    run(tmp_path, rows, "--out", tmp_path / "whole.jsonl", "--store", tmp_path / "a", *options)
    lines = rows.read_text().splitlines(keepends=True)
    for content in (lines[:200], lines):
        rows.write_text("".join(content))
        run(tmp_path, rows, "--out", tmp_path / "parts.jsonl", "--store", tmp_path / "b", "--resume", *options)
    assert (tmp_path / "parts.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    TABLE.to_csv(tmp_path / "rows.csv", index=False)
    assert run(tmp_path, tmp_path / "rows.csv", "--out", tmp_path / "scored.csv", "--freeze").exit_code == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "scored.csv")["score"], expected, rtol=1e-12)


def test_lines_that_cannot_be_scored_are_rejected_with_their_reason(tmp_path):
    ft.save(MODELS["repair of a pipeline"](), tmp_path / "model.ft", people_per_point=1)
    spoiled = TABLE[:8].astype(object)
    spoiled.loc[2, "hours"] = "secret"
    spoiled.loc[4, "sex"] = "secret"
    spoiled.loc[5, "sex"] = None
    rows = write_rows(tmp_path / "rows.jsonl", spoiled)
    common = (rows, "--freeze", "--max-rejected", 0.5)
    result = run(tmp_path, *common, "--out", tmp_path / "out.jsonl")
    assert (result.exit_code, "secret" in result.stderr) == (0, False)
    assert "3 lines rejected (see " in result.stderr
    assert "out.jsonl.rejected.jsonl" in result.stderr
    told = [json.loads(line) for line in (tmp_path / "out.jsonl.rejected.jsonl").read_text().splitlines()]
    assert [(line["line"], line["reason"]) for line in told] == [
        (3, "column 'hours' is not a number"),
        (5, "unknown group in 'sex'"),
        (6, "no group in 'sex'"),
    ]
    for policy in ("pooled", "common"):
        out = tmp_path / f"{policy}.jsonl"
        assert run(tmp_path, *common, "--out", out, "--unknown-group", policy).exit_code == 0
        found = [json.loads(line)["score"] for line in out.read_text().splitlines()]
        scorer = RowScorer(ft.load(tmp_path / "model.ft"), unknown_group=policy)
        np.testing.assert_allclose(found, np.delete(scorer.score_rows(spoiled).scores, 2), rtol=1e-12)
    ft.save(MODELS["aware table"](), tmp_path / "model.ft", people_per_point=1)
    write_rows(rows, spoiled.assign(job=["secret", *spoiled["job"][1:]]))
    result = run(tmp_path, *common, "--out", tmp_path / "table.jsonl")
    assert (tmp_path / "table.jsonl.rejected.jsonl").read_text() == (tmp_path / "out.jsonl.rejected.jsonl").read_text()
    assert "column 'job' has cells with a category that training did not see" in result.stderr
    assert "3 lines rejected" in result.stderr
    assert "1 cell unlike those of training" in result.stderr
    assert "secret" not in result.stderr


def test_rows_of_no_known_group_teach_nothing():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    group = rng.choice(["a", "b"], 400)
    y = (X[:, 0] + (group == "a") + rng.normal(size=400) > 0).astype(int)
    for model in (
        ft.TransportClassifier(parity_weight=0.5),
        ft.TransportClassifier(parity_weight=0.5, group_specific=True),
        ft.QuantileRepairClassifier(LogisticRegression()),
    ):
        model.fit(X, y, sensitive_features={"g": group})
        mixed = np.where(np.arange(60) % 4, group[:60], "new").astype(object)
        kept = mixed != "new"
        one, other = (ContinualAdjuster(model, unknown_group="pooled") for _ in range(2))
        whole = one.adjust(X[:60], sensitive_features={"g": mixed})
        part = other.adjust(X[:60][kept], sensitive_features={"g": mixed[kept]})
        np.testing.assert_array_equal(whole.scores[kept], part.scores)
        assert [g.rows for g in whole.groups] == [g.rows for g in part.groups]
        after = [a.adjust(X[60:], sensitive_features={"g": group[60:]}).scores for a in (one, other)]
        np.testing.assert_array_equal(*after)


# Blind repair: rows are scored without their groups. Regressors: in units of y, beyond the range of the first rows.

WORLD = {"shift": (1.2, 0.0), "coef": (1.0, 1.0)}


def test_scores_need_no_group_and_known_groups_are_monitored(tmp_path):
    X, y, group = people(1200, **WORLD)
    model = ft.BlindRepairClassifier(LogisticRegression(), LogisticRegression(), cv=2).fit(
        X, y, sensitive_features=group
    )
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
    model = ft.BlindRepairRegressor(LinearRegression(), LogisticRegression(), cv=2).fit(X, y, sensitive_features=group)
    adjuster, alarms = ContinualAdjuster(model), []
    for batch in range(30):
        new, _, new_group = people(100, seed=batch + 1, **WORLD)
        alarms.append(adjuster.adjust(new + (1.5 if batch >= 15 else 0.0), sensitive_features=new_group).alarm)
    assert not any(alarms[:15])
    assert any(alarms[15:])


LINEAR = {"parity_weight": 3.0, "online": OnlineSettings(300)}
REGRESSORS = {
    "repair": ft.QuantileRepairRegressor(Ridge(), repair=ft.QuantileRepair(online=OnlineSettings(500))),
    "linear": ft.TransportRegressor(distance="discrete", **LINEAR),
    "weights of each group": ft.TransportRegressor(group_specific=True, **LINEAR),
    "to a barycenter": ft.TransportRegressor(target="barycenter", **LINEAR),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_follows_a_drift_without_labels(name, tmp_path):
    X, y, group = people(3000, real=True)
    X = np.column_stack((X, group == "b"))
    model = REGRESSORS[name].fit(X, 1000 * y, sensitive_features=group)
    drifted = X + (group == "b")[:, None] * [0.0, 2.0, 0.0, 0.0]
    before = model.predict(drifted, sensitive_features=group)
    adjuster = ContinualAdjuster(model, store=tmp_path / "store", checkpoint_every=4, trust_radius=5.0)
    for rows in np.array_split(np.arange(len(X)), 30):
        assert np.isfinite(adjuster.adjust(drifted[rows], sensitive_features=group[rows]).scores).all()
    adjuster.close()
    after = ContinualAdjuster.resume(tmp_path / "store").model.predict(drifted, sensitive_features=group)
    np.testing.assert_array_equal(after, adjuster.model.predict(drifted, sensitive_features=group))
    distances = [kolmogorov_smirnov_disparity(x, sensitive_features=group) for x in (before, after)]
    assert distances[0] > 0.4
    assert distances[1] < (0.15 if name == "repair" else 0.5 * distances[0])
