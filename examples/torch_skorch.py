"""The penalty in skorch: a scikit-learn estimator with ``parity_weight``, which ``frontier`` accepts.

``python examples/torch_skorch.py``
"""

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from skorch import NeuralNetBinaryClassifier

import fairtransport as ft


class FairNet(NeuralNetBinaryClassifier):
    """A binary classifier whose loss has the penalty; ``parity_weight`` has the meaning of the estimators."""

    def __init__(self, *args: Any, parity_weight: float = 1.0, **options: Any) -> None:
        super().__init__(*args, **options)
        self.parity_weight = parity_weight

    def initialize_module(self) -> "FairNet":
        """Create the network and the penalty, which skorch moves, saves and switches like the network."""
        super().initialize_module()
        self.penalty_ = ft.torch.TransportPenalty(self.groups_)
        return self

    def fit(self, X: np.ndarray, y: np.ndarray, *, sensitive_features: Any) -> "FairNet":
        """Train; the groups are needed in training only."""
        self.groups_ = ft.make_groups(sensitive_features)
        codes, initial = self.groups_.codes, LogisticRegression().fit(X, y)
        unit = ft.torch.TransportPenalty(self.groups_).parity_unit(initial.predict_proba(X)[:, 1], y, codes)
        self.weight_ = self.parity_weight * unit
        return super().fit({"X": X.astype(np.float32), "groups": codes}, y.astype(np.float32))

    def get_loss(self, y_pred: torch.Tensor, y_true: torch.Tensor, X: Any = None, training: bool = False) -> Any:
        """Add the penalty to the loss."""
        loss = super().get_loss(y_pred, y_true, X, training)
        return loss + self.weight_ * self.penalty_(torch.sigmoid(y_pred), X["groups"]) if training else loss

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of both classes."""
        return super().predict_proba(X.astype(np.float32))


class Network(torch.nn.Module):
    """Two layers; in training it is passed the groups, which it ignores."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(n_features, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, X: torch.Tensor, groups: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits."""
        del groups
        return self.layers(X)[:, 0]


def make_rows(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features that differ between two groups, labels and groups; one row in ten is in the second group."""
    rng = np.random.default_rng(0)
    groups = (rng.random(n) < 0.1).astype(int)
    X = rng.normal(size=(n, 4)) + 1.5 * groups[:, None] * [1.0, 1.0, 0.0, 0.0]
    return X, (X.sum(axis=1) + rng.normal(size=n) > 1.0).astype(int), groups


def main() -> ft.Frontier:
    """Measure the trade-off of a network, in two folds."""
    torch.manual_seed(0)
    X, y, groups = make_rows(4000)
    network = FairNet(
        Network,
        module__n_features=4,
        max_epochs=6,
        batch_size=64,
        lr=0.005,
        optimizer=torch.optim.Adam,
        train_split=None,
        iterator_train__shuffle=True,
        verbose=0,
    )
    return ft.frontier(network, X, y, sensitive_features=groups, parity_weights=[0.0, 0.5, 2.0], cv=2, random_state=0)


if __name__ == "__main__":
    print(main())
