"""The penalty in a plain training loop: one more term in the loss. ``python examples/torch_plain.py``."""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.torch import TransportPenalty


def make_rows(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return features that differ between two groups, labels and groups; one row in ten is in the second group."""
    groups = (torch.rand(n) < 0.1).long()
    X = torch.randn(n, 4) + 1.5 * groups[:, None] * torch.tensor([1.0, 1.0, 0.0, 0.0])
    y = (X.sum(dim=1) + torch.randn(n) > 1.0).float()
    return X, y, groups


def train(weight: float) -> float:
    """Train a small network and return the disparity of new rows."""
    torch.manual_seed(0)
    X, y, groups = make_rows(4000)
    network = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    penalty = TransportPenalty(2)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=400)
    for _ in range(400):
        rows = torch.randint(len(X), (64,))
        logits = network(X[rows])[:, 0]
        loss = binary_cross_entropy_with_logits(logits, y[rows])
        loss = loss + weight * penalty(torch.sigmoid(logits), groups[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    X, _, groups = make_rows(10_000)
    with torch.no_grad():
        scores = torch.sigmoid(network(X))[:, 0]
    return strong_pairwise_disparity(scores.double().numpy(), sensitive_features=groups.numpy())


if __name__ == "__main__":
    print(f"disparity without the penalty {train(0.0):.3f}, with it {train(1.0):.3f}")
