"""Ours for equalized odds: each gives scores of test rows along its own parameter."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks._odds_peers import ScoreReader
from fairtransport import (
    BlindRepairClassifier,
    ContinuousTransportClassifier,
    DiscreteTransportClassifier,
    QuantileRepair,
)
from fairtransport.boosting import TransportBoostingClassifier

CRITERION = "equalized_odds"
N_DRAWS = 10  # of a randomised repair
SLACKS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15)
WEIGHTS = (0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 5.0)


def linear(task, grid, *, kind, **options):
    """One path of weights."""
    known = {"sensitive_features": task.groups_test} if options.get("group_specific") else {}
    model = kind(criterion=CRITERION, **options)
    fitted = model.fit_path(task.X_train, task.y_train, grid, sensitive_features=task.groups_train)
    for weight, own in zip(grid, fitted, strict=True):
        yield weight, own.predict_proba(task.X_test, **known)[:, 1]


def repair(task, grid, *, randomize):
    """Maps from the base model's out-of-fold scores; labels are used to fit them only."""
    train, test = task.scores
    model = QuantileRepair(criterion=CRITERION, randomize=randomize)
    model.fit(train, task.y_train, sensitive_features=task.groups_train)
    for amount in grid:
        drawn = [
            model.set_params(amount=amount, random_state=seed).transform(test, sensitive_features=task.groups_test)
            for seed in range(N_DRAWS if randomize else 1)
        ]
        yield amount, np.array(drawn)


class ProbabilityReader(ScoreReader):
    """A fitted classifier of groups, or of groups and labels: its probabilities are the features after the score."""

    def __init__(self, n_classes=4):
        self.n_classes = n_classes

    @property
    def classes_(self):
        return np.arange(self.n_classes)

    def predict_proba(self, X):
        return np.asarray(X)[:, 1:]


def blind_repair(task, grid, *, loss):
    """Potentials from the base model's out-of-fold scores and probabilities of groups, for each slack."""
    tables = [
        np.column_stack((scores, joint.reshape(len(joint), -1)))
        for scores, joint in zip(task.scores, task.joint, strict=True)
    ]
    readers = ScoreReader(), ProbabilityReader(tables[0].shape[1] - 1)
    for slack in grid:
        model = BlindRepairClassifier(*readers, criterion=CRITERION, loss=loss, slack=slack, random_state=task.seed)
        model.fit(tables[0], task.y_train, sensitive_features=task.groups_train)
        yield slack, model.predict_proba(tables[1])[:, 1]


def boosted(task, grid):
    """One model for each weight."""
    for weight in grid:
        model = TransportBoostingClassifier(
            task.model(), criterion=CRITERION, parity_weight=weight, random_state=task.seed
        )
        model.fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
        yield weight, model.predict_proba(task.X_test)[:, 1]


METHODS = (
    {
        "name": "COT",
        "run": partial(linear, kind=ContinuousTransportClassifier),
        "grid": WEIGHTS,
        "bases": ("linear",),
    },
    {
        "name": "DOT",
        "run": partial(linear, kind=DiscreteTransportClassifier),
        "grid": WEIGHTS,
        "bases": ("linear",),
    },
    {
        "name": "COT, group-specific",
        "run": partial(linear, kind=ContinuousTransportClassifier, group_specific=True),
        "grid": WEIGHTS,
        "bases": ("linear",),
        "situations": ("aware",),
    },
    {
        "name": "COT, initial spread",
        "run": partial(linear, kind=ContinuousTransportClassifier, spread="initial"),
        "grid": WEIGHTS,
        "bases": ("linear",),
    },
    {
        "name": "repair",
        "run": partial(repair, randomize=False),
        "grid": (0.25, 0.5, 0.75, 1.0),
        "situations": ("aware",),
    },
    {
        "name": "repair, randomised",
        "run": partial(repair, randomize=True),
        "grid": (0.25, 0.5, 0.75, 1.0),
        "situations": ("aware",),
    },
    {
        "name": "blind repair",
        "run": partial(blind_repair, loss="squared"),
        "grid": SLACKS,
        "situations": ("blind",),
    },
    {
        "name": "blind repair, decisions",
        "run": partial(blind_repair, loss="zero_one"),
        "grid": SLACKS,
        "situations": ("blind",),
    },
    {
        "name": "boosting",
        "run": boosted,
        "grid": (0.02, 0.05, 0.1, 0.3, 0.6, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0),
        "bases": ("trees",),
    },
)
