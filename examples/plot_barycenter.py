"""The barycenter of three groups.

Quantile functions of the scores of three groups, and of the two barycenters that scores can be moved to: the mean of
the quantile functions by size (Wasserstein-2, the default of repairs) and their median (Wasserstein-1, the paper's):
``python examples/plot_barycenter.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import fairtransport as ft
from fairtransport.report import CdfDisplay


def main(path: str) -> None:
    """Repair scores to both and plot."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.beta(2, 6, 3000), rng.beta(4, 4, 1000), rng.beta(6, 2, 1000)])
    groups = np.repeat(["a", "b", "c"], [3000, 1000, 1000])
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    CdfDisplay.from_predictions(scores, sensitive_features=groups, ax=axes[0])
    quantiles = np.linspace(0, 1, 101)
    for target in ("barycenter_w2", "barycenter"):
        repaired = ft.QuantileRepair(target=target).fit(scores, sensitive_features=groups)
        moved = repaired.transform(scores, sensitive_features=groups)
        axes[1].plot(np.quantile(moved, quantiles), quantiles, label=target)
        print(
            f"{target}: mean score {moved.mean():.3f}, scores moved by {np.mean(np.abs(moved - scores)):.3f} on average"
        )
    axes[1].set(xlabel="Repaired score, all groups", xlim=(0, 1), ylim=(0, 1))
    axes[1].legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_barycenter.png")
