"""Predictions of a regression before and after repair.

Rates of violent crime in communities with fewer and with more black people, predicted by ridge regression: the
distributions of predictions become one, at the price of a larger error:
``python examples/plot_regression.py out.png``.
"""

import sys
import warnings

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

import fairtransport as ft


def main(path: str) -> None:
    """Repair and plot."""
    warnings.simplefilter("ignore", ft.FairnessWarning)  # of what 1,400 rows cannot show
    crime = ft.datasets.load_communities(task="regression")
    groups = np.where(crime.data["racepctblack"] > 0.06, "more", "fewer")
    X, y = crime.data.dropna(axis=1).to_numpy(), crime.target.to_numpy()
    train, test = np.split(np.random.default_rng(0).permutation(len(X)), [1400])
    model = ft.QuantileRepairRegressor(RidgeCV([1, 10, 100]))
    model.fit(X[train], y[train], sensitive_features=groups[train])
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
    for ax, amount in zip(axes, (0, 0.5, 1), strict=True):
        model.amount = amount
        predicted = model.predict(X[test], sensitive_features=groups[test])
        error = np.sqrt(np.mean((predicted - y[test]) ** 2))
        for name in ("fewer", "more"):
            ax.hist(predicted[groups[test] == name], bins=25, range=(-0.1, 0.9), density=True, alpha=0.5, label=name)
        ax.set_xlabel(f"Prediction (amount {amount}, error {error:.3f})")
        ranks = ft.metrics.rank_disparity(predicted, sensitive_features=groups[test])
        print(f"amount {amount}: root mean squared error {error:.3f}, rank disparity {ranks:.3f}")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_regression.png")
