"""Peers: each yields its settings with the scores of test rows, or with None and the probability of the decision 1.

A randomised decision counts with its probability, so that errors and rates are expected ones, without the noise of a
draw. Libraries are loaded by those who run them.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.field.ours import ScoreReader

N_STEPS, STEP = 200, 0.03  # of Adam, for penalised training of linear models
LEVELS = 1000
ODDS = "equalized_odds"


def plain(task, grid):
    """The base model."""
    for value in grid:
        yield value, task.scores[1]


# ------------------------------------------------------------------------------------------------ post-processing


def equipy(task, grid):
    """EquiPy: repair to the W2 barycenter; epsilon is the part left unrepaired."""
    from equipy.fairness import FairWasserstein  # noqa: PLC0415

    peer = FairWasserstein(sigma=1e-4, seed=task.seed)
    peer.fit(task.scores[0], task.groups_train)
    for epsilon in grid:
        yield epsilon, peer.transform(task.scores[1], task.groups_test, epsilon=epsilon)


def threshold_optimizer(task, grid, *, criterion):
    """fairlearn: two thresholds for each group and a coin between them, up to a tolerance."""
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415

    train, test = task.scores
    options = {"constraints": criterion, "prefit": True, "predict_method": "predict_proba"}
    for tolerance in grid:
        peer = ThresholdOptimizer(estimator=ScoreReader(), tol=tolerance or None, **options)
        peer.fit(train[:, None], task.y_train, sensitive_features=task.groups_train)
        yield tolerance, None, peer._pmf_predict(test[:, None], sensitive_features=task.groups_test)[:, 1]  # noqa: SLF001


def linear_post(task, grid, *, criterion, folder):
    """LinearPost (Xian and Zhao, arXiv:2405.04025): the authors' module ``postprocess``, in the folder ``--data``."""
    if folder is None or not (Path(folder) / "postprocess.py").exists():
        raise ModuleNotFoundError("LinearPost is in no package: put its postprocess.py into the folder --data")
    sys.path.insert(0, str(folder))
    from postprocess import PostProcessor  # noqa: PLC0415

    odds = criterion == ODDS
    parts = [
        {"p_ay_x": joint} if odds else {"p_a_x": share, "p_y_x": np.column_stack((1 - scores, scores))}
        for joint, share, scores in zip(task.joint, task.shares, task.scores, strict=True)
    ]
    for alpha in grid:
        peer = PostProcessor(2, task.n_groups, criterion="eo" if odds else "sp", alpha=alpha, seed=task.seed)
        peer.fit(**parts[0], solver="HIGHS")
        yield alpha, None, peer.predict(**parts[1]).astype(float)


def oxonfair(task, grid, *, criterion):
    """OxonFair: an offset of the score for each group; blind, for each group as predicted from the features.

    Its search takes 30 to the power of the number of thresholds: with two groups, one for rows of no likely group.
    """
    from oxonfair import FairPredictor  # noqa: PLC0415
    from oxonfair.utils import group_metrics  # noqa: PLC0415

    tables = [
        np.column_stack((1 - scores, scores, share))
        for scores, share in zip(task.scores, task.shares, strict=True)
    ]  # fmt: skip
    options = {} if task.aware else {"inferred_groups": lambda table: np.array(table[:, 2:])}
    odds = criterion == ODDS
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


# ----------------------------------------------------------------------------------------- before and in training


def correlation_remover(task, grid):
    """fairlearn: features without what the groups' means explain, by the share alpha; then the base model."""
    members = [np.eye(task.n_groups)[codes][:, 1:] for codes in (task.groups_train, task.groups_test)]
    from fairlearn.preprocessing import CorrelationRemover  # noqa: PLC0415

    tables = [np.column_stack(part) for part in zip(members, (task.X_train, task.X_test), strict=True)]
    for alpha in grid:
        peer = CorrelationRemover(sensitive_feature_ids=list(range(members[0].shape[1])), alpha=alpha)
        model = task.model().fit(peer.fit_transform(tables[0]), task.y_train)
        changed = peer.transform(tables[1])
        yield alpha, model.predict(changed) if task.regression else model.predict_proba(changed)[:, 1]


def exponentiated_gradient(task, grid, *, criterion, max_iter=25):
    """fairlearn: the mixture of base models with a criterion up to a bound on the training rows.

    Its score is the mean of the scores of its parts, which has fewer errors than a draw from them.
    """
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient  # noqa: PLC0415

    # The same optimum as LogisticRegression's default solver, in a handful of steps.
    base = LogisticRegression(solver="newton-cholesky") if task.base == "linear" else task.model()
    constraint = EqualizedOdds if criterion == ODDS else DemographicParity
    for bound in grid:
        peer = ExponentiatedGradient(base, constraint(difference_bound=bound), eps=max(bound, 0.01), max_iter=max_iter)
        peer.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        parts = [(weight, peer.predictors_[place]) for place, weight in peer.weights_.items() if weight > 0]
        yield bound, sum(weight * _chance(model, task.X_test) for weight, model in parts)


def _chance(model, X):
    """Probabilities of label 1; models of one label have one column."""
    found = model.predict_proba(X)
    return found[:, 1] if found.shape[1] == 2 else np.full(len(X), float(model.classes_[0]))


def reweighing(task, grid):
    """Kamiran and Calders' weights P(a) P(y) / P(a, y), to a power: 0 is none, 1 is theirs."""
    counts = np.zeros((task.n_groups, 2))
    np.add.at(counts, (task.groups_train, task.y_train), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    weights = (expected / np.maximum(counts, 1))[task.groups_train, task.y_train]
    for power in grid:
        model = task.model().fit(task.X_train, task.y_train, sample_weight=weights**power)
        yield power, model.predict_proba(task.X_test)[:, 1]


def prejudice_remover(task, grid):
    """AIF360: logistic regression with a penalty of mutual information; two groups only."""
    tables = _aif360_tables(task)
    from aif360.algorithms.inprocessing import PrejudiceRemover  # noqa: PLC0415

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it calls "python"
    for eta in grid:
        peer = PrejudiceRemover(eta=eta, sensitive_attr="group", class_attr="label").fit(tables[0])
        yield eta, peer.predict(tables[1]).scores[:, 0]


def adversarial_debiasing(task, grid):
    """AIF360: a network of one hidden layer against an adversary that sees its score and the label; two groups only."""
    tables = _aif360_tables(task)
    import tensorflow.compat.v1 as tensorflow  # noqa: PLC0415
    from aif360.algorithms.inprocessing import AdversarialDebiasing  # noqa: PLC0415

    tensorflow.disable_eager_execution()
    known = [{"group": 0}], [{"group": 1}]
    for weight in grid:
        tensorflow.reset_default_graph()
        with tensorflow.Session() as session, contextlib.redirect_stdout(io.StringIO()):
            peer = AdversarialDebiasing(*known, "task", session, seed=task.seed, adversary_loss_weight=weight)
            found = peer.fit(tables[0]).predict(tables[1]).scores[:, 0]
        yield weight, found


def _aif360_tables(task):
    """Training and test rows as AIF360's tables."""
    import pandas as pd  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from aif360.datasets import BinaryLabelDataset  # noqa: PLC0415

    def table(X, y, codes):
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(group=codes, label=y)
        made = BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["group"])
        if not task.aware:  # the group is one of its features otherwise
            made.features[:, made.feature_names.index("group")] = 0.0
        return made

    return [table(task.X_train, task.y_train, task.groups_train), table(task.X_test, task.y_test, task.groups_test)]


def fair_trees(task, grid):
    """fair-trees (Pereira Barata et al., 2023): a forest whose splits give up gain for strong demographic parity."""
    from fair_trees import FairRandomForestClassifier  # noqa: PLC0415

    for theta in grid:
        peer = FairRandomForestClassifier(theta=theta, random_state=task.seed, n_jobs=1)
        peer.fit(task.X_train, task.y_train, task.groups_train)
        yield theta, np.asarray(peer.predict_proba(task.X_test))[:, 1]


# ---------------------------------------------------------------------------------------------------- networks


def network(task, grid, *, penalty, criterion="demographic_parity"):
    """The same network with a penalty of the Fair Fairness Benchmark or of fairret."""
    from benchmarks.field import networks  # noqa: PLC0415

    odds = criterion == ODDS

    def make():
        if penalty == "adversary":
            return networks.Adversary(task.n_groups, odds=odds)
        if penalty == "fairret":
            return _fairret_term(task.n_groups, odds=odds)
        own = networks.hilbert_schmidt if penalty == "HSIC" else networks.mean_difference(task.n_groups)
        return networks.by_label(own) if odds else own

    for weight in grid:
        options = {"seed": task.seed, "penalty": make(), "weight": weight}
        logits = networks.train(task.X_train, task.y_train, task.groups_train, **options)(task.X_test)[:, 0]
        yield weight, expit(logits.astype(float))


def _fairret_term(n_groups, *, odds):
    """fairret's norm of the violation of equal positive rates, or of equal true and false positive rates."""
    import torch  # noqa: PLC0415
    from fairret.loss import NormLoss  # noqa: PLC0415
    from fairret.statistic import FalsePositiveRate, PositiveRate, TruePositiveRate  # noqa: PLC0415

    terms = [NormLoss(one, p=1) for one in ((TruePositiveRate(), FalsePositiveRate()) if odds else (PositiveRate(),))]

    def term(outputs, codes, labels):
        members = torch.nn.functional.one_hot(codes, n_groups).float()
        extra = (labels[:, None].float(),) if odds else ()
        return sum(one(outputs[:, None], members, *extra) for one in terms)

    return term


# ------------------------------------------------------------------------------------------------ linear penalties


def fairret(task, grid):
    """A linear model with fairret's norm of the violation of demographic parity (equal positive rates)."""
    import torch  # noqa: PLC0415

    linear, term = Linear(task), _fairret_term(task.n_groups, odds=False)
    codes = torch.from_numpy(linear.codes)

    def slope(logits):
        leaf = torch.from_numpy(logits).requires_grad_()
        term(leaf, codes, None).backward()
        return leaf.grad.numpy()

    yield from linear.train(slope, grid)


def jiang(task, grid):
    """A linear model with Jiang et al.'s penalty: W1 of each group's scores to their W1 barycenter, all rows at once.

    The barycenter follows the model. It is the best of all targets, so no gradient goes through it.
    """
    linear = Linear(task)
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

    Without a penalty its optimum is that of LogisticRegression with the same ridge.
    """

    def __init__(self, task):
        order = np.argsort(task.groups_train, kind="stable")
        self.task, self.codes, self.sizes = task, task.groups_train[order], np.bincount(task.groups_train)
        self.labels = task.y_train[order].astype(np.float32)
        X = np.column_stack((task.X_train, np.ones(order.size)))[order]
        ridge = np.append(np.full(X.shape[1] - 1, 1 / len(X)), 0.0)
        base = LogisticRegression(max_iter=1000).fit(task.X_train, task.y_train)
        scores = base.predict_proba(task.X_train)[order, 1:]
        curvature = scores * (1 - scores) / len(X)
        factor = np.linalg.cholesky((X * curvature).T @ X + np.diag(ridge + 1e-9))
        self.map = np.linalg.inv(factor).T
        self.rows, self.ridge = (X @ self.map).astype(np.float32), (self.map.T * ridge) @ self.map
        self.start = factor.T @ np.append(base.coef_[0], base.intercept_)

    def gradient(self, theta, weight, slope):
        """Of the mean logistic loss with its ridge, and of the penalty, whose slope is by logits."""
        logits = self.rows @ theta.astype(np.float32)
        push = (expit(logits) - self.labels) / np.float32(logits.size) + np.float32(weight) * slope(logits)
        return push @ self.rows + self.ridge @ theta

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
            X = np.column_stack((self.task.X_test, np.ones(self.task.y_test.size)))
            yield weight, expit(X @ (self.map @ theta))
