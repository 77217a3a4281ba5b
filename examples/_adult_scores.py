"""A table of scores in several Parquet files, for the examples on clusters."""

from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairtransport.datasets import load_adult

FEATURES = ["age", "education_num", "hours_per_week", "capital_gain", "capital_loss"]


def write_scores(folder: Path, n_files: int = 8) -> str:
    """Score every row of Adult with a logistic regression and write the scores; return the folder's name."""
    adult = load_adult()
    features, trained = adult.data[FEATURES], adult.split == "train"
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[trained], adult.target[trained])
    table = adult.sensitive_features[["race", "sex"]].assign(
        person=np.arange(len(features)), score=model.predict_proba(features)[:, 1], income=adult.target.to_numpy()
    )
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(np.array_split(np.arange(len(table)), n_files)):
        table.iloc[rows].to_parquet(folder / f"part-{number}.parquet", index=False)
    return str(folder)
