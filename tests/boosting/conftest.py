"""A small data set with three features, the first of which depends on the group."""

from types import SimpleNamespace

import pytest
from tests.worlds import people


def make_data(n=1200, seed=0):
    X, y, group = people(n, seed, groups=("low", "high"), coef=(1.0, 1.5, 0.5))
    return SimpleNamespace(X=X, y=y, group=group, n=n)


@pytest.fixture(scope="session")
def data():
    return make_data()


@pytest.fixture(scope="session")
def new_data():
    return make_data(seed=1)
