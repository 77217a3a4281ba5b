"""Packed rows: what they store, and products with them."""

import numpy as np
import pytest
from scipy import sparse

from fairtransport.linear.sgd_problem import PackedRows
from fairtransport.transport.kernels.rows import add_rows, score_rows

from .tables import TABLES, one_hot


def unpack(rows, n_columns):
    """The matrix that packed rows stand for, columns in their first order."""
    n_rows = len(rows.starts) - 1
    packed = np.zeros((n_rows, n_columns + 2))
    packed[:, : rows.n_dense] = rows.dense[:, : rows.n_dense]
    words = rows.words[:, rows.first_word : rows.first_word + rows.n_words]
    for i, slots in enumerate(np.ascontiguousarray(words).view(np.uint16)):
        packed[i, slots] += 1
    rest = sparse.csr_matrix((rows.values, rows.columns, rows.starts), (n_rows, n_columns)).toarray()
    matrix = np.empty((n_rows, n_columns))
    matrix[:, rows.order] = packed[:, :n_columns] + rest
    return matrix


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("table", TABLES)
def test_packing_keeps_every_number(table, dtype):
    X = TABLES[table](np.random.default_rng(1), 50).astype(dtype)
    rows = PackedRows.pack(sparse.csr_matrix(X))
    np.testing.assert_array_equal(unpack(rows, X.shape[1]), X)
    assert rows.dense.ctypes.data % 64 == 0


def test_a_one_hot_row_is_one_cache_line():
    rng = np.random.default_rng(1)
    X = np.column_stack((rng.normal(size=(50, 6)), one_hot(rng, 50, (7, 16, 7, 14, 6, 2, 2, 41))))  # as in Adult
    rows = PackedRows.pack(sparse.csr_matrix(X))
    assert (rows.n_dense, 4 * rows.n_words, rows.values.size, rows.dense.strides[0]) == (6, 8, 0, 64)


def test_more_columns_than_a_slot_can_name():
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.choice(70_000, size=70, replace=False)) for _ in range(20)]
    X = sparse.csr_array((np.ones(1400), np.concatenate(columns), np.arange(0, 1401, 70)), shape=(20, 70_000))
    rows = PackedRows.pack(X)
    assert rows.n_words == 0
    np.testing.assert_array_equal(unpack(rows, 70_000), X.toarray())


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("table", TABLES)
def test_products_are_those_of_the_matrix(table, storage):
    rng = np.random.default_rng(2)
    X = TABLES[table](rng, 50).astype(float)
    rows = PackedRows.pack(storage(X))
    weights, drawn, factors = rng.normal(size=(2, X.shape[1] + 2)), rng.integers(50, size=9), rng.normal(size=9)
    weights[:, -1] = 0.0  # of unused slots
    logits, gradient, model = np.empty(9), np.zeros_like(weights), np.uint64(1)
    score_rows(rows.arrays(), drawn, 9, weights, model, logits)
    packed = X[drawn][:, rows.order]
    np.testing.assert_allclose(logits, packed @ weights[1, :-2] + weights[1, -2], atol=1e-12)
    add_rows(rows.arrays(), drawn, 9, factors, gradient, model)
    np.testing.assert_allclose(gradient[1, :-1], np.append(factors @ packed, factors.sum()), atol=1e-12)
    assert not gradient[0].any()
