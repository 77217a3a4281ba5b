"""The cross-validated trade-off between error and disparity.

Two methods on German Credit, people above and below thirty: quantile repair around logistic regression, and continuous
optimal transport (COT), a linear model trained for parity, with weights for each group. Both need the group at
prediction: ``python examples/plot_frontier.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.paper.splits import german_splits
from fairtransport.report import FrontierDisplay


def main(path: str) -> None:
    """Compute and plot both curves."""
    (split,) = german_splits(1)
    X, y, groups = split.X_train, split.y_train, split.groups_train
    options = {"sensitive_features": groups, "amounts": [0, 0.25, 0.5, 0.75, 1], "cv": 5, "random_state": 0}
    curves = {
        "Quantile repair": ft.frontier(ft.QuantileRepairClassifier(LogisticRegression(max_iter=1000)), X, y, **options),
        "COT": ft.frontier(ft.TransportClassifier(parity_weight=1.0, group_specific=True), X, y, **options),
    }
    for name, curve in curves.items():
        print(name, curve, sep="\n")
    FrontierDisplay.from_frontier(curves).figure_.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_frontier.png")
