"""The maps of quantile repair: one increasing function for each group.

Equal scores of two groups get different repaired scores; the plot shows how different. Next to it, the distances
between all pairs of groups before and after: ``python examples/plot_repair_maps.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.paper.splits import adult_split
from fairtransport.report import PairwiseDisparityDisplay, TransportMapDisplay


def main(path: str) -> None:
    """Train, repair and plot."""
    split = adult_split()
    model = LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)
    scores = model.predict_proba(split.X_test)[:, 1]
    repair = ft.QuantileRepair("barycenter_w2")
    repair.fit(model.predict_proba(split.X_train)[:, 1], sensitive_features=split.groups_train)
    repaired = repair.transform(scores, sensitive_features=split.groups_test)

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    TransportMapDisplay.from_estimator(repair, ax=axes[0])
    for ax, values, title in zip(axes[1:], (scores, repaired), ("before", "repaired"), strict=True):
        PairwiseDisparityDisplay.from_predictions(values, sensitive_features=split.groups_test, ax=ax)
        ax.set_title(title)
    figure.savefig(path, dpi=110)
    moved = abs(repaired - scores)
    print(f"Scores move by {moved.mean():.3f} on average, by {moved.max():.3f} at most.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_repair_maps.png")
