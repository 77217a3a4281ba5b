"""Distributions of the groups' scores before and after repair.

Logistic regression on Adult, test rows. Top: the distributions, over their common target. Bottom: the share of each
group above every score, with the area that is the disparity: ``python examples/plot_distributions.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.paper.splits import adult_split
from fairtransport.report import CdfDisplay, GroupDistributionDisplay


def main(path: str) -> None:
    """Train, repair and plot."""
    split = adult_split()
    model = LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)
    scores = model.predict_proba(split.X_test)[:, 1]
    repair = ft.QuantileRepair().fit(model.predict_proba(split.X_train)[:, 1], sensitive_features=split.groups_train)
    repaired = repair.transform(scores, sensitive_features=split.groups_test)

    figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
    for column, (title, values) in zip(axes.T, {"before": scores, "repaired": repaired}.items(), strict=True):
        for ax, display in zip(column, (GroupDistributionDisplay, CdfDisplay), strict=True):
            display.from_predictions(values, sensitive_features=split.groups_test, ax=ax)
        disparity = ft.metrics.strong_pairwise_disparity(values, sensitive_features=split.groups_test)
        print(f"{title}: pairwise disparity {disparity:.3f}")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_distributions.png")
