"""The trade-off of a neural network on Adult, with and without the transport penalty.

Four groups (race x sex), both among the features; official split; batches of 64, in which the two small groups have
three rows each. The network is first trained without the penalty, then further with it, at each of several weights.

``python examples/network_adult.py out.png [number of seeds]``: prints test metrics and plots them; about a minute per
seed.
"""

import copy
import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from fairtransport.metrics import error_rate, strong_pairwise_disparity
from fairtransport.paper.splits import Split, adult_split
from fairtransport.report.style.figures import group_styles
from fairtransport.torch import TransportPenalty

WEIGHTS = (0.3, 0.6, 1.0, 2.0, 4.0)
SHOWN = 2.0  # the weight whose scores are plotted
BATCH = 64


class Rows:
    """Features, labels and group codes as tensors."""

    def __init__(self, X, y, groups) -> None:
        self.X = torch.tensor(X.toarray(), dtype=torch.float32)
        self.y, self.codes = torch.tensor(y, dtype=torch.float32), torch.tensor(groups.codes)


def train(
    network: nn.Module, rows: Rows, *, epochs: int, penalty: nn.Module | None = None, weight: float = 0.0
) -> None:
    """Train with Adam on shuffled batches; the learning rate increases for a tenth of the steps and then decreases."""
    n_batches = len(rows.y) // BATCH
    optimizer = torch.optim.Adam(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=epochs * n_batches, pct_start=0.1)
    for _ in range(epochs):
        for batch in torch.randperm(len(rows.y))[: n_batches * BATCH].split(BATCH):
            logits = network(rows.X[batch])[:, 0]
            loss = binary_cross_entropy_with_logits(logits, rows.y[batch])
            if penalty is not None:
                loss = loss + weight * penalty(torch.sigmoid(logits), rows.codes[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def scores_of(network: nn.Module, rows: Rows) -> np.ndarray:
    """Return the probabilities of class 1."""
    with torch.no_grad():
        return torch.sigmoid(network(rows.X))[:, 0].double().numpy()


def run(split: Split, seed: int) -> dict[float, np.ndarray]:
    """Return the scores of the test rows at each weight; 0 is the network without the penalty."""
    training = Rows(split.X_train, split.y_train, split.groups_train)
    test = Rows(split.X_test, split.y_test, split.groups_test)
    torch.manual_seed(seed)
    plain = nn.Sequential(nn.Linear(training.X.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    train(plain, training, epochs=3)
    unit = TransportPenalty(split.groups_train).parity_unit(scores_of(plain, training), training.y, training.codes)
    scores = {0.0: scores_of(plain, test)}
    for weight in WEIGHTS:
        network, penalty = copy.deepcopy(plain), TransportPenalty(split.groups_train)
        train(network, training, epochs=6, penalty=penalty, weight=weight * unit)
        scores[weight] = scores_of(network, test)
    return scores


def measure(split: Split, scores: np.ndarray) -> tuple[float, float]:
    """Return the error rate and the strong pairwise demographic disparity (SPDD)."""
    disparity = strong_pairwise_disparity(scores, sensitive_features=split.groups_test)
    return error_rate(split.y_test, scores), disparity


def draw(split: Split, runs: list[dict[float, np.ndarray]], figures: np.ndarray, path: str) -> None:
    """Plot the groups' scores without and with the penalty, and the trade-off curve."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", width_ratios=(1, 1, 1.25))
    grid, groups = np.linspace(0, 1, 201), split.groups_test
    axes[1].sharey(axes[0])
    for axis, weight, title in zip(
        axes, (0.0, SHOWN), ("without the penalty", f"parity weight {SHOWN:g}"), strict=False
    ):
        for rows, name, style in zip(groups.rows, groups.names, group_styles(groups), strict=True):
            above = 1.0 - np.searchsorted(np.sort(runs[0][weight][rows]), grid) / len(rows)
            axis.plot(grid, above, color=style.colour, dashes=style.dashes, label=name)
        axis.set(title=title, xlabel="score", ylabel="share of the group above it", xlim=(0, 1), ylim=(0, 1))
    axes[0].legend(frameon=False, fontsize=8)
    errors, disparities = figures[..., 0], figures[..., 1]
    for seed in range(len(runs)):
        axes[2].plot(disparities[seed], errors[seed], color="#bbbbbb", linewidth=0.8)
    axes[2].plot(disparities.mean(axis=0), errors.mean(axis=0), color="#0072b2", marker="o")
    for weight, x, y in zip((0.0, *WEIGHTS), disparities.mean(axis=0), errors.mean(axis=0), strict=True):
        axes[2].annotate(f"{weight:g}", (x, y), textcoords="offset points", xytext=(6, 4), fontsize=8)
    axes[2].set(
        title=f"test rows, {len(runs)} seeds; numbers are weights", xlabel="disparity (SPDD)", ylabel="error rate"
    )
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main(path: str, n_seeds: int) -> np.ndarray:
    """Train, print and plot."""
    split = adult_split()
    runs = [run(split, seed) for seed in range(n_seeds)]
    figures = np.array([[measure(split, scores) for scores in run_scores.values()] for run_scores in runs])
    print("weight   Err-.5            SPDD")
    for index, weight in enumerate((0.0, *WEIGHTS)):
        error, disparity = figures[:, index].mean(axis=0)
        each = ", ".join(f"{e:.4f} at {d:.3f}" for e, d in figures[:, index])
        print(f"{weight:6g}   {error:.4f}   {disparity:.3f}   ({each})")
    draw(split, runs, figures, path)
    return figures


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "network_adult.png", int(sys.argv[2]) if len(sys.argv) > 2 else 1)
