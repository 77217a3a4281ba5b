"""Our estimators, constructed here for all benchmarks, and as methods that yield test scores along their parameter."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from fairtransport import (
    BlindRepairClassifier,
    ContinuousDistance,
    QuantileRepair,
    TransportClassifier,
    TransportRegressor,
)
from fairtransport.linear import SgdSettings
from fairtransport.repair import BlindRepair

DISTANCES = ("continuous", "discrete")
N_DRAWS = 10  # of a randomised repair


def classifier(distance="continuous", **options):
    return TransportClassifier(distance=distance, **options)


def regressor(distance="continuous", **options):
    return TransportRegressor(distance=distance, **options)


def boosting(estimator=None, **options):
    from fairtransport.boosting import TransportBoostingClassifier  # noqa: PLC0415 - needs LightGBM

    return TransportBoostingClassifier(estimator, **options)


def sgd_classifier(*, n_fourier_features=50, strength=0.1, **settings):
    """Return the paper's set-up: L2, opposite duals, matched pairs, its algorithm box."""
    distance = ContinuousDistance("l2", strength, n_fourier_features=n_fourier_features, kernel_variance=0.1)
    return TransportClassifier(distance=distance, solver=SgdSettings(random_state=0, **settings))


# ------------------------------------------------------------------------------- methods: (task, grid) -> scores


def linear(task, grid, **options):
    """Along one path of weights."""
    known = {"sensitive_features": task.groups_test} if options.get("group_specific") else {}
    model = classifier(**options)
    fitted = model.fit_path(task.X_train, task.y_train, grid, sensitive_features=task.groups_train)
    for weight, one in zip(grid, fitted, strict=True):
        yield weight, one.predict_proba(task.X_test, **known)[:, 1]


def linear_amount(task, grid, **options):
    """Trained once with the default weight; from the initial model's scores to the trained one's."""
    known = {"sensitive_features": task.groups_test} if options.get("group_specific") else {}
    model = classifier(**options).fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
    for amount in grid:
        yield amount, model.set_params(amount=amount).predict_proba(task.X_test, **known)[:, 1]


def repair(task, grid, *, criterion="demographic_parity", randomize=False):
    """Maps from the base model's out-of-fold scores; labels are used to fit them only."""
    train, test = task.scores
    options = {"criterion": criterion, "randomize": randomize} if criterion != "demographic_parity" else {}
    model = QuantileRepair(target="barycenter_w2", **options)
    model.fit(train, task.y_train, sensitive_features=task.groups_train)
    for amount in grid:
        model.set_params(amount=amount)
        draws = range(N_DRAWS if randomize else 1)
        yield (
            amount,
            np.array(
                [model.set_params(random_state=i).transform(test, sensitive_features=task.groups_test) for i in draws]
            ),
        )


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


class ProbabilityReader(ScoreReader):
    """A fitted classifier of groups, or of groups and labels: its probabilities are the features after the score."""

    def __init__(self, n_classes=4):
        self.n_classes = n_classes

    @property
    def classes_(self):
        return np.arange(self.n_classes)

    def predict_proba(self, X):
        return np.asarray(X)[:, 1:]


def _blind_repair(task, *, criterion="demographic_parity", **options):
    """A repair whose models read predictions from its features, and these of training and test rows."""
    parts = [part.sum(axis=2) if criterion == "demographic_parity" else part for part in task.joint]
    tables = [np.column_stack((s, p.reshape(len(p), -1))) for s, p in zip(task.scores, parts, strict=True)]
    readers = ScoreReader(), ProbabilityReader(tables[0].shape[1] - 1)
    repair = BlindRepair(criterion, random_state=task.seed, **options)
    return BlindRepairClassifier(*readers, repair), *tables


def blind_repair(task, grid, **options):
    """Along slack."""
    model, train, test = _blind_repair(task, **options)
    for one in model.fit_path(train, task.y_train, grid, sensitive_features=task.groups_train):
        yield one.slack, one.predict_proba(test)[:, 1]


def blind_repair_amount(task, grid, **options):
    model, train, test = _blind_repair(task, **options)
    model.fit(train, task.y_train, sensitive_features=task.groups_train)
    for amount in grid:
        yield amount, model.set_params(amount=amount).predict_proba(test)[:, 1]


def boosted(task, grid, *, amounts=(1.0,), **options):
    """One model for each weight, mixed with the plain one."""
    for weight in grid:
        model = boosting(task.model(), parity_weight=weight, random_state=task.seed, **options)
        model.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        for amount in amounts:
            yield weight, model.set_params(amount=amount).predict_proba(task.X_test)[:, 1]


def boosted_repair(task, grid, *, amounts):
    """One model for each weight, its scores repaired more and more."""
    for weight in grid:
        model = boosting(task.model(), parity_weight=weight, repair=QuantileRepair(), random_state=task.seed)
        model.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        for amount in amounts:
            model.set_params(repair__amount=amount)
            yield weight, model.predict_proba(task.X_test, sensitive_features=task.groups_test)[:, 1]
