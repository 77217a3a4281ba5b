"""Write the example files of the current format version, which every later version must read.

    python scripts/make_model_files.py

Run this once for each new format version, before it is released; existing files are never overwritten.
"""
# ruff: noqa: INP001

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairtransport as ft
from fairtransport.storage import FORMAT_VERSION
from fairtransport.tabular import TableModel

FOLDER = Path(__file__).parents[1] / "tests" / "persistence" / "data"


def main() -> None:
    """Write the examples that do not exist yet."""
    missing = [write for name, write in EXAMPLES.items() if not (FOLDER / name).exists()]
    if not missing:
        raise SystemExit(f"{', '.join(EXAMPLES)} exist; a released file is never overwritten.")
    for write in missing:
        write()


def write_models() -> None:
    """Fit a small model of each kind; write it, and its scores of a few rows."""
    rng = np.random.default_rng(0)
    group = rng.choice(["Female", "Male"], 400)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=400) + (group == "Male"),
            "hours": rng.normal(size=400),
            "work": rng.choice(["private", "state", "self"], 400),
        }
    )
    y = (frame["age"] + frame["hours"] + rng.logistic(size=400) > 0.5).to_numpy().astype(int)
    frame.loc[::7, "age"] = np.nan
    X = frame[["age", "hours"]].fillna(0).to_numpy()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    prepare = ColumnTransformer([("numbers", numbers, ["age", "hours"]), ("words", OneHotEncoder(), ["work"])])
    models = {
        "cot": ft.ContinuousTransportClassifier().fit(X, y, sensitive_features=group),
        "dot": ft.DiscreteTransportClassifier(group_specific=True).fit(X, y, sensitive_features=group),
        "repair": ft.QuantileRepairClassifier(make_pipeline(prepare, LogisticRegression()), amount=0.9).fit(
            frame, y, sensitive_features=group
        ),
    }
    few = slice(0, 12)
    scores = {}
    for name, model in models.items():
        again = ft.load(ft.save(model, FOLDER / f"version{FORMAT_VERSION}-{name}.ft"))
        features = frame[few] if name == "repair" else X[few]
        scores[name] = again.predict_proba(features, sensitive_features=group[few])[:, 1].tolist()
    rows = json.loads(frame[few].to_json(orient="records"))
    content = {"rows": rows, "group": group[few].tolist(), "scores": scores}
    (FOLDER / f"version{FORMAT_VERSION}.json").write_text(json.dumps(content, indent=1) + "\n")


def write_table_model() -> None:
    """Fit a model of a raw table with all kinds of columns."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 400)
    hours = rng.normal(35, 5, 400) + 4 * (sex == "M")
    frame = pd.DataFrame(
        {
            "sex": sex,
            "hours": [None if k % 11 == 0 else f"{value:.2f}" for k, value in enumerate(hours)],
            "job": rng.choice(["cook", "smith", "judge", "?"], 400),
            "city": rng.choice(["Bath", "York", *(f"village {k}" for k in range(40))], 400),
            "joined": [str(day) for day in np.datetime64("2020-01-01") + rng.integers(0, 900, 400)],
            "hired": np.where(hours + rng.normal(0, 5, 400) > 38, "yes", "no"),
        }
    )
    estimator = ft.ContinuousTransportClassifier(group_specific=True)
    model = TableModel(estimator, label="hired", sensitive_features=["sex"], aware=True).fit(frame)
    again = ft.load(ft.save(model, FOLDER / f"version{FORMAT_VERSION}-table.ft"))
    rows = json.loads(frame[:12].to_json(orient="records"))
    content = {"rows": rows, "scores": again.score_rows(frame[:12]).scores.tolist()}
    (FOLDER / f"version{FORMAT_VERSION}-table.json").write_text(json.dumps(content, indent=1) + "\n")


EXAMPLES = {
    f"version{FORMAT_VERSION}.json": write_models,
    f"version{FORMAT_VERSION}-table.json": write_table_model,
}

if __name__ == "__main__":
    main()
