"""The example of the README: scores of men and women before and after training for parity.

A logistic regression on Adult scores men higher than women although sex is not among its features. Trained for
parity, the share of women and of men above a threshold is nearly the same at every threshold, on test rows:
``python examples/plot_before_after.py out.png``.
"""

import sys
import warnings

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

import fairtransport as ft
from fairtransport.report import CdfDisplay


def main(path: str) -> None:
    """Train and plot."""
    warnings.simplefilter("ignore", ft.FairnessWarning)  # of what training rows show; the picture has test rows
    data = ft.datasets.load_adult()
    X, y = pd.get_dummies(data.data.drop(columns=["race", "sex"]), dtype=float), data.target
    sex, train, test = data.sensitive_features["sex"], data.split == "train", data.split == "test"
    model = ft.TransportClassifier().fit(X[train], y[train], sensitive_features=sex[train])

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    models = {"logistic regression": model.initial_estimator_, "trained for parity": model}
    for ax, (name, fitted) in zip(axes, models.items(), strict=True):
        scores = fitted.predict_proba(X[test])[:, 1]
        CdfDisplay.from_predictions(scores, sensitive_features=sex[test], ax=ax)
        error = ft.metrics.error_rate(y[test], scores)
        disparity = ft.metrics.pairwise_disparity(scores, sensitive_features=sex[test])
        ax.set_xlabel(f"Score, {name} (error {error:.3f})")
        print(f"{name}: error {error:.3f}, disparity {disparity:.3f}")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_before_after.png")
