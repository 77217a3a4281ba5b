"""A network with two sensitive attributes: one penalty for each, or one for their combinations.

Parity by sex and parity by race do not imply parity by both. Three networks on Adult: without a penalty, with the sum
of a penalty by sex and one by race, and with one penalty over the four crossed groups; each is measured in all three
ways.

``python examples/network_two_attributes.py out.png``: prints test metrics and plots them; about half a minute.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from fairtransport.groups import make_groups
from fairtransport.metrics import error_rate, noise_floor, strong_pairwise_disparity
from fairtransport.paper.splits import adult_split
from fairtransport.torch import TransportPenalty

BATCH, EPOCHS = 64, 6
WEIGHT = 0.6
WAYS = {"no penalty": (), "by sex + by race": ("sex", "race"), "by sex x race": ("sex x race",)}
COLOURS = ("#0072b2", "#e08a00", "#009e73")


def groupings(sensitive):
    """Return the groups of the rows by sex, by race and by both."""
    alone = {name: make_groups(sensitive[name]) for name in ("sex", "race")}
    return {**alone, "sex x race": make_groups(sensitive)}


def train(X, y, groups, ways):
    """Train a network with one penalty for each grouping."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    penalties = nn.ModuleDict({way: TransportPenalty(groups[way]) for way in ways})
    codes = {way: torch.tensor(groups[way].codes) for way in ways}
    optimizer = torch.optim.Adam(network.parameters())
    steps = EPOCHS * (len(y) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps, pct_start=0.1)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y))[: len(y) // BATCH * BATCH].split(BATCH):
            logits = network(X[rows])[:, 0]
            loss = binary_cross_entropy_with_logits(logits, y[rows])
            for way, penalty in penalties.items():
                loss = loss + WEIGHT * penalty(torch.sigmoid(logits), codes[way][rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network


def main(path: str) -> dict[str, dict[str, float]]:
    """Train, print and plot."""
    split = adult_split()
    X, y = torch.tensor(split.X_train.toarray(), dtype=torch.float32), torch.tensor(split.y_train, dtype=torch.float32)
    training, test = groupings(split.sensitive_train), groupings(split.sensitive_test)
    X_test = torch.tensor(split.X_test.toarray(), dtype=torch.float32)
    metrics, floor = {}, {}
    for name, ways in WAYS.items():
        network = train(X, y, training, ways)
        with torch.no_grad():
            scores = torch.sigmoid(network(X_test))[:, 0].double().numpy()
        metrics[name] = {way: strong_pairwise_disparity(scores, sensitive_features=test[way]) for way in test}
        metrics[name]["error"] = error_rate(split.y_test, scores)
        print(f"{name:17s} " + "   ".join(f"{way} {figure:.3f}" for way, figure in metrics[name].items()))
    for way, groups in test.items():  # noise floor of the last network, in groups of these sizes
        floor[way] = noise_floor(strong_pairwise_disparity, scores, sensitive_features=groups, random_state=0).mean
    figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
    position = np.arange(len(test))
    for number, (name, figures) in enumerate(metrics.items()):
        label = f"{name} (error {figures['error']:.3f})"
        axis.bar(
            position + 0.27 * (number - 1), [figures[way] for way in test], 0.25, color=COLOURS[number], label=label
        )
    axis.hlines(
        list(floor.values()), position - 0.4, position + 0.4, color="black", linestyle="--", label="noise floor"
    )
    axis.set_xticks(position, [f"measured by {way}" for way in test])
    axis.set(
        ylabel="disparity (SPDD), test rows", title="Adult: disparity of networks trained with different penalties"
    )
    axis.legend(frameon=False)
    axis.grid(alpha=0.3, axis="y")
    figure.savefig(path, dpi=150)
    return metrics


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "network_two_attributes.png")
