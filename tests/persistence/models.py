"""Fitted models of every kind that a file holds."""

import copy
import functools
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from tests import worlds

import fairtransport as ft
from fairtransport.linear import OnlineSettings, SgdSettings
from fairtransport.persistence import pack_model, unpack_model
from fairtransport.storage import pack_container, unpack_container
from fairtransport.tabular import TableModel

N = 600


def people(n=N, seed=0):
    return worlds.people(n, seed, groups=("Female", "Male"), labels=("no", "yes"))


def table(n=N, seed=0):
    X, y, group = people(n, seed)
    rng = np.random.default_rng(seed + 1)
    frame = pd.DataFrame(
        {
            "age": X[:, 0],
            "hours": X[:, 1],
            "work": rng.choice(["private", "state", "self", "none"], n, p=[0.6, 0.3, 0.08, 0.02]),
            "level": rng.choice(["low", "high"], n),
            "count": rng.integers(5, size=n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "work"] = None
    return frame, y, group


def preprocessing():
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    rare = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=60, dtype=np.float32)
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), rare)
    ordered = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    return ColumnTransformer(
        [
            ("numbers", numbers, ["age", "hours"]),
            ("words", words, ["work"]),
            ("ordered", ordered, ["work", "level"]),
            ("dropped", OneHotEncoder(drop="if_binary", sparse_output=False), ["level"]),
        ],
        remainder="passthrough",
    )


SGD = SgdSettings(n_updates=300, random_state=0)


def cot(**options):
    return ft.TransportClassifier(**options)


def dot(**options):
    return ft.TransportClassifier(distance="discrete", **options)


def _on_arrays(model, **options):
    X, y, group = people()
    return model.fit(X, y, sensitive_features=group, **options), X, group


def _on_table(model, **options):
    frame, y, group = table()
    return model.fit(frame, y, **options), frame, group


def _scores():
    X, _, group = people()
    return 1 / (1 + np.exp(-X[:, 0])), group


def _repair_of_scores(**options):
    scores, group = _scores()
    return ft.QuantileRepair(**options).fit(scores, sensitive_features=group), scores, group


def _repair_of_table():
    scores, group = _scores()
    frame = pd.DataFrame({"s": scores, "sex": group})
    return ft.repair.TableRepair(score="s", sensitive_features="sex").fit(frame).repair_, scores, group


def _pipeline_with(step, **options):
    _, _, group = table()
    pipe = Pipeline([("table", preprocessing()), ("model", step)])
    return _on_table(pipe, **({"model__sensitive_features": group} if options.get("fair") else {}))


def _of_raw_table(estimator, **options):
    frame, y, group = table()
    raw = frame.assign(sex=group, hired=y, since=pd.date_range("2020-01-01", periods=N, freq="36h"))
    made = TableModel(estimator, label="hired", sensitive_features=["sex"], **options).fit(raw)
    return made, raw, group


X0, Y0, G0 = people()
EXACT = {
    "COT": lambda: _on_arrays(cot()),
    "COT, entropy, paper's": lambda: _on_arrays(
        cot(distance=ft.ContinuousDistance("entropy", opposite_duals=False), solver=SGD, online=OnlineSettings(300))
    ),
    "COT, halfway": lambda: _on_arrays(cot(amount=0.5)),
    "COT of each group": lambda: _on_arrays(cot(group_specific=True, target="Male")),
    "COT of a fitted model": lambda: _on_arrays(cot(estimator=LogisticRegression(C=0.5).fit(X0, Y0))),
    "COT of numbers as groups": lambda: (
        cot(parity_weight=0.1).fit(X0, Y0 == "yes", sensitive_features={"a": (G0 == "Male") * 1, "b": X0[:, 2] > 0}),
        X0, G0),
    "COT to given scores": lambda: _on_arrays(cot(target=np.linspace(0.1, 0.9, 37))),
    "DOT": lambda: _on_arrays(dot()),
    "DOT with weights": lambda: _on_arrays(
        dot(solver=replace(SGD, average=False)), sample_weight=np.arange(N) % 3 + 1.0
    ),
    "logistic regression": lambda: (LogisticRegression(class_weight={"yes": 2.0, "no": 1.0}).fit(X0, Y0), X0, G0),
    "pipeline": lambda: _pipeline_with(LogisticRegression(C=0.3)),
    "pipeline to COT": lambda: _pipeline_with(cot(), fair=True),
    "raw table": lambda: _of_raw_table(LogisticRegression(), aware=True, categorical=["count"]),
    "raw table to COT": lambda: _of_raw_table(cot(group_specific=True), drop=["level"]),
    "pipeline of arrays": lambda: (make_pipeline(StandardScaler(with_mean=False), LogisticRegression()).fit(X0, Y0),
                                   X0, G0),
}  # fmt: skip
SUMMED_UP = {
    "repair": _repair_of_scores,
    "repair, half": lambda: _repair_of_scores(amount=0.5, target="barycenter_w2"),
    "repair to given scores": lambda: _repair_of_scores(target=np.random.default_rng(5).random(5001)),
    "repair of a table": _repair_of_table,
    "repair of logistic regression": lambda: _on_arrays(ft.QuantileRepairClassifier(LogisticRegression())),
    "repair of a fitted model": lambda: _on_arrays(ft.QuantileRepairClassifier(LogisticRegression().fit(X0, Y0))),
    "repair of COT": lambda: _on_arrays(
        ft.QuantileRepairClassifier(
            cot().fit(X0, Y0, sensitive_features=G0), ft.QuantileRepair(list(np.linspace(0, 1, 50)))
        )
    ),
    "repair of a raw table": lambda: _of_raw_table(ft.QuantileRepairClassifier(LogisticRegression())),
    "repair of a pipeline": lambda: _on_table(
        ft.QuantileRepairClassifier(Pipeline([("table", preprocessing()), ("model", LogisticRegression())]), cv=3),
        sensitive_features=table()[2]),
}  # fmt: skip


@functools.cache
def fitted(name):
    """The model, its features (or scores) and the groups of their rows."""
    return {**EXACT, **SUMMED_UP}[name]()


def scores_of(model, X, group):
    """What users get from the model."""
    if isinstance(model, TableModel):
        return model.score_rows(X).scores
    if isinstance(model, ft.QuantileRepair):
        return model.transform(X, sensitive_features=group)
    needs = isinstance(model, ft.QuantileRepairClassifier) or getattr(model, "group_specific", False)
    return model.predict_proba(X, **({"sensitive_features": group} if needs else {}))[:, 1]


def forge(model, change, people_per_point=5):
    """Load the file of a model, with correct checksums, after ``change(JSON of the model, arrays)``."""
    container = unpack_container(pack_model(model, people_per_point)[0], kind="model")
    schema, arrays = copy.deepcopy(container.schema), dict(container.arrays)
    change(schema["model"], arrays)
    return unpack_model(
        pack_container("model", schema, {name: np.asarray(one, order="C") for name, one in arrays.items()})
    )


def load_json(model, arrays=None):
    """Load a file, with correct checksums, that has this JSON as its model."""
    return unpack_model(pack_container("model", {"model": model, "people_per_point": 5, "changes": {}}, arrays or {}))
