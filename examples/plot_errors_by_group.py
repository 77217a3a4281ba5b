"""Errors and calibration by group.

An audit with labels: true and false positive rates of men and women, and how often a score comes true, before and
after a repair to parity. Parity of scores does not make errors equal, and ends calibration:
``python examples/plot_errors_by_group.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.report import ErrorRateDisplay, ReliabilityDisplay


def main(path: str) -> None:
    """Repair, audit and plot."""
    adult = ft.datasets.load_adult()
    X, y = pd.get_dummies(adult.data.drop(columns=["race", "sex"]), dtype=float), adult.target
    sex, train, test = adult.sensitive_features["sex"], adult.split == "train", adult.split == "test"
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[train], y[train])
    repair = ft.QuantileRepair().fit(model.predict_proba(X[train])[:, 1], sensitive_features=sex[train])
    before = model.predict_proba(X[test])[:, 1]
    after = repair.transform(before, sensitive_features=sex[test])
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    few = Inference(n_bootstrap=100, n_permutations=100)
    for row, (name, scores) in zip(axes, {"before": before, "after": after}.items(), strict=True):
        audit = ft.audit(scores, y[test], sensitive_features=sex[test], inference=few)
        for ax, display in zip(row, (ErrorRateDisplay, ReliabilityDisplay), strict=True):
            display.from_audit(audit, ax=ax)
            ax.set_xlabel(f"{ax.get_xlabel()} ({name})")
        odds = ft.metrics.equalized_odds_difference(y[test], scores, sensitive_features=sex[test])
        print(f"{name}: difference of odds {odds:.2f}")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_errors_by_group.png")
