"""Dual variables: where one sample has more mass than the other.

The optimal dual variables of two samples, with both regularizers, and the value of the objective, which is near
their Wasserstein-1 distance: ``python examples/plot_duals.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import fairtransport as ft
from fairtransport.report import DualDisplay
from fairtransport.transport.line import wasserstein


def main(path: str) -> None:
    """Solve and plot."""
    rng = np.random.default_rng(0)
    low, high = rng.beta(2, 5, size=2000), rng.beta(5, 2, size=2000)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    for ax, regularizer in zip(axes, ("l2", "entropy"), strict=True):
        solution = ft.transport.solve_dual(low, high, regularizer=regularizer, n_updates=5000, random_state=0)
        DualDisplay.from_solution(solution, names=("low scores", "high scores"), ax=ax)
        ax.set_xlabel(f"Score ({regularizer})")
    figure.savefig(path, dpi=110)
    print(f"Wasserstein-1 distance of the two samples: {wasserstein(low, high):.3f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_duals.png")
