"""Aware and blind: the price of not using the group.

The trade-off of one gradient boosting model, repaired with the group at hand and by a model of the groups, on rows
that neither was fitted to. What the features do not tell apart costs more without the group:
``python examples/plot_aware_and_blind.py out.png``.
"""

import sys
import warnings

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import fairtransport as ft


def main(path: str) -> None:
    """Repair both ways and plot."""
    warnings.simplefilter("ignore", ft.FairnessWarning)  # of what so few rows cannot show
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], size=8000)
    X = rng.normal(size=(8000, 3)) + (group == "b")[:, None] * [0.9, 0.3, 0.0]
    y = (X @ [1.0, 2.0, 0.5] + rng.logistic(size=8000) > 0.5).astype(int)
    train, new = slice(0, 4000), slice(4000, None)
    trees = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, random_state=0)
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    models = {"aware": ft.QuantileRepairClassifier(trees), "blind": ft.BlindRepairClassifier(trees)}
    for name, model in models.items():
        model.fit(X[train], y[train], sensitive_features=group[train])
        keywords = {"sensitive_features": group[new]} if name == "aware" else {}
        curve = []
        for amount in (0, 0.25, 0.5, 0.75, 1):
            scores = model.set_params(amount=amount).predict_proba(X[new], **keywords)[:, 1]
            ranks = ft.metrics.rank_disparity(scores, sensitive_features=group[new])
            curve.append((ranks, ft.metrics.error_rate(y[new], scores)))
        ax.plot(*zip(*curve, strict=True), marker="o", label=name)
        print(f"{name}: error {curve[-1][1]:.3f} at rank disparity {curve[-1][0]:.3f}")
    ax.set(xlabel="Rank disparity, new rows", ylabel="Error, new rows")
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_aware_and_blind.png")
