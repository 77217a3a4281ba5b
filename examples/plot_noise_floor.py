"""The noise floor: what chance alone shows.

Two groups with the same distribution of scores. Their rank disparity is never zero, and falls with the square root of
the number of rows. A disparity near this line is no evidence of a difference:
``python examples/plot_noise_floor.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import fairtransport as ft


def main(path: str) -> None:
    """Draw samples and plot."""
    rng = np.random.default_rng(0)
    sizes = np.array([20, 50, 100, 200, 500, 1000, 2000, 5000])
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for size in sizes:
        groups = np.repeat(["a", "b"], size)
        seen = [ft.metrics.rank_disparity(rng.random(2 * size), sensitive_features=groups) for _ in range(20)]
        ax.plot(np.full(20, size), seen, "o", color="#0072B2", alpha=0.3)
        print(f"{size} rows in each group: {np.mean(seen):.3f} on average")
    formula = np.sqrt(2 / np.pi) * np.pi / 8 * np.sqrt(2 / sizes)
    ax.plot(sizes, formula, color="#D55E00", label="mean, by formula")
    ax.axhline(0.02, color="0.5", linestyle="--", label="2 percentage points: material")
    ax.set(xscale="log", xlabel="Rows in each group", ylabel="Rank disparity of equal groups")
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_noise_floor.png")
