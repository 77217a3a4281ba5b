"""A small data set with three features, the first of which depends on the group, and small trees of both libraries."""

from types import SimpleNamespace

import lightgbm
import pytest
import xgboost
from tests.worlds import people

LIGHT = lightgbm.LGBMClassifier(n_estimators=30, num_leaves=8, verbose=-1, n_jobs=1)
XG = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1)
BOTH = pytest.mark.parametrize("trees", [LIGHT, XG], ids=["lightgbm", "xgboost"])


def make_data(n=1200, seed=0):
    X, y, group = people(n, seed, groups=("low", "high"), coef=(1.0, 1.5, 0.5))
    return SimpleNamespace(X=X, y=y, group=group, n=n)


@pytest.fixture(scope="session")
def data():
    return make_data()


@pytest.fixture(scope="session")
def new_data():
    return make_data(seed=1)
