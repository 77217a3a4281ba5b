"""Ours for equalized odds: each gives scores of test rows along its own parameter."""

from __future__ import annotations

from functools import partial

import numpy as np

from fairtransport import ContinuousTransportClassifier, DiscreteTransportClassifier, QuantileRepair
from fairtransport.boosting import TransportBoostingClassifier

CRITERION = "equalized_odds"
N_DRAWS = 10  # of a randomised repair
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


def boosted(task, grid, *, kind):
    """One model for each weight."""
    for weight in grid:
        model = TransportBoostingClassifier(
            task.model(), criterion=CRITERION, parity_weight=weight, kind=kind, random_state=task.seed
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
        "name": "boosting, continuous",
        "run": partial(boosted, kind="continuous"),
        "grid": (0.2, 0.5, 1.0, 2.0, 3.0, 4.0),
        "bases": ("trees",),
    },
    {
        "name": "boosting, discrete",
        "run": partial(boosted, kind="discrete"),
        "grid": (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0),
        "bases": ("trees",),
    },
)
