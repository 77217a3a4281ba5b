"""Products with drawn rows, the random numbers by which they are drawn, and the sort of the discrete update."""

import numpy as np
import pytest
from scipy import sparse

from fairtransport.transport.kernels.rows import (
    Population,
    add_outer_products,
    draw_index,
    draw_rows,
    fill_alias,
    score_sparse,
    sum_sparse,
)
from fairtransport.transport.kernels.sgd import write_order
from fairtransport.transport.reference import draw_indices


def test_draws_are_those_of_splitmix64():
    for seed, position, size in ((0, 0, 10), (123, 456, 7), (2**62 - 1, 2**40, 2**31)):
        assert draw_index(seed, position, size) == draw_indices(seed, position, 1, size)[0]
    # First output of the published SplitMix64 for seed 0, its upper half.
    assert draw_indices(0, 0, 1, 2**32)[0] == 0xE220A839


def test_rows_are_drawn_in_proportion_to_their_weights():
    weights = np.array([0.0, 1.0, 2.0, 5.0])  # of the second of two cells
    accept, alias, drawn = np.zeros(7, np.uint64), np.zeros(7, np.int64), np.empty(80_000, np.int64)
    fill_alias(weights, 3, accept[3:], alias[3:])
    draw_rows(Population(np.array([0, 3, 7]), accept, alias), 1, np.uint64(3), np.uint64(0), drawn)
    share = np.bincount(drawn - 3, minlength=4) / drawn.size
    np.testing.assert_allclose(share, weights / 8, atol=0.007)  # four standard deviations


@pytest.mark.parametrize("n", [1, 2, 5, 100, 333])
@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_sort(n, spread):
    rng = np.random.default_rng(n)
    keys = np.r_[0.0, 1.0, np.round(rng.random(n), 2), spread * rng.random(n)]
    order = np.empty(len(keys), np.int64)
    write_order(keys, order)
    np.testing.assert_array_equal(keys[order], np.sort(keys))
    np.testing.assert_array_equal(np.sort(order), np.arange(len(keys)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_sparse_rows_are_those_of_dense_ones(dtype):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.where(rng.random((50, 9)) < 0.3, rng.random((50, 9)), 0.0).astype(dtype))
    arrays, ones = (X.data, X.indices, X.indptr), np.column_stack((X.toarray().astype(np.float64), np.ones(50)))
    theta, factors, logits, sums = rng.normal(size=10), rng.random(50), np.empty(50), np.empty(10)
    score_sparse(*arrays, theta, logits)
    np.testing.assert_allclose(logits, ones @ theta, rtol=1e-12)
    sum_sparse(*arrays, factors, sums)
    np.testing.assert_allclose(sums, factors @ ones, rtol=1e-12)
    drawn, moments = np.arange(0, 50, 3), np.zeros((10, 10))
    add_outer_products(*arrays, drawn, factors[drawn], moments)
    expected = ones[drawn].T @ (factors[drawn, None] * ones[drawn])
    np.testing.assert_allclose(moments, np.tril(expected), rtol=1e-6 if dtype == np.float32 else 1e-12)
