"""Our methods: each yields its settings with the scores of test rows."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from benchmarks import _ours
from fairtransport import BlindRepairClassifier, BlindRepairRegressor, QuantileRepair
from fairtransport.repair import BlindRepair

N_DRAWS = 10  # of a randomised repair


def predict(task, model, X, **known):
    return model.predict(X, **known) if task.regression else model.predict_proba(X, **known)[:, 1]


def _linear(task, options):
    make = _ours.regressor if task.regression else _ours.classifier
    known = {"sensitive_features": task.groups_test} if options.get("group_specific") else {}
    return make(**options), known


def weights(task, grid, **options):
    """Along one path of weights."""
    model, known = _linear(task, options)
    fitted = model.fit_path(task.X_train, task.y_train, grid, sensitive_features=task.groups_train)
    for weight, one in zip(grid, fitted, strict=True):
        yield weight, predict(task, one, task.X_test, **known)


def amounts(task, grid, **options):
    """Trained once with the default weight; from the initial model's scores to the trained one's."""
    model, known = _linear(task, options)
    model.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
    for amount in grid:
        yield amount, predict(task, model.set_params(amount=amount), task.X_test, **known)


def repair(task, grid, *, criterion="demographic_parity", randomize=False):
    """Maps from the base model's out-of-fold scores; labels are used to fit them only."""
    train, test = task.scores
    options = {"criterion": criterion, "randomize": randomize} if criterion != "demographic_parity" else {}
    options |= {"range": "learned"} if task.regression else {}
    model = QuantileRepair(target="barycenter_w2", **options)
    model.fit(train, task.y_train, sensitive_features=task.groups_train)
    known = {"sensitive_features": task.groups_test}
    for amount in grid:
        model.set_params(amount=amount)
        draws = range(N_DRAWS if randomize else 1)
        yield amount, np.array([model.set_params(random_state=i).transform(test, **known) for i in draws])


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


class NumberReader(RegressorMixin, BaseEstimator):
    """A fitted regressor whose first feature is its prediction."""

    is_fitted_ = True

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


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
    parts = task.shares if criterion == "demographic_parity" else task.joint
    tables = [np.column_stack((s, p.reshape(len(p), -1))) for s, p in zip(task.scores, parts, strict=True)]
    settings = BlindRepair(criterion, random_state=task.seed, **options)
    groups = ProbabilityReader(tables[0].shape[1] - 1)
    if task.regression:
        return BlindRepairRegressor(NumberReader(), groups, settings), *tables
    return BlindRepairClassifier(ScoreReader(), groups, settings), *tables


def slacks(task, grid, **options):
    model, train, test = _blind_repair(task, **options)
    fitted = model.fit_path(train, task.y_train, grid, sensitive_features=task.groups_train)
    for slack, one in zip(grid, fitted, strict=True):
        yield slack, predict(task, one, test)


def blind_amounts(task, grid, **options):
    model, train, test = _blind_repair(task, **options)
    model.fit(train, task.y_train, sensitive_features=task.groups_train)
    for amount in grid:
        yield amount, predict(task, model.set_params(amount=amount), test)


def _booster(task, **options):
    from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor  # noqa: PLC0415

    make = TransportBoostingRegressor if task.regression else TransportBoostingClassifier
    return make(task.model(), random_state=task.seed, **options)


def boosted(task, grid, **options):
    """Settings are pairs: one model for each weight, mixed with the plain one by amount."""
    for weight in dict.fromkeys(weight for weight, _ in grid):
        model = _booster(task, parity_weight=weight, **options)
        model.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        for amount in (amount for own, amount in grid if own == weight):
            yield (weight, amount), predict(task, model.set_params(amount=amount), task.X_test)


def boosted_repair(task, grid):
    """Settings are pairs: one model for each weight, its scores repaired by amount."""
    for weight in dict.fromkeys(weight for weight, _ in grid):
        model = _booster(task, parity_weight=weight, repair=QuantileRepair())
        model.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        for amount in (amount for own, amount in grid if own == weight):
            model.set_params(repair__amount=amount)
            yield (weight, amount), predict(task, model, task.X_test, sensitive_features=task.groups_test)


def network(task, grid, *, criterion="demographic_parity", distance="continuous"):
    """The network with `TransportPenalty`, in the unit of the estimators."""
    import torch  # noqa: PLC0415

    from benchmarks.field.networks import train  # noqa: PLC0415
    from fairtransport.torch import TransportPenalty  # noqa: PLC0415

    labels = {} if criterion == "demographic_parity" else {"criterion": criterion}
    first = torch.sigmoid(torch.from_numpy(train(task.X_train, task.y_train, seed=task.seed)(task.X_train)[:, 0]))
    groups = list(range(task.n_groups))
    unit = TransportPenalty(groups, distance=distance, **labels).parity_unit(first, task.y_train, task.groups_train)
    for weight in grid:
        module = TransportPenalty(groups, distance=distance, **labels)

        def penalty(outputs, codes, y, module=module):
            module.train(torch.is_grad_enabled())
            return module(torch.sigmoid(outputs), codes, **({"labels": y.long()} if labels else {}))

        options = {"seed": task.seed, "penalty": penalty, "weight": weight * float(unit)}
        logits = train(task.X_train, task.y_train, task.groups_train, **options)(task.X_test)[:, 0]
        yield weight, 1.0 / (1.0 + np.exp(-logits.astype(float)))
