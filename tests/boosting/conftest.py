"""A small data set with three features, the first of which depends on the group."""

from types import SimpleNamespace

import numpy as np
import pytest


def make_data(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    y = (X @ [1.0, 1.5, 0.5] + rng.logistic(size=n) > 0.5).astype(int)
    return SimpleNamespace(X=X, y=y, group=np.where(group == 1, "high", "low"), n=n)


@pytest.fixture(scope="session")
def data():
    return make_data()


@pytest.fixture(scope="session")
def new_data():
    return make_data(seed=1)
