"""Training of small tables does not use threads that wait for each other, and leaves the limits as they were."""

import pkgutil

import dask.dataframe as dd
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.worlds import people
from threadpoolctl import threadpool_info, threadpool_limits

from fairtransport import BlindRepairClassifier, TransportClassifier
from fairtransport._sklearn import few_threads
from fairtransport.boosting import TransportBoostingClassifier


def threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two():
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (TransportClassifier(), "fairtransport.linear.base.train_lbfgs"),
        (TransportBoostingClassifier(parity_weight=1.0), "fairtransport.boosting._estimators.train"),
        (
            BlindRepairClassifier(DecisionTreeClassifier(max_depth=3)),
            "sklearn.ensemble.HistGradientBoostingClassifier.fit",
        ),
    ],
)
def test_a_small_table_is_trained_by_one_thread(two, monkeypatch, model, part):
    seen, train = [], pkgutil.resolve_name(part)

    def spied(*args, **kwargs):
        seen.append(threads())
        return train(*args, **kwargs)

    monkeypatch.setattr(part, spied)
    X, y, groups = people(400)
    model.fit(X, y, sensitive_features=groups)
    assert {1} in seen
    assert {2} not in seen
    assert threads() == {2}


def test_limits_of_trainings_that_overlap_are_restored_by_the_last(two):
    first, second = few_threads(np.zeros((10, 2))), few_threads([[1.0]])
    first.__enter__()
    second.__enter__()
    for training in (first, second):
        assert threads() == {1}
        training.__exit__(None, None, None)
    assert threads() == {2}


def test_a_large_table_has_all_threads(two):
    with few_threads(np.broadcast_to(0.0, (10_000_000, 2))):
        assert threads() == {2}


def test_a_lazy_table_is_trained_on():
    X, y, groups = people(400, names=("a", "b", "c"))
    lazy = TransportClassifier().fit(dd.from_pandas(X, npartitions=2), y, sensitive_features=groups)
    np.testing.assert_allclose(lazy.coef_, TransportClassifier().fit(X, y, sensitive_features=groups).coef_)
