"""Memory that training needs beside the rows as given."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.linear import _problem
from fairtransport.repair.blind import _fitting

CALLS = {
    "weight 1": lambda: ft.TransportClassifier(parity_weight=1.0),
    "automatic weight": ft.TransportClassifier,
    "discrete": lambda: ft.TransportClassifier(distance="discrete"),
    "weights for each group": lambda: ft.TransportClassifier(group_specific=True),
    "blind repair": lambda: ft.BlindRepairClassifier(LogisticRegression(max_iter=1000)),
}


def rows(n, *, dense=False):
    """Ten numbers in a row of a hundred columns, and two groups that differ in some columns."""
    rng = np.random.default_rng(0)
    group, columns = rng.integers(2, size=n), rng.integers(10, size=(n, 10)) + 10 * np.arange(10)
    columns[:, 0] = np.where(rng.random(n) < 0.5, 5 * group + columns[:, 0] % 5, columns[:, 0])
    X = sparse.csr_matrix((np.ones(10 * n), columns.ravel(), 10 * np.arange(n + 1)), (n, 100))
    y = (X @ np.random.default_rng(1).normal(size=100) + rng.logistic(size=n) > 0).astype(int)
    return X.toarray() if dense else X, y, group


def peak(call, n, *, dense=False):
    """Return the most memory that a fit needs, in multiples of the size of its rows."""
    X, y, group = rows(n, dense=dense)
    size = X.nbytes if dense else X.data.nbytes + X.indices.nbytes
    model = CALLS[call]()
    tracemalloc.start()
    try:
        model.fit(X, y, sensitive_features=group)
        return tracemalloc.get_traced_memory()[1] / (size + y.nbytes + group.nbytes)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("n", "dense"), [(100_000, False), (50_000, True)])
@pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")
def test_training_needs_at_most_twice_the_memory_of_the_rows(monkeypatch, call, n, dense):
    """From ten stored numbers in a row on: a copy of the rows and some numbers for each.

    Samples of a fixed size are as small, compared with the rows, as they are in larger tables.
    """
    monkeypatch.setattr(_problem, "COARSE_ROWS", 5)
    monkeypatch.setattr(_fitting, "MAX_ROWS", 2_000)
    peak(call, 2_000)  # so that nothing is imported or compiled later
    assert peak(call, n, dense=dense) < 2.0
