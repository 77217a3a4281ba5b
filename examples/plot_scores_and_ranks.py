"""A disparity that falls because all scores shrink.

Scores are moved toward their mean. The disparity in units of the score falls to nothing while every ranking stays as
unequal as before, which the rank disparity shows:
``python examples/plot_scores_and_ranks.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import fairtransport as ft


def main(path: str) -> None:
    """Shrink scores and plot both disparities."""
    rng = np.random.default_rng(0)
    scores, groups = np.append(rng.beta(2, 4, 2000), rng.beta(4, 2, 2000)), np.repeat(["a", "b"], 2000)
    factors = np.linspace(1, 0.05, 12)
    shrunk = [scores.mean() + factor * (scores - scores.mean()) for factor in factors]
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, metric in {
        "disparity": ft.metrics.pairwise_disparity,
        "rank disparity": ft.metrics.rank_disparity,
    }.items():
        values = [metric(one, sensitive_features=groups) for one in shrunk]
        ax.plot(factors, values, marker="o", label=name)
        print(f"{name}: {values[0]:.2f} at first, {values[-1]:.2f} at the end")
    ax.invert_xaxis()
    ax.set(xlabel="Factor by which scores are shrunk", ylabel="Disparity", ylim=(0, None))
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_scores_and_ranks.png")
