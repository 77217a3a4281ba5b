"""Made-up tables of two groups, one of which scores higher; the classifiers of both distances."""

from functools import partial

import numpy as np
import pytest

from fairtransport import TransportClassifier

DOT = partial(TransportClassifier, distance="discrete")
both = pytest.mark.parametrize("cls", [TransportClassifier, DOT])
owned = pytest.mark.parametrize("group_specific", [False, True], ids=["shared", "own weights"])
WEIGHTS = np.array([1.0, 0.8, 0.6, 0.4])


def aware_table(n=1200, seed=0, gap=1.0):
    """Four features, of which one is higher in group b, and a column that tells the group: parity is cheap."""
    X, y, group = blind_table(n, seed, gap)
    return np.column_stack((X, group == "b")), y, group


def blind_table(n=1200, seed=0, gap=1.0):
    """Draw the same without that column: parity costs the feature that tells the groups apart."""
    rng = np.random.default_rng(seed)
    b = rng.random(n) < 0.4
    X = rng.normal(size=(n, 4))
    X[:, 0] += gap * b
    return X, (X @ WEIGHTS + rng.logistic(size=n) > 0.5).astype(int), np.where(b, "b", "a")


def hopeless_table(n=1000, seed=0):
    """Two features that tell the group and little else: without the group, parity leaves nothing."""
    rng = np.random.default_rng(seed)
    b = rng.integers(2, size=n)
    X = np.column_stack((0.5 * rng.normal(size=n) + 1.5 * b, 0.3 * rng.normal(size=n) + b))
    return X, (X.sum(axis=1) + rng.logistic(size=n) > 1.2).astype(int), np.where(b == 1, "b", "a")
