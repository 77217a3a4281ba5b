"""The choice of the automatic weight.

Rank disparity and information kept along the path of weights that ``fit`` tried, and the weight that it took: the
smallest at which groups differ no more than by chance, or beyond which too much would be lost:
``python examples/plot_weight_path.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import fairtransport as ft


def main(path: str) -> None:
    """Fit and plot the path."""
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], size=60_000)
    X = rng.normal(size=(60_000, 4)) + np.array([0.5, 0.2, 0.0, 0.0]) * (group == "b")[:, None]
    y = (X.sum(axis=1) + rng.logistic(size=60_000) > 1).astype(int)
    model = ft.TransportClassifier().fit(X, y, sensitive_features=group)
    tried = model.path_
    order = np.argsort(tried["weight"])
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for name in ("rank_disparity", "information_kept"):
        ax.plot(tried["weight"][order], tried[name][order], marker="o", label=name.replace("_", " "))
    ax.axvline(model.parity_weight_, color="0.5", linestyle="--", label=f"chosen: {model.parity_weight_:.2g}")
    ax.set(xscale="symlog", xlabel="Parity weight", ylim=(0, 1.05))
    ax.legend(frameon=False)
    print(model.outcome_)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_weight_path.png")
