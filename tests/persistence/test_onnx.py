"""Models as ONNX graphs: onnxruntime gives our scores, and refuses what we refuse."""

import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairtransport as ft
from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor
from fairtransport.persistence import pack_model, unpack_model
from fairtransport.persistence.onnx import to_onnx
from fairtransport.tabular import TableModel

from .models import SGD, N, cot, dot, people, table

_ERRORS = onnxruntime.capi.onnxruntime_pybind11_state
REFUSES = (_ERRORS.InvalidArgument, _ERRORS.Fail)
EXACT = 1e-12  # of doubles on both sides


def run(made, **inputs):
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs), strict=True))


def agree(made, model, X, *, inputs, tolerance=EXACT, **keys):
    given = run(made, **inputs)
    expected = model.predict_proba(X, **keys)
    np.testing.assert_allclose(given["probabilities"], expected, rtol=0, atol=tolerance)
    sure = np.abs(expected[:, 1] - 0.5) > tolerance
    assert given["label"][sure].tolist() == model.predict(X, **keys)[sure].tolist()
    assert 0.1 < expected[:, 1].std() < 0.5


X, Y, GROUP = people()


@pytest.mark.parametrize(
    "model",
    [cot(), cot(amount=0.5), cot(solver=SGD, parity_weight=0.5), dot(), cot(estimator=LogisticRegression(C=0.1))],
    ids=str,
)
def test_blind_linear_models(model):
    model.fit(X, Y, sensitive_features=GROUP)
    made = to_onnx(model)
    assert [one.name for one in made.graph.input] == ["X"]
    agree(made, model, X, inputs={"X": X})


@pytest.mark.parametrize("amount", [1.0, 0.3])
def test_weights_of_each_group_take_the_group(amount):
    model = dot(group_specific=True, amount=amount).fit(X, Y, sensitive_features=pd.Series(GROUP, name="sex"))
    made = to_onnx(model)
    keys = {"sensitive_features": pd.Series(GROUP, name="sex")}
    agree(made, model, X, inputs={"X": X, "sex": GROUP}, **keys)
    swapped = np.where(GROUP == "Male", "Female", "Male")
    scores, others = (run(made, X=X, sex=sex)["probabilities"] for sex in (GROUP, swapped))
    assert np.abs(scores - others).max() > 0.01
    spec = {entry.key: entry.value for entry in made.metadata_props}
    assert json.loads(spec["fairtransport.groups"])["labels"] == ["Female", "Male"]
    assert spec["fairtransport.version"] == ft.__version__


@pytest.mark.parametrize("amount", [1.0, 0.4])
def test_repair_of_scores_is_that_of_the_file_and_has_nobodys_own_score(amount, tmp_path):
    scores = 1 / (1 + np.exp(-X[:, 0])).round(2)  # ties, too
    group = np.where(np.arange(N) < 9, "few", GROUP)
    repair = ft.QuantileRepair(amount=amount, groups=ft.GroupPolicy(min_size=1)).fit(scores, sensitive_features=group)
    made = to_onnx(repair)
    with pytest.warns(ft.persistence.ModelFileWarning):
        kept = ft.load(ft.save(repair, tmp_path / "repair.ft"))
    new = np.concatenate([scores, np.linspace(0, 1, 500), scores])
    groups = np.concatenate([group, np.resize(["few", "Female", "Male"], 500), np.roll(group, 1)])
    found = run(made, scores=new, sensitive_feature_0=groups)["repaired"]
    np.testing.assert_allclose(found, kept.transform(new, sensitive_features=groups), rtol=0, atol=EXACT)
    numbers = [onnx.numpy_helper.to_array(one).ravel() for one in made.graph.initializer
               if one.data_type == onnx.TensorProto.DOUBLE]  # fmt: skip
    assert not np.isin(np.unique(scores[:9]), np.concatenate(numbers)).all()


@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        dot(amount=0.5).fit(X, Y, sensitive_features=GROUP),
        make_pipeline(StandardScaler(), dot()).fit(X, Y, transportclassifier__sensitive_features=GROUP),
    ],
    ids=str,
)
def test_repair_around_a_classifier(inner):
    keys = {"sensitive_features": GROUP}
    model = ft.QuantileRepairClassifier(inner).fit(X, Y, **keys)
    made = to_onnx(model, people_per_point=1)
    agree(made, model, X, inputs={"X": X, "sensitive_feature_0": GROUP}, tolerance=1e-9, **keys)


def tables():
    frame, y, group = table()
    frame["work"] = frame["work"].fillna("?")
    frame["age"] = frame["age"].fillna(0.0)
    columns = ["age", "hours", "work", "level"]
    rows = {name: frame[[name]].to_numpy(dtype=object if name in {"work", "level"} else np.float64) for name in columns}
    words = ColumnTransformer([("n", StandardScaler(), ["age", "hours"]),
                               ("w", OneHotEncoder(sparse_output=False), ["work", "level"])])  # fmt: skip
    return frame[columns], y, group, rows, words


def test_pipelines_of_tables_take_columns():
    frame, y, group, rows, words = tables()
    model = Pipeline([("table", words), ("model", cot(group_specific=True))]).fit(
        frame, y, model__sensitive_features=group
    )
    made = to_onnx(model)
    features = model[:-1].transform(frame)
    given = run(made, **rows, sensitive_feature_0=group)
    np.testing.assert_allclose(
        given["probabilities"], model[-1].predict_proba(features, sensitive_features=group), rtol=0, atol=EXACT
    )


def columns_of(frame):
    """Inputs of a graph: a matrix of one column for each, of doubles or of text."""
    kinds = {name: np.float64 if pd.api.types.is_numeric_dtype(frame[name]) else object for name in frame}
    return {name: frame[[name]].to_numpy(dtype=kind) for name, kind in kinds.items()}


def frames():
    frame, y, group = table()
    return frame[["hours", "count"]].astype(float), y, group


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("kind", ["classifier", "regressor", "repaired", "inside a repair"])
def test_boosted_trees(library, kind):
    module = pytest.importorskip(library)
    names = {"lightgbm": ("LGBMClassifier", "LGBMRegressor"), "xgboost": ("XGBClassifier", "XGBRegressor")}[library]
    options = {"n_estimators": 30, "n_jobs": 1, **({"verbose": -1} if library == "lightgbm" else {})}
    trees = getattr(module, names[kind == "regressor"])(**options)
    frame, y, group = frames()
    labels = (y == "yes").astype(int)
    frame.loc[::5, "hours"] = np.nan
    keys = {"sensitive_features": group}
    if kind == "regressor":
        model = TransportBoostingRegressor(trees, parity_weight=0.3, random_state=0).fit(
            frame, frame["count"] * 2.0, **keys
        )
        given = run(to_onnx(model), X=frame.to_numpy())["prediction"]
        np.testing.assert_allclose(given, model.predict(frame), rtol=1e-6, atol=1e-6)
        return
    if kind == "inside a repair":
        model = ft.QuantileRepairClassifier(trees, cv=2).fit(frame, labels, **keys)
    else:
        options = {"parity_weight": 0.3, "repair": ft.QuantileRepair() if kind == "repaired" else None}
        model = TransportBoostingClassifier(trees, random_state=0, **options).fit(frame, labels, **keys)
    made = to_onnx(model, people_per_point=1)
    inputs = {"X": frame.to_numpy()}
    if kind != "classifier":
        inputs["sensitive_feature_0"] = group
    given = run(made, **inputs)["probabilities"]
    expected = model.predict_proba(frame, **(keys if kind != "classifier" else {}))
    # XGBoost itself sums floats of 32 bits, and a map may be steep.
    steep = library == "xgboost" and kind != "classifier"
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-5 if steep else 1e-6)
    loaded = unpack_model(pack_model(model, people_per_point=1)[0])
    np.testing.assert_array_equal(run(to_onnx(loaded, people_per_point=1), **inputs)["probabilities"], given)


@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(max_iter=1000),
        cot(parity_weight=0.5, group_specific=True),
        ft.QuantileRepairClassifier(LogisticRegression(max_iter=1000)),
    ],
    ids=["plain", "COT of each group", "repair"],
)
def test_models_of_raw_tables_take_their_columns(inner):
    frame, y, group = table()
    raw = frame.assign(sex=group, hired=y)
    model = TableModel(inner, label="hired", sensitive_features=["sex"]).fit(raw)
    new = raw.assign(work=raw["work"].fillna("")).drop(columns="hired")
    new.loc[3, "work"] = "never seen"
    inputs = columns_of(new[model.encoder_.names])
    if model.needs_groups_:
        inputs["sex"] = group
    given = run(to_onnx(model, people_per_point=1), **inputs)
    np.testing.assert_allclose(given["probabilities"], model.predict_proba(new), rtol=0, atol=1e-6)
    assert set(given["label"]) == {"no", "yes"}
    dates = raw.assign(since=pd.date_range("2020-01-01", periods=N))
    with pytest.raises(ValueError, match="Column 'since' is a date"):
        to_onnx(TableModel(LogisticRegression(), label="hired", sensitive_features=["sex"]).fit(dates))


def test_models_of_scikit_learn():
    frame, y, _ = frames()
    frame.loc[::7, "hours"] = np.nan
    trees = HistGradientBoostingRegressor(max_iter=5, loss="poisson").fit(frame, frame["count"])
    given = run(to_onnx(trees), X=frame.to_numpy())["prediction"]
    np.testing.assert_allclose(given, trees.predict(frame), rtol=1e-6)
    impute = SimpleImputer()
    for plain in (make_pipeline(impute, LogisticRegression()), HistGradientBoostingClassifier(max_iter=5)):
        plain.fit(frame, y)
        given = run(to_onnx(plain), X=frame.to_numpy())
        np.testing.assert_allclose(given["probabilities"], plain.predict_proba(frame), rtol=0, atol=1e-6)


def _fitted_groups(values):
    return ft.QuantileRepair(groups=ft.GroupPolicy(missing="group")).fit(
        np.linspace(0, 1, 60), sensitive_features=values
    )


REFUSED = {
    "not fitted": (cot, ValueError, "is not fitted"),
    "blind repair": (
        lambda: ft.BlindRepairClassifier(LogisticRegression(), cv=2).fit(X, Y, sensitive_features=GROUP),
        TypeError, "BlindRepairClassifier cannot be exported"),
    "three classes": (lambda: LogisticRegression().fit(X, np.arange(N) % 3), TypeError, "two classes"),
    "groups of fractions": (lambda: _fitted_groups(np.resize([0.5, 1.5], 60)), ValueError, "fractions, missing or"),
    "missing groups": (lambda: _fitted_groups(np.resize(np.array(["a", None]), 60)), ValueError, "fractions, missing"),
    "mixed groups": (lambda: _fitted_groups(np.resize(np.array(["a", 1], dtype=object), 60)), ValueError, "or mixed"),
    "a step of one's own": (
        lambda: Pipeline([("f", FunctionTransformer(np.tanh)), ("m", cot())]).fit(X, Y, m__sensitive_features=GROUP),
        TypeError, "skl2onnx cannot convert this Pipeline"),
    "no classifier": (lambda: LocalOutlierFactor().fit(X), TypeError, "cannot be exported"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_exported_is_said(case):
    make, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        to_onnx(make())


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install .fairtransport\[onnx\]"):
        to_onnx(dot())


def test_several_sensitive_columns_are_inputs_of_their_own():
    columns = {"sex": GROUP, "young": (X[:, 2] > 0), "region": np.arange(N) % 3 - 1}
    kept = ~(columns["young"] & (columns["region"] == 1))  # a combination that nobody has
    columns = {name: column[kept] for name, column in columns.items()}
    model = cot(group_specific=True).fit(X[kept], Y[kept], sensitive_features=columns)
    made = to_onnx(model)
    inputs = {"X": X[kept], **columns, "young": columns["young"].astype(np.int64)}
    agree(made, model, X[kept], inputs=inputs, sensitive_features=columns)
    one = {"X": X[:1], "sex": np.array(["Male"]), "young": np.array([1]), "region": np.array([1])}
    for change in ({}, {"sex": np.array(["CANARY"])}, {"region": np.array([7])}, {"young": np.array([-1])}):
        with pytest.raises(REFUSES, match=r"out of data bounds|Out of range value") as caught:
            run(made, **{**one, **change})
        assert "CANARY" not in str(caught.value)
    assert run(made, **{**one, "region": np.array([0])})["probabilities"].shape == (1, 2)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor, DecisionTreeClassifier])
def test_forests_and_single_trees(kind):
    model = kind(random_state=0, min_samples_leaf=5).fit(X, Y == "yes")
    loaded = unpack_model(pack_model(model)[0])
    output = "prediction" if kind is RandomForestRegressor else "probabilities"
    expected = getattr(model, "predict_proba", model.predict)(X)
    for one in (model, loaded):
        np.testing.assert_allclose(run(to_onnx(one), X=X)[output], expected, rtol=0, atol=1e-6)


def test_classes_of_every_kind():
    for labels in (Y, Y == "yes", (Y == "yes") * 2 - 1, (Y == "yes") * 2.0):
        model = dot().fit(X, labels, sensitive_features=GROUP)
        given = run(to_onnx(model), X=X)["label"]
        assert given.tolist() == model.predict(X).tolist()
