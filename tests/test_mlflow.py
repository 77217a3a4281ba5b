"""Models in MLflow: the scores are those of the library, by pyfunc and by MLflow's scoring server."""

import asyncio
import json

import httpx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
import fairtransport.mlflow as flavor
from fairtransport.mlflow import _load as load_quietly  # MLflow's own import warns
from fairtransport.tabular import RowScorer, TableModel

mlflow = load_quietly("mlflow")
load_quietly("mlflow.pyfunc")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*type hint")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    sex, job = rng.choice(["F", "M"], 300), rng.choice(["cook", "smith"], 300)
    hours = (rng.normal(38, 5, 300) + 4 * (sex == "M")).round(1)
    return pd.DataFrame({"hours": hours, "job": job, "sex": sex, "y": (hours + rng.normal(0, 5, 300) > 40).astype(int)})


@pytest.fixture(scope="module")
def models(people, tmp_path_factory):
    X, y, sex = people[["hours"]], people["y"], people[["sex"]]
    table = TableModel(LogisticRegression(), label="y", sensitive_features=["sex"])
    fitted = {
        "repair": ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=sex),
        "COT": ft.TransportClassifier(parity_weight=0.3).fit(X, y, sensitive_features=sex),
        "table": table.fit(people),
        "pipeline": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
    }
    path = tmp_path_factory.mktemp("models") / "m.ft"
    return {name: (ft.save(model, path), ft.load(path))[1] for name, model in fitted.items()}  # a file rounds repairs


@pytest.mark.parametrize("name", ["repair", "COT", "table", "pipeline"])
def test_pyfunc_scores_are_those_of_the_library(name, models, people, tmp_path):
    flavor.save_model(models[name], tmp_path / "m")
    expected = RowScorer(models[name]).score_rows(people).scores
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    assert np.array_equal(loaded.predict(people), expected)
    names = [column.name for column in RowScorer(models[name]).columns]
    assert loaded.metadata.get_input_schema().input_names() == names
    whole = people.assign(hours=people["hours"].astype(np.int64))  # MLflow converts no int64 to double
    assert np.array_equal(loaded.predict(whole), RowScorer(models[name]).score_rows(whole).scores)
    assert np.isfinite(loaded.predict(loaded.input_example)).all()
    assert np.array_equal(flavor.load_model(str(tmp_path / "m")).score_rows(people).scores, expected)
    files = {path.suffix for path in (tmp_path / "m").rglob("*") if path.is_file()}
    assert not files & {".pkl", ".pickle", ".cloudpickle", ".joblib"}


def test_rows_of_unknown_groups(models, people, tmp_path):
    flavor.save_model(models["repair"], tmp_path / "m")
    rows = people.assign(sex=["X", *people["sex"][1:]])
    with pytest.warns(UserWarning, match=r"1 of 300 rows have no score: unknown group in 'sex' \(1\)"):
        scores = mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(rows)
    assert np.isnan(scores[0])
    assert np.isfinite(scores[1:]).all()
    pooled = mlflow.pyfunc.load_model(str(tmp_path / "m"), model_config={"unknown_group": "pooled"})
    assert np.isfinite(pooled.predict(rows)).all()
    with pytest.raises(ValueError, match="unknown_group"):
        flavor.save_model(models["repair"], tmp_path / "n", unknown_group="any")


def test_scoring_server_of_mlflow(models, people, tmp_path):
    """The application that ``mlflow models serve`` starts, without a process of its own."""
    scoring_server = load_quietly("mlflow.pyfunc.scoring_server")
    flavor.save_model(models["repair"], tmp_path / "m")
    application = scoring_server.init(mlflow.pyfunc.load_model(str(tmp_path / "m")))
    rows = people[["hours", "sex"]].head(5)

    async def answers():
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            records = {"dataframe_records": json.loads(rows.to_json(orient="records"))}
            split = {"dataframe_split": json.loads(rows.to_json(orient="split", index=False))}
            missing = {"dataframe_records": [{"hours": 40.0}]}
            return [
                await client.get("/health"),
                await client.post("/invocations", json=records),
                await client.post("/invocations", json=split),
                await client.post("/invocations", json=missing),
            ]

    health, by_record, split, missing = asyncio.run(answers())
    expected = RowScorer(models["repair"]).score_rows(rows).scores
    assert health.status_code == 200
    for answer in (by_record, split):
        assert np.allclose(answer.json()["predictions"], expected, rtol=0, atol=1e-15)
    assert missing.status_code == 400
    assert "missing inputs ['sex']" in missing.json()["message"]


def test_log_and_load_by_uri(models, people, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more than mlflow-skinny
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    try:
        with mlflow.start_run():
            info = flavor.log_model(models["COT"], "model")
        scores = mlflow.pyfunc.load_model(info.model_uri).predict(people)
    finally:
        mlflow.set_tracking_uri(None)
    assert np.array_equal(scores, RowScorer(models["COT"]).score_rows(people).scores)


def test_model_of_another_flavor_is_refused(tmp_path):
    (tmp_path / "m").mkdir()
    load_quietly("mlflow.models").Model().save(str(tmp_path / "m" / "MLmodel"))
    with pytest.raises(ValueError, match=r"not stored by fairtransport\.mlflow"):
        flavor.load_model(str(tmp_path / "m"))
