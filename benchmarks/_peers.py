"""Peers: each yields its parameter with the scores of test rows, or with None and the probability of the decision 1.

A randomised decision counts with its probability, so that errors and rates are expected ones, without the noise of a
draw. Libraries are loaded by those who run them.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from benchmarks._ours import ScoreReader
from benchmarks._tasks import TREES, dense

N_STEPS, STEP = 200, 0.03  # of Adam, for penalised training
LEVELS = 1000
PERTURBATION = 1e-3  # standard deviation of the noise that breaks LinearPost's ties


# ------------------------------------------------------------------------------------------------ post-processing


def plain(task, grid):
    """The base model."""
    for value in grid:
        yield value, task.scores[1]


def equipy(task, grid):
    """EquiPy: repair to the W2 barycenter; epsilon is the part left unrepaired."""
    from equipy.fairness import FairWasserstein  # noqa: PLC0415

    peer = FairWasserstein(sigma=1e-4, seed=task.seed)
    peer.fit(task.scores[0], task.groups_train)
    for epsilon in grid:
        yield epsilon, peer.transform(task.scores[1], task.groups_test, epsilon=epsilon)


def threshold_optimizer(task, grid):
    """fairlearn: two thresholds for each group and a coin, where the groups' ROC hulls meet; there is no parameter."""
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415

    train, test = task.scores
    options = {"constraints": "equalized_odds", "prefit": True, "predict_method": "predict_proba"}
    peer = ThresholdOptimizer(estimator=ScoreReader(), **options)
    peer.fit(train[:, None], task.y_train, sensitive_features=task.groups_train)
    chance = peer._pmf_predict(test[:, None], sensitive_features=task.groups_test)  # noqa: SLF001
    for value in grid:
        yield value, None, chance[:, 1]


def linear_post(task, grid, *, criterion):
    r"""LinearPost's rule: the linear programme over decisions, given P(label | x) and P(cell | x).

    Cells are groups, or groups by labels for equalized odds. With the decision's probability p_i of row i and
    g_i(c) = P(c | x_i), minimise the expected error mean((1 - 2 P(1 | x_i)) p_i) subject to
    \|sum_i g_i(c) p_i / sum_i g_i(c) - q\| <= alpha / 2 for all cells c, with a free q for each label. New rows are
    classified by the sign of the reduced cost, which is linear in the two probabilities. Costs get a small normal
    perturbation, so that reduced costs are not tied; new rows are decided with the probability over that noise.

    References
    ----------
    R. Xian and H. Zhao, A unified post-processing framework for group fairness in classification, arXiv:2405.04025.
    """
    n_levels = 2 if criterion == "equalized_odds" else 1
    cells_train, cells_test = (
        (part if n_levels == 2 else part.sum(axis=2)).reshape(len(part), -1) for part in task.joint
    )
    train, test = task.scores
    n, n_cells = cells_train.shape
    noise = PERTURBATION * np.random.default_rng(task.seed).normal(size=n)
    masses = cells_train.sum(axis=0)
    rates = n * (cells_train / masses).T  # in rows, so that the solver's tolerances are small against all numbers
    level = np.zeros((n_cells, n_levels))
    level[np.arange(n_cells), np.arange(n_cells) % n_levels] = -1.0
    rows = np.vstack((np.hstack((rates, level)), np.hstack((-rates, -level))))
    cost = np.append(1 - 2 * train + noise, np.zeros(n_levels))
    bounds = [(0.0, 1.0)] * n + [(0.0, n)] * n_levels
    for alpha in grid:
        found = linprog(cost, A_ub=rows, b_ub=np.full(2 * n_cells, n * alpha / 2), bounds=bounds, method="highs")
        multipliers = -found.ineqlin.marginals
        weights = n * (multipliers[:n_cells] - multipliers[n_cells:]) / masses
        yield alpha, None, norm.cdf(-(1 - 2 * test + cells_test @ weights) / PERTURBATION)


def oxonfair(task, grid, *, criterion):
    """OxonFair: an offset of the score for each group; blind, for each group as predicted from the features.

    Its search takes 30 to the power of the number of thresholds: with two groups, one for rows of no likely group.
    """
    from oxonfair import FairPredictor  # noqa: PLC0415
    from oxonfair.utils import group_metrics  # noqa: PLC0415

    tables = [
        np.column_stack((1 - scores, scores, joint.sum(axis=2)))
        for scores, joint in zip(task.scores, task.joint, strict=True)
    ]
    options = {} if task.aware else {"inferred_groups": lambda table: np.array(table[:, 2:])}
    odds = criterion == "equalized_odds"
    if not odds:
        options["threshold"] = 2 / 3 if tables[0].shape[1] == 4 else 0
    peer = FairPredictor(
        lambda table: np.array(table[:, :2]),
        {"data": tables[0], "target": task.y_train, "groups": task.groups_train},
        **options,
    )
    measure = group_metrics.equalized_odds_max if odds else group_metrics.pos_pred_rate.max_diff
    test = {"data": tables[1], "target": task.y_test, "groups": task.groups_test}
    for number, bound in enumerate(grid):
        peer.fit(group_metrics.accuracy, measure, bound, recompute=number == 0)
        yield bound, None, np.asarray(peer.predict(test)) * 1.0


# ------------------------------------------------------------------------------------------------------ training


def exponentiated_gradient(task, grid, *, criterion, max_iter=50, mean_score=False):
    """fairlearn: the mixture of base models with a criterion up to a bound on the training rows.

    Decisions are drawn from the mixture; its score is the mean of the scores of its parts.
    """
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient  # noqa: PLC0415

    # The same optimum as LogisticRegression's default solver, in a handful of steps.
    base = LogisticRegression(solver="newton-cholesky") if task.base == "linear" else task.model()
    constraint = EqualizedOdds if criterion == "equalized_odds" else DemographicParity
    X_train, X_test = dense(task.X_train), dense(task.X_test)
    for bound in grid:
        peer = ExponentiatedGradient(base, constraint(difference_bound=bound), eps=max(bound, 0.01), max_iter=max_iter)
        peer.fit(X_train, task.y_train, sensitive_features=task.groups_train)
        if mean_score:
            parts = [(weight, peer.predictors_[place]) for place, weight in peer.weights_.items() if weight > 0]
            yield bound, sum(weight * model.predict_proba(X_test)[:, 1] for weight, model in parts)
        else:
            yield bound, None, peer._pmf_predict(X_test)[:, 1]  # noqa: SLF001


def fairgbm(task, grid):
    """FairGBM: boosting under constraints on false positive and false negative rates; it has no demographic parity.

    Along the learning rate of the multipliers; with larger ones it diverges, on Adult from .01 on.
    """
    import fairgbm as library  # noqa: PLC0415

    size = TREES["large" if len(task.y_train) > 10_000 else "small"]
    for rate in grid:
        settings = {
            "objective": "constrained_cross_entropy", "constraint_type": "FPR,FNR", "multiplier_learning_rate": rate,
            "constraint_fpr_tolerance": 0.01, "constraint_fnr_tolerance": 0.01, "feature_fraction": 0.5,
            "num_leaves": size.get("num_leaves", 31), "num_threads": 1, "seed": task.seed, "verbose": -1,
        }  # fmt: skip
        rows = library.Dataset(task.X_train, label=task.y_train, constraint_group=task.groups_train)
        yield rate, library.train(settings, rows, num_boost_round=size["n_estimators"]).predict(task.X_test)


def reweighing(task, grid):
    """Kamiran and Calders' weights P(a) P(y) / P(a, y), to a power: 0 is none, 1 is theirs."""
    counts = np.zeros((task.groups_train.max() + 1, 2))
    np.add.at(counts, (task.groups_train, task.y_train), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    weights = (expected / np.maximum(counts, 1))[task.groups_train, task.y_train]
    for power in grid:
        model = task.model().fit(task.X_train, task.y_train, sample_weight=weights**power)
        yield power, model.predict_proba(task.X_test)[:, 1]


def fairret(task, grid, *, loss, own_weights=False):
    """A linear model with fairret's term for demographic parity (equal positive rates)."""
    import torch  # noqa: PLC0415
    from fairret.loss import LSELoss, NormLoss  # noqa: PLC0415
    from fairret.statistic import PositiveRate  # noqa: PLC0415

    term = LSELoss(PositiveRate()) if loss == "lse" else NormLoss(PositiveRate(), p=1)
    linear = Linear(task, own_weights=own_weights)
    members = torch.nn.functional.one_hot(torch.from_numpy(linear.codes)).to(torch.float32)

    def slope(logits):
        leaf = torch.from_numpy(logits[:, None]).requires_grad_()
        term(leaf, members).backward()
        return leaf.grad.numpy()[:, 0]

    yield from linear.train(slope, grid)


def jiang(task, grid, *, own_weights=False):
    """A linear model with Jiang et al.'s penalty: W1 of each group's scores to their W1 barycenter, all rows at once.

    The barycenter follows the model. It is the best of all targets, so no gradient goes through it.
    """
    linear = Linear(task, own_weights=own_weights)
    sizes = linear.sizes
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    places = [(levels * size).astype(int) for size in sizes]
    cells = [((np.arange(size) + 0.5) / size * LEVELS).astype(int) for size in sizes]
    ends = np.cumsum(sizes)

    def slope(logits):
        scores = expit(logits)
        orders = [end - size + np.argsort(scores[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
        curves = np.stack([scores[order][place] for order, place in zip(orders, places, strict=True)])
        target = np.median(curves, axis=0)
        found = np.empty_like(scores)
        for order, cell in zip(orders, cells, strict=True):
            found[order] = 1 / order.size * np.sign(scores[order] - target[cell])
        return found * scores * (1 - scores)

    yield from linear.train(slope, grid)


class Linear:
    """A linear model on rows sorted by group, in coordinates where the logistic loss curves alike in all directions.

    Without a penalty its optimum is that of LogisticRegression with the same ridge. With ``own_weights`` each group has
    weights of its own.
    """

    def __init__(self, task, *, own_weights):
        order = np.argsort(task.groups_train, kind="stable")
        self.task, self.own_weights = task, own_weights
        self.codes, self.sizes = task.groups_train[order], np.bincount(task.groups_train)
        self.labels = task.y_train[order].astype(np.float32)
        X = np.column_stack((dense(task.X_train), np.ones(order.size)))[order]
        ridge = np.append(np.full(X.shape[1] - 1, 1 / len(X)), 0.0)
        base = LogisticRegression(max_iter=1000).fit(task.X_train, task.y_train)
        scores = base.predict_proba(task.X_train)[order, 1:]
        curvature = scores * (1 - scores) / len(X)
        start = np.append(base.coef_[0], base.intercept_)
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
        theta = self.start.copy()
        for weight in grid:
            mean, square = np.zeros_like(theta), np.zeros_like(theta)
            for step in range(1, N_STEPS + 1):
                gradient = self.gradient(theta, weight, slope)
                mean = 0.9 * mean + 0.1 * gradient
                square = 0.999 * square + 0.001 * gradient**2
                size = STEP * (1 + np.cos(np.pi * step / N_STEPS)) / 2
                theta -= size * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            yield weight, self.test_scores(theta)

    def test_scores(self, theta):
        coefficients = np.stack([back @ own for back, own in zip(self.maps, theta, strict=True)])
        X = np.column_stack((dense(self.task.X_test), np.ones(self.task.y_test.size)))
        codes = self.task.groups_test if self.own_weights else np.zeros(len(X), dtype=int)
        return expit(np.einsum("ij,ij->i", X, coefficients[codes]))
