"""Demographic parity without the group at prediction: tasks, and what ours and peers give along their own parameter.

Methods that post-process see the same out-of-fold scores and probabilities of groups. Each method yields its parameter,
for the test rows the probability of the decision 1, and their scores where it has any (None where it only decides).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier
from scipy.optimize import linprog
from scipy.stats import norm
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks._fair_peers import dense
from benchmarks._odds_ours import ProbabilityReader
from benchmarks._odds_peers import PERTURBATION, ScoreReader
from benchmarks._odds_tasks import compas_tasks
from benchmarks.frontier import tasks as frontier_tasks
from fairtransport import BlindRepairClassifier, ContinuousTransportClassifier
from fairtransport.boosting import TransportBoostingClassifier

KEPT = Path("out/blind_repair")  # predictions and measurements, so that a run can be continued
AMOUNTS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
SIZES = {"Adult": {"n_estimators": 200}, "COMPAS": {"n_estimators": 50, "num_leaves": 8}}  # by the number of rows


@dataclass(frozen=True, eq=False)
class BlindTask:
    """Training and test rows without columns that tell the group, and the predictions that all methods share."""

    data: str
    X_train: np.ndarray
    y_train: np.ndarray
    groups_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups_test: np.ndarray
    seed: int

    def model(self):
        return LGBMClassifier(
            colsample_bytree=0.5, random_state=self.seed, n_jobs=1, verbose=-1, **SIZES[self.data]
        )  # fmt: skip

    def group_model(self):
        size = {"n_estimators": 100, "num_leaves": 15} if self.data == "Adult" else SIZES[self.data]
        return LGBMClassifier(colsample_bytree=0.5, random_state=self.seed, n_jobs=1, verbose=-1, **size)

    @cached_property
    def _folds(self):
        cells = 2 * self.groups_train + self.y_train
        return list(StratifiedKFold(5, shuffle=True, random_state=self.seed).split(self.X_train, cells))

    def _predictions(self, model, target, name):
        """Probabilities of training rows out of fold, and of test rows; kept for a run that is continued."""
        kept = KEPT / f"{self.data}, {self.seed}, {self.y_train.size} rows, {name}.npy"
        if kept.exists():
            both = np.load(kept)
        else:
            train = cross_val_predict(model, self.X_train, target, cv=self._folds, method="predict_proba")
            both = np.vstack((train, model.fit(self.X_train, target).predict_proba(self.X_test)))
            KEPT.mkdir(parents=True, exist_ok=True)
            np.save(kept, both)
        return both[: self.y_train.size], both[self.y_train.size :]

    @cached_property
    def scores(self):
        """Of training rows out of fold, and of test rows."""
        train, test = self._predictions(self.model(), self.y_train, "scores")
        return train[:, 1], test[:, 1]

    @cached_property
    def probabilities(self):
        """P(group | features): of training rows out of fold, and of test rows."""
        return self._predictions(self.group_model(), self.groups_train, "groups")


def adult_tasks(n_tasks, *, quick):
    """Race crossed with sex, official split; tasks differ in the seed of the models and folds."""
    (task,) = frontier_tasks("Adult", "blind", quick=quick)
    train, test = dense(task.X_train), dense(task.X_test)
    for seed in range(n_tasks):
        yield BlindTask(
            "Adult", train, task.y_train, task.groups_train.codes, test, task.y_test, task.groups_test.codes, seed
        )


def compas_race_tasks(n_tasks, *, quick):
    """African-American and Caucasian defendants, random splits into 70 % and 30 %."""
    for task in compas_tasks(aware=False, base="trees", n_tasks=n_tasks, races="two", quick=quick):
        train, test = (np.unique(groups, return_inverse=True)[1] for groups in (task.groups_train, task.groups_test))
        yield BlindTask("COMPAS", task.X_train, task.y_train, train, task.X_test, task.y_test, test, task.seed)


# ----------------------------------------------------------------------------------------------------------- ours


def _readers(task, **options):
    """A repair whose models read predictions from its features, and these of training and test rows."""
    tables = [
        np.column_stack((scores, probabilities))
        for scores, probabilities in zip(task.scores, task.probabilities, strict=True)
    ]
    readers = ScoreReader(), ProbabilityReader(tables[0].shape[1] - 1)
    return BlindRepairClassifier(*readers, random_state=task.seed, **options), *tables


def _decided(scores):
    return (scores > 0.5).astype(float), scores


def blind_repair(task, grid, *, loss):
    repair, train, test = _readers(task, loss=loss)
    for model in repair.fit_path(train, task.y_train, grid, sensitive_features=task.groups_train):
        yield model.slack, *_decided(model.predict_proba(test)[:, 1])


def blind_repair_amount(task, grid):
    model, train, test = _readers(task)
    model.fit(train, task.y_train, sensitive_features=task.groups_train)
    for amount in grid:
        yield amount, *_decided(model.set_params(amount=amount).predict_proba(test)[:, 1])


def linear(task, grid):
    """Continuous optimal transport of a linear model, along the path of weights."""
    model = ContinuousTransportClassifier()
    fitted = model.fit_path(task.X_train, task.y_train, grid, sensitive_features=task.groups_train)
    for weight, own in zip(grid, fitted, strict=True):
        yield weight, *_decided(own.predict_proba(task.X_test)[:, 1])


def boosting(task, grid):
    for weight in grid:
        model = TransportBoostingClassifier(task.model(), parity_weight=weight, random_state=task.seed)
        model.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        yield weight, *_decided(model.predict_proba(task.X_test)[:, 1])


# ---------------------------------------------------------------------------------------------------------- peers


def plain(task, grid):
    """The base model."""
    for value in grid:
        yield value, *_decided(task.scores[1])


def exponentiated_gradient(task, grid, *, max_iter):
    """fairlearn: the mixture of LightGBM models with demographic parity up to a bound on the training rows.

    Decisions are drawn from the mixture; its score is the mean of the scores of its parts.
    """
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient  # noqa: PLC0415

    for bound in grid:
        peer = ExponentiatedGradient(
            task.model(), DemographicParity(difference_bound=bound), eps=bound, max_iter=max_iter
        )  # fmt: skip
        peer.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        parts = [(weight, peer.predictors_[number]) for number, weight in peer.weights_.items() if weight > 0]
        mean = sum(weight * _probability(model, task.X_test) for weight, model in parts)
        yield bound, peer._pmf_predict(task.X_test)[:, 1], np.clip(mean, 0.0, 1.0)  # noqa: SLF001


def _probability(model, X):
    found = model.predict_proba(X)  # a part may be a constant, with one class
    return found[:, 1] if found.shape[1] == 2 else np.full(len(X), float(model.predict(X[:1])[0]))


def fairgbm(task, grid):
    """FairGBM: boosting under constraints on false positive and false negative rates; it has no demographic parity.

    Along the learning rate of the multipliers; with larger ones it diverges, on Adult from .01 on.
    """
    import fairgbm as library  # noqa: PLC0415

    size = SIZES[task.data]
    for rate in grid:
        settings = {
            "objective": "constrained_cross_entropy", "constraint_type": "FPR,FNR", "multiplier_learning_rate": rate,
            "constraint_fpr_tolerance": 0.01, "constraint_fnr_tolerance": 0.01, "feature_fraction": 0.5,
            "num_leaves": size.get("num_leaves", 31), "num_threads": 1, "seed": task.seed, "verbose": -1,
        }  # fmt: skip
        rows = library.Dataset(task.X_train, label=task.y_train, constraint_group=task.groups_train)
        peer = library.train(settings, rows, num_boost_round=size["n_estimators"])
        yield rate, *_decided(np.clip(peer.predict(task.X_test), 0.0, 1.0))


def linear_post(task, grid):
    r"""LinearPost's rule: the linear programme over decisions, given P(label | x) and P(group | x).

    With the decision's probability p_i of row i and g_i(a) = P(a | x_i), minimise the expected error
    mean((1 - 2 P(1 | x_i)) p_i) subject to \|sum_i g_i(a) p_i / sum_i g_i(a) - q\| <= alpha / 2 for all groups a, with
    q free. New rows are classified by the sign of the reduced cost; costs get a small normal perturbation, over which
    decisions are averaged.
    """
    train, test = task.scores
    groups_train, groups_test = task.probabilities
    n, n_groups = groups_train.shape
    noise = PERTURBATION * np.random.default_rng(task.seed).normal(size=n)
    masses = groups_train.sum(axis=0)
    rates = n * (groups_train / masses).T  # in rows, so that the solver's tolerances are small against all numbers
    level = np.full((n_groups, 1), -1.0)
    rows = np.vstack((np.hstack((rates, level)), np.hstack((-rates, -level))))
    cost = np.append(1 - 2 * train + noise, 0.0)
    bounds = [(0.0, 1.0)] * n + [(0.0, n)]
    for alpha in grid:
        found = linprog(cost, A_ub=rows, b_ub=np.full(2 * n_groups, n * alpha / 2), bounds=bounds, method="highs")
        multipliers = -found.ineqlin.marginals
        weights = n * (multipliers[:n_groups] - multipliers[n_groups:]) / masses
        yield alpha, norm.cdf(-(1 - 2 * test + groups_test @ weights) / PERTURBATION), None


def oxonfair(task, grid):
    """OxonFair: a threshold for each group as predicted from the features, and one for rows of no likely group.

    Its search takes 30 to the power of the number of thresholds: with four groups, there is none for unlikely rows.
    """
    from oxonfair import FairPredictor  # noqa: PLC0415
    from oxonfair.utils import group_metrics  # noqa: PLC0415

    tables = [
        np.column_stack((1 - scores, scores, probabilities))
        for scores, probabilities in zip(task.scores, task.probabilities, strict=True)
    ]
    peer = FairPredictor(
        lambda table: np.array(table[:, :2]),
        {"data": tables[0], "target": task.y_train, "groups": task.groups_train},
        inferred_groups=lambda table: np.array(table[:, 2:]),
        threshold=2 / 3 if tables[0].shape[1] == 4 else 0,
    )
    test = {"data": tables[1], "target": task.y_test, "groups": task.groups_test}
    for number, bound in enumerate(grid):
        peer.fit(group_metrics.accuracy, group_metrics.pos_pred_rate.max_diff, bound, recompute=number == 0)
        yield bound, np.asarray(peer.predict(test)) * 1.0, None


@dataclass(frozen=True)
class Method:
    """A name, what gives its points, and the values of its parameter by data set."""

    name: str
    run: object
    grid: dict[str, tuple[float, ...]]
    ours: bool = False

    def points(self, task, *, quick):
        grid = self.grid[task.data]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(self.run(task, grid[:: max(1, len(grid) - 1)] if quick else grid))


def _both(*grid):
    return {"Adult": grid, "COMPAS": grid}


SLACKS = {
    "Adult": (0.1, 0.09, 0.08, 0.07, 0.055, 0.045, 0.03, 0.015, 0.0075, 0.0),
    "COMPAS": (0.11, 0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.0),
}
BOUNDS = (0.001, 0.01, 0.02, 0.04, 0.06, 0.1, 0.15)
METHODS = (
    Method("plain LightGBM", plain, _both(0.0), ours=True),
    Method("blind repair, slack", partial(blind_repair, loss="squared"), SLACKS, ours=True),
    Method("blind repair, amount", blind_repair_amount, _both(*AMOUNTS), ours=True),
    Method("blind repair of decisions, slack", partial(blind_repair, loss="zero_one"), SLACKS, ours=True),
    Method("LinearPost", linear_post, _both(*BOUNDS)),
    Method("OxonFair, predicted groups", oxonfair, _both(*BOUNDS)),
    Method(
        "FairGBM", fairgbm, {"Adult": (1e-5, 1e-4, 3e-4, 1e-3, 3e-3), "COMPAS": (0.01, 0.03, 0.1, 0.3, 1.0)}
    ),
    Method("COT", linear, _both(0.1, 0.2, 0.3, 0.5, 1.0, 2.0), ours=True),
    Method("boosting", boosting, _both(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5), ours=True),
    Method(
        "fairlearn ExponentiatedGradient", partial(exponentiated_gradient, max_iter=15),  # minutes for each on Adult
        {"Adult": (0.03, 0.1), "COMPAS": (0.01, 0.03, 0.06, 0.1)},
    ),
)  # fmt: skip
