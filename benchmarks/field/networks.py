"""One small network, trained alike by all methods, and penalties of its scores, rebuilt from their papers.

All training rows are divided as in the Fair Fairness Benchmark (Han et al., 2024: 40 % training, 30 % validation, 30 %
test): parameters are those with the least objective, penalty included, on the validation rows.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional

WIDTH, BATCH, N_STEPS, CHECK_EVERY, STEP, DECAY = 64, 512, 600, 40, 3e-3, 1e-4
VALIDATION = 3 / 7
N_CHECKED = 2000  # validation rows whose penalty is computed: the criterion of Hilbert and Schmidt is quadratic in rows


def network(n_columns, n_outputs=1):
    return nn.Sequential(
        nn.Linear(n_columns, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, n_outputs)
    )


def train(X, y, codes=None, *, seed, penalty=None, weight=0.0, regression=False):
    """Return a function from rows to outputs (logits, or standardised numbers) of the trained network.

    ``penalty(outputs, codes, labels)`` is a differentiable number; one with ``step`` learns beside the network.
    """
    torch.manual_seed(seed)
    n_classes = 1 if regression else int(np.max(y)) + 1
    model = network(X.shape[1], n_classes if n_classes > 2 else 1)
    strata = None if regression else y
    parts = train_test_split(np.arange(len(y)), test_size=VALIDATION, random_state=seed, stratify=strata)
    rows = torch.from_numpy(np.asarray(X, dtype=np.float32))
    labels = torch.from_numpy(np.asarray(y, dtype=np.int64 if n_classes > 2 else np.float32))
    members = torch.from_numpy(np.zeros(len(y), dtype=np.int64) if codes is None else np.asarray(codes, dtype=np.int64))
    optimizer = torch.optim.Adam(model.parameters(), STEP, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, N_STEPS)
    fit, check = (torch.from_numpy(part) for part in parts)

    def loss(outputs, target):
        if n_classes > 2:
            return functional.cross_entropy(outputs, target)
        by = functional.mse_loss if regression else functional.binary_cross_entropy_with_logits
        return by(outputs[:, 0], target)

    def objective(index, **options):
        outputs = model(rows[index])
        value = loss(outputs, labels[index])
        if penalty is None or weight == 0.0:
            return value
        return value + weight * penalty(outputs[:, 0], members[index], labels[index], **options)

    best, kept = np.inf, None
    generator = torch.Generator().manual_seed(seed)
    for number in range(1, N_STEPS + 1):
        batch = fit[torch.randint(len(fit), (BATCH,), generator=generator)]
        optimizer.zero_grad()
        objective(batch, learn=True).backward() if hasattr(penalty, "step") else objective(batch).backward()
        optimizer.step()
        schedule.step()
        if number % CHECK_EVERY == 0:
            with torch.no_grad():
                value = float(objective(check[:N_CHECKED]))
            if value < best:
                best, kept = value, copy.deepcopy(model.state_dict())
    if kept is not None:
        model.load_state_dict(kept)

    def outputs(new):
        with torch.no_grad():
            return model(torch.from_numpy(np.asarray(new, dtype=np.float32))).numpy()

    return outputs


class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """The network without a penalty; several classes by softmax."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.outputs_ = train(X, codes, seed=self.seed)
        return self

    def predict_proba(self, X):
        outputs = torch.from_numpy(self.outputs_(X))
        if outputs.shape[1] == 1:
            chance = torch.sigmoid(outputs[:, 0]).double().numpy()
            return np.column_stack((1 - chance, chance))
        return torch.softmax(outputs.double(), dim=1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class NetworkRegressor(RegressorMixin, BaseEstimator):
    """The network with squared loss."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X, y):
        self.mean_, self.scale_ = np.mean(y), np.std(y)
        self.outputs_ = train(X, (y - self.mean_) / self.scale_, seed=self.seed, regression=True)
        return self

    def predict(self, X):
        return self.mean_ + self.scale_ * self.outputs_(X)[:, 0].astype(float)


# ------------------------------------------------------------------------------------------------------- penalties


def by_label(penalty):
    """Sum a penalty over the rows of each label, for equalized odds."""

    def total(outputs, codes, labels):
        return sum(penalty(outputs[labels == label], codes[labels == label], None) for label in (0, 1))

    return total


def mean_difference(n_groups):
    """DiffDP: the mean over pairs of groups of the difference of their mean scores."""

    def penalty(outputs, codes, labels):  # noqa: ARG001
        scores = torch.sigmoid(outputs)
        means = [scores[codes == group].mean() for group in range(n_groups) if bool((codes == group).any())]
        pairs = [(a - b).abs() for number, a in enumerate(means) for b in means[:number]]
        return sum(pairs) / max(len(pairs), 1)

    return penalty


def hilbert_schmidt(outputs, codes, labels):  # noqa: ARG001
    """HSIC (Gretton et al., 2005): a Gaussian kernel of scores, and whether groups are equal."""
    scores = torch.sigmoid(outputs)
    width = scores.detach().std().clamp(min=1e-3)
    kernel = torch.exp(-((scores[:, None] - scores[None]) ** 2) / (2 * width**2))
    same = (codes[:, None] == codes[None]).float()
    same = same - same.mean(dim=0, keepdim=True)
    same = same - same.mean(dim=1, keepdim=True)
    return (kernel * same).sum() / (len(codes) - 1) ** 2


class Adversary:
    """Zhang, Lemoine and Mitchell (2018): a network that predicts the group from the logit, by a reversed gradient.

    The value is what it knows: the entropy of groups less its loss. With ``odds`` it also sees the label.
    """

    def __init__(self, n_groups, *, odds=False, steps=3):
        self.odds, self.steps = odds, steps
        self.model = nn.Sequential(nn.Linear(3 if odds else 1, 32), nn.ReLU(), nn.Linear(32, n_groups))
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-2)

    def __call__(self, outputs, codes, labels, *, learn=False):
        if learn:
            for _ in range(self.steps):
                self.step(outputs.detach(), codes, labels)
        shares = torch.bincount(codes, minlength=self.model[-1].out_features) / len(codes)
        entropy = -(shares * torch.log(shares.clamp(min=1e-12))).sum()
        return entropy - self._loss(outputs, codes, labels)

    def _loss(self, outputs, codes, labels):
        columns = (outputs, outputs * labels, labels) if self.odds else (outputs,)
        return functional.cross_entropy(self.model(torch.stack(columns, dim=1)), codes)

    def step(self, outputs, codes, labels):
        self.optimizer.zero_grad()
        self._loss(outputs, codes, labels).backward()
        self.optimizer.step()
