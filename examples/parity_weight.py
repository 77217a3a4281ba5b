"""One meaning of ``parity_weight`` on every data set.

Fits continuous optimal transport (COT) along a path of weights on Adult, German Credit and Communities, and plots the
share of the initial model's disparity, rank disparity and information that is left on test rows:
``python examples/parity_weight.py out.png``.
"""

import sys
import warnings

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from fairtransport import FairnessWarning, TransportClassifier
from fairtransport.metrics import rank_disparity, strong_pairwise_disparity
from fairtransport.paper.splits import Split, adult_split, communities_splits, german_splits

WEIGHTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
COLOURS = ("#0072B2", "#D55E00", "#009E73")
TITLES = ("disparity (SPDD) left", "rank disparity left", "information kept")


def measure_path(split: Split) -> np.ndarray:
    """Return the disparity, rank disparity and gain in log-loss over a constant of the test rows, for each weight."""
    models = TransportClassifier().fit_path(
        split.X_train, split.y_train, WEIGHTS, sensitive_features=split.groups_train
    )
    constant = log_loss(split.y_test, np.full(len(split.y_test), np.mean(split.y_train)))
    measured = []
    for model in models:
        scores = model.predict_proba(split.X_test)[:, 1]
        disparities = [
            metric(scores, sensitive_features=split.groups_test)
            for metric in (strong_pairwise_disparity, rank_disparity)
        ]
        measured.append([*disparities, constant - log_loss(split.y_test, scores)])
    return np.array(measured)


def main(path: str) -> None:
    """Fit and plot."""
    warnings.simplefilter("ignore", FairnessWarning)  # large weights cost most of the information, as the plot shows
    data = {"Adult": [adult_split()], "German Credit": german_splits(8), "Communities": communities_splits(4)}
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained", sharex=True, sharey=True)
    for (name, splits), colour in zip(data.items(), COLOURS, strict=True):
        paths = np.array([measure_path(split) for split in splits])
        left = (paths / paths[:, :1]).mean(axis=0)
        for axis, values in zip(axes, left.T, strict=True):
            axis.plot(range(len(WEIGHTS)), values, color=colour, marker="o", label=name)
    for axis, title in zip(axes, TITLES, strict=True):
        axis.set(title=title, xlabel="parity_weight", ylim=(-0.05, 1.05))
        axis.set_xticks(range(len(WEIGHTS)), [f"{w:g}" for w in WEIGHTS])
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "parity_weight.png")
