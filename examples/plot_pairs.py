"""Pairs of groups that differ most.

Race crossed with sex on Adult: the distance between the scores of each pair of groups, in percentage points, of a
logistic regression on five columns:
``python examples/plot_pairs.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.report import PairwiseDisparityDisplay


def main(path: str) -> None:
    """Score test rows and plot."""
    adult = ft.datasets.load_adult()
    X = adult.data[["age", "education_num", "hours_per_week", "capital_gain", "capital_loss"]]
    train, test = adult.split == "train", adult.split == "test"
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train], adult.target[train])
    scores, groups = model.predict_proba(X[test])[:, 1], adult.sensitive_features[test][["race", "sex"]]
    figure, ax = plt.subplots(figsize=(8, 6.5), layout="constrained")
    PairwiseDisparityDisplay.from_predictions(scores, sensitive_features=groups, ax=ax)
    print(f"mean over pairs: {ft.metrics.pairwise_disparity(scores, sensitive_features=groups):.3f}")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_pairs.png")
