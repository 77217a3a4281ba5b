"""Peers for equalized odds: each gives, for test rows, the probability of the decision 1 along its own parameter.

Post-processing peers see the base model's out-of-fold scores of the training rows, so that none of them adapts to
scores of rows that the model has seen. A randomised decision counts with its probability: errors and rates are expected
ones, without the noise of a draw.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

PERTURBATION = 1e-3  # standard deviation of the noise that breaks LinearPost's ties


class ScoreReader(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only feature is its score."""

    classes_ = np.array([0, 1])
    is_fitted_ = True

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict_proba(self, X):
        score = np.asarray(X)[:, 0]
        return np.column_stack((1 - score, score))

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0.5).astype(int)


def threshold_optimizer(task, grid):
    """fairlearn: two thresholds for each group and a coin, where the groups' ROC hulls meet; there is no parameter."""
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415

    train, test = task.scores
    peer = ThresholdOptimizer(
        estimator=ScoreReader(), constraints="equalized_odds", prefit=True, predict_method="predict_proba"
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(train[:, None], task.y_train, sensitive_features=task.groups_train)
        chance = peer._pmf_predict(test[:, None], sensitive_features=task.groups_test)  # noqa: SLF001
    for value in grid:
        yield value, chance[:, 1]


def exponentiated_gradient(task, grid, *, max_iter=50):
    """fairlearn: the mixture of base models with equalized odds up to a bound on the training rows."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient  # noqa: PLC0415

    # The same optimum as LogisticRegression's default solver, in a handful of steps.
    base = LogisticRegression(solver="newton-cholesky") if task.base == "linear" else task.model()
    for bound in grid:
        peer = ExponentiatedGradient(base, EqualizedOdds(difference_bound=bound), eps=bound, max_iter=max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
            yield bound, peer._pmf_predict(task.X_test)[:, 1]  # noqa: SLF001


def linear_post(task, grid):
    r"""LinearPost's rule: the linear programme over decisions, given P(label | x) and P(group, label | x).

    With the decision's probability p_i of row i and g_i(a, y) = P(a, y | x_i), minimise the expected error
    mean((1 - 2 P(1 | x_i)) p_i) subject to \|sum_i g_i(a, y) p_i / sum_i g_i(a, y) - q(y)\| <= alpha / 2 for all groups
    a and labels y, with q free. New rows are classified by the sign of the reduced cost, which is linear in the two
    probabilities. Costs get a small normal perturbation, so that reduced costs are not tied; new rows are decided with
    the probability over that noise.

    References
    ----------
    R. Xian and H. Zhao, A unified post-processing framework for group fairness in classification, arXiv:2405.04025.
    """
    joint_train, joint_test = (part.reshape(len(part), -1) for part in task.joint)
    train, test = task.scores
    n, n_cells = joint_train.shape
    noise = PERTURBATION * np.random.default_rng(task.seed).normal(size=n)
    masses = joint_train.sum(axis=0)
    rates = n * (joint_train / masses).T  # in rows, so that the solver's tolerances are small against all numbers
    level = np.zeros((n_cells, 2))
    level[np.arange(n_cells), np.arange(n_cells) % 2] = -1.0
    rows = np.vstack((np.hstack((rates, level)), np.hstack((-rates, -level))))
    cost = np.append(1 - 2 * train + noise, (0.0, 0.0))
    bounds = [(0.0, 1.0)] * n + [(0.0, n)] * 2
    for alpha in grid:
        found = linprog(cost, A_ub=rows, b_ub=np.full(2 * n_cells, n * alpha / 2), bounds=bounds, method="highs")
        multipliers = -found.ineqlin.marginals
        weights = n * (multipliers[:n_cells] - multipliers[n_cells:]) / masses
        yield alpha, norm.cdf(-(1 - 2 * test + joint_test @ weights) / PERTURBATION)


def oxonfair(task, grid):
    """OxonFair: an offset of the score for each group; blind, for each group as predicted from the features."""
    from oxonfair import FairPredictor  # noqa: PLC0415
    from oxonfair.utils import group_metrics  # noqa: PLC0415

    tables = []
    for scores, joint in zip(task.scores, task.joint, strict=True):
        tables.append(np.column_stack((1 - scores, scores, joint.sum(axis=2))))
    codes = [np.unique(groups, return_inverse=True)[1] for groups in (task.groups_train, task.groups_test)]
    known = {} if task.aware else {"inferred_groups": lambda table: np.array(table[:, 2:])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = FairPredictor(
            lambda table: np.array(table[:, :2]),
            {"data": tables[0], "target": task.y_train, "groups": codes[0]},
            **known,
        )
        for number, bound in enumerate(grid):
            peer.fit(group_metrics.accuracy, group_metrics.equalized_odds_max, bound, recompute=number == 0)
            yield bound, np.asarray(peer.predict({"data": tables[1], "target": task.y_test, "groups": codes[1]})) * 1.0
