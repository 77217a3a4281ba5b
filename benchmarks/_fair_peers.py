"""Peers for parity: each gives test scores along its own trade-off parameter, at its best effort.

A peer is a function of a task, the values of its parameter, a seed and what distinguishes its variants. It yields the
parameter with the scores of the test rows. Which variant is best is found on held-back training rows (`frontier.py`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

N_STEPS = 200
STEP = 0.03
LEVELS = 1000


@dataclass(frozen=True, eq=False)
class Task:
    """Training and test rows with their groups, and the logistic regression that every method starts from."""

    X_train: Any
    y_train: np.ndarray
    groups_train: Any
    sensitive_train: dict[str, np.ndarray]
    X_test: Any
    y_test: np.ndarray
    groups_test: Any
    sensitive_test: dict[str, np.ndarray]
    short: bool = False

    @cached_property
    def base(self):
        return LogisticRegression(max_iter=1000).fit(self.X_train, self.y_train)

    @cached_property
    def scores_train(self):
        return self.base.predict_proba(self.X_train)[:, 1]

    @cached_property
    def scores_test(self):
        return self.base.predict_proba(self.X_test)[:, 1]


def dense(X):
    return np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)


# ------------------------------------------------------------------------------------------------- no torch needed


def equipy(task, grid, seed, *, attributes):
    """Post-processing to the W2 barycenter, maps made on the training rows; epsilon is the part left unrepaired."""
    import pandas as pd  # noqa: PLC0415 - peers are loaded by the one who runs them
    from equipy.fairness import FairWasserstein, MultiWasserstein  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EquiPy's own
        if attributes == "crossed":
            peer = FairWasserstein(sigma=1e-4, seed=seed)
            peer.fit(task.scores_train, task.groups_train.codes)
            for epsilon in grid:
                yield epsilon, peer.transform(task.scores_test, task.groups_test.codes, epsilon=epsilon)
        else:
            train, test = (pd.DataFrame(columns).astype(str) for columns in (task.sensitive_train, task.sensitive_test))
            peer = MultiWasserstein(sigma=1e-4)
            peer.fit(task.scores_train, train)
            for epsilon in grid:
                yield epsilon, peer.transform(task.scores_test, test, epsilon=[epsilon] * train.shape[1])


def exponentiated_gradient(task, grid, seed):  # noqa: ARG001 - no chance is involved
    """fairlearn: the mixture of logistic regressions with demographic parity up to a bound; its mean score."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient  # noqa: PLC0415

    X_train, X_test = dense(task.X_train), dense(task.X_test)
    # The same optimum as the default solver's, in a handful of steps.
    base = LogisticRegression(solver="newton-cholesky")
    for bound in grid:
        peer = ExponentiatedGradient(base, DemographicParity(difference_bound=bound), eps=0.01)
        peer.fit(X_train, task.y_train, sensitive_features=task.groups_train.codes)
        parts = [(weight, peer.predictors_[place]) for place, weight in peer.weights_.items() if weight > 0]
        yield bound, sum(weight * model.predict_proba(X_test)[:, 1] for weight, model in parts)


def reweighing(task, grid, seed):  # noqa: ARG001
    """Kamiran and Calders' weights P(a) P(y) / P(a, y), to a power: 0 is none, 1 is theirs."""
    counts = np.zeros((len(task.groups_train), 2))
    np.add.at(counts, (task.groups_train.codes, task.y_train), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    weights = (expected / np.maximum(counts, 1))[task.groups_train.codes, task.y_train]
    for power in grid:
        model = LogisticRegression(max_iter=1000).fit(task.X_train, task.y_train, sample_weight=weights**power)
        yield power, model.predict_proba(task.X_test)[:, 1]


# -------------------------------------------------------------------------------------------- penalised training


def fairret(task, grid, seed, *, loss, model):  # noqa: ARG001
    """A linear model with fairret's term for demographic parity (equal positive rates)."""
    import torch  # noqa: PLC0415
    from fairret.loss import LSELoss, NormLoss  # noqa: PLC0415
    from fairret.statistic import PositiveRate  # noqa: PLC0415

    term = LSELoss(PositiveRate()) if loss == "lse" else NormLoss(PositiveRate(), p=1)
    linear = Linear(task, own_weights=model == "weights for each group")
    members = torch.nn.functional.one_hot(torch.from_numpy(linear.codes)).to(torch.float32)

    def slope(logits):
        leaf = torch.from_numpy(logits[:, None]).requires_grad_()
        term(leaf, members).backward()
        return leaf.grad.numpy()[:, 0]

    yield from linear.train(slope, grid)


def jiang(task, grid, seed, *, groups, model):  # noqa: ARG001
    """A linear model with Jiang et al.'s penalty: W1 of each group's scores to their W1 barycenter, all rows at once.

    The barycenter follows the model. It is the best of all targets, so no gradient goes through it.
    """
    linear = Linear(task, own_weights=model == "weights for each group")
    sizes = linear.sizes
    weights = sizes / sizes.mean() if groups == "by size" else np.ones(sizes.size)
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    places = [(levels * size).astype(int) for size in sizes]
    cells = [((np.arange(size) + 0.5) / size * LEVELS).astype(int) for size in sizes]
    ends = np.cumsum(sizes)

    def slope(logits):
        scores = expit(logits)
        orders = [end - size + np.argsort(scores[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
        curves = np.stack([scores[order][place] for order, place in zip(orders, places, strict=True)])
        target = weighted_median(curves, weights)
        found = np.empty_like(scores)
        for weight, order, cell in zip(weights, orders, cells, strict=True):
            found[order] = weight / order.size * np.sign(scores[order] - target[cell])
        return found * scores * (1 - scores)

    yield from linear.train(slope, grid)


def weighted_median(curves, weights):
    """Of each column; the middle of the two middle values where half of the weight lies on each side."""
    order = np.argsort(curves, axis=0)
    total = np.cumsum(weights[order], axis=0) / weights.sum()
    low = np.sum(total < 0.5 - 1e-9, axis=0, keepdims=True)
    high = np.sum(total < 0.5 + 1e-9, axis=0, keepdims=True)
    middle = [np.take_along_axis(curves, np.take_along_axis(order, place, axis=0), axis=0) for place in (low, high)]
    return (middle[0] + middle[1])[0] / 2


class Linear:
    """A linear model on rows sorted by group, in coordinates where the logistic loss curves alike in all directions.

    Without a penalty its optimum is that of LogisticRegression with the same ridge. With ``own_weights`` each group has
    weights of its own.
    """

    def __init__(self, task, *, own_weights):
        order = np.argsort(task.groups_train.codes, kind="stable")
        self.task, self.own_weights = task, own_weights
        self.codes, self.sizes = task.groups_train.codes[order], np.asarray(task.groups_train.counts)
        self.labels = task.y_train[order].astype(np.float32)
        X = np.column_stack((dense(task.X_train), np.ones(order.size)))[order]
        ridge = np.append(np.full(X.shape[1] - 1, 1 / len(X)), 0.0)
        curvature = (task.scores_train * (1 - task.scores_train))[order, None] / len(X)
        start = np.append(task.base.coef_[0], task.base.intercept_)
        blocks = np.split(np.arange(len(X)), np.cumsum(self.sizes)[:-1]) if own_weights else [np.arange(len(X))]
        self.rows, self.maps, self.ridges, starts = [], [], [], []
        for rows in blocks:
            factor = np.linalg.cholesky((X[rows] * curvature[rows]).T @ X[rows] + np.diag(ridge + 1e-9))
            back = np.linalg.inv(factor).T
            self.rows.append((X[rows] @ back).astype(np.float32))
            self.maps.append(back)
            self.ridges.append((back.T * ridge) @ back)
            starts.append(factor.T @ start)
        self.start = np.stack(starts)

    def gradient(self, theta, weight, slope):
        """Of the mean logistic loss with its ridge, and of the penalty, whose slope is by logits."""
        now = theta.astype(np.float32)
        logits = np.concatenate([rows @ own for rows, own in zip(self.rows, now, strict=True)])
        push = (expit(logits) - self.labels) / np.float32(logits.size) + np.float32(weight) * slope(logits)
        parts = np.split(push, np.cumsum([len(rows) for rows in self.rows])[:-1])
        data = [part @ rows for part, rows in zip(parts, self.rows, strict=True)]
        return np.stack(data) + np.stack([ridge @ own for ridge, own in zip(self.ridges, theta, strict=True)])

    def train(self, slope, grid):
        """Adam on all rows, each weight from where the last one ended, its step falling to 0."""
        theta, n_steps = self.start.copy(), N_STEPS // 5 if self.task.short else N_STEPS
        for weight in grid:
            mean, square = np.zeros_like(theta), np.zeros_like(theta)
            for step in range(1, n_steps + 1):
                gradient = self.gradient(theta, weight, slope)
                mean = 0.9 * mean + 0.1 * gradient
                square = 0.999 * square + 0.001 * gradient**2
                size = STEP * (1 + np.cos(np.pi * step / n_steps)) / 2
                theta -= size * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            yield weight, self.test_scores(theta)

    def test_scores(self, theta):
        coefficients = np.stack([back @ own for back, own in zip(self.maps, theta, strict=True)])
        X = np.column_stack((dense(self.task.X_test), np.ones(self.task.y_test.size)))
        codes = self.task.groups_test.codes if self.own_weights else np.zeros(len(X), dtype=int)
        return expit(np.einsum("ij,ij->i", X, coefficients[codes]))
