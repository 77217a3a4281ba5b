"""Training of small tables does not use threads that wait for each other, and leaves the limits as they were."""

import importlib.util
import pkgutil
import threading

import dask.dataframe as dd
import numba
import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.worlds import people
from threadpoolctl import threadpool_info, threadpool_limits

from fairtransport import BlindRepairClassifier, QuantileRepairClassifier, TransportClassifier
from fairtransport._columns import code_cache
from fairtransport._sklearn import few_threads
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.boosting import _constants as const
from fairtransport.boosting._libraries import default_estimator, library_of
from fairtransport.boosting._training_data import TrainingData
from fairtransport.groups import make_groups


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
        (BlindRepairClassifier(LogisticRegression()), "sklearn.linear_model.LogisticRegression.fit"),
        (QuantileRepairClassifier(LogisticRegression()), "sklearn.linear_model.LogisticRegression.fit"),
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


def test_only_stored_entries_of_a_sparse_table_count(two):
    with few_threads(sparse.csr_matrix((10_000_000, 2))):
        assert threads() == {1}


@pytest.mark.parametrize(("filled", "n_jobs"), [(5, 1), (6, None)])
def test_threads_of_trees_by_stored_entries(monkeypatch, filled, n_jobs):
    monkeypatch.setattr(const, "ONE_THREAD", 1_000)
    X = sparse.csr_matrix(np.broadcast_to(np.arange(100) < filled, (200, 100)))
    rows = TrainingData(X, np.arange(200) % 3 == 0, make_groups(np.arange(200) % 2))
    library = library_of(default_estimator("classification"), "classification")
    assert library.sized(rows, "auto", is_default=True).estimator.n_jobs == n_jobs


def test_a_lazy_table_is_trained_on():
    X, y, groups = people(400, names=("a", "b", "c"))
    lazy = TransportClassifier().fit(dd.from_pandas(X, npartitions=2), y, sensitive_features=groups)
    np.testing.assert_allclose(lazy.coef_, TransportClassifier().fit(X, y, sensitive_features=groups).coef_)


LOOPS = """
from fairtransport._columns.compilation import cached_njit

@cached_njit()
def outer(x):
    return inner(x) + 1.0

@cached_njit()
def inner(x):
    return 2.0 * x
"""


def test_a_loop_that_two_threads_call_first(tmp_path, monkeypatch):
    """The second calls it while numba's functions are put in place of the loops that it calls."""
    (tmp_path / "loops.py").write_text(LOOPS)
    spec = importlib.util.spec_from_file_location("loops", tmp_path / "loops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    first, found, make = module.outer, [], code_cache.compiled
    numba.njit(lambda x: x + 1.0)(1.0)  # so that the second is quick

    def call():
        try:
            found.extend((first(3.0), module.outer(4.0)))
        except Exception as error:  # noqa: BLE001 - of numba
            found.append(error)

    second = threading.Thread(target=call)

    def slow(function, **options):
        if function.__name__ == "inner":
            second.start()
            second.join(1.0)
        return make(function, **options)

    monkeypatch.setattr(code_cache, "compiled", slow)
    assert first(1.0) == 3.0
    second.join(60.0)
    assert found == [7.0, 9.0]


def test_an_attribute_that_another_thread_makes_meanwhile():
    """Python asks for what is not there, and it is there by the time that it is looked for."""
    X, y, groups = people(400)
    model = TransportClassifier(parity_weight=0.1).fit(X, y, sensitive_features=groups)
    made = model.target_
    assert model.__getattr__("target_") is made
