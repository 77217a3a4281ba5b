"""Small worlds that a stream can come from."""

import copy
import functools

import numpy as np

import fairtransport as ft

NAMES = np.array(["F", "M"])


def features(rng, n, gap=0.0):
    """In training the groups differ in the second column, which a fair model leaves out; ``gap``: in the third."""
    group = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) + group[:, None] * [0.0, 0.5, gap]
    return X, NAMES[group]


def cot(**options):
    """A model of one's own; equal ones are fitted once."""
    return copy.deepcopy(_fitted(**options))


@functools.cache
def _fitted(seed=0, kind=ft.TransportClassifier, **options):
    rng = np.random.default_rng(seed)
    X, sex = features(rng, 3000)
    y = (X.sum(axis=1) + rng.logistic(size=3000) > 0.5).astype(int)
    return kind(**options).fit(X, y, sensitive_features={"sex": sex})


def raw_scores(rng, n, gap=1.0):
    group = rng.integers(2, size=n)
    return rng.beta(2 + gap * group, 3), NAMES[group]


def repair(seed=0, **options):
    scores, sex = raw_scores(np.random.default_rng(seed), 2000)
    return ft.QuantileRepair(**options).fit(scores, sensitive_features={"sex": sex})
