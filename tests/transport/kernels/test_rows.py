"""Products with drawn rows, the random numbers by which they are drawn, and the sort of the discrete update."""

import numpy as np
import pytest
from scipy import sparse

from fairtransport.linear._sgd_solver import flat_rows
from fairtransport.transport.kernels.rows import (
    Population,
    add_rows,
    draw_index,
    draw_rows,
    draw_values,
    fill_alias,
    score_rows,
)
from fairtransport.transport.kernels.sgd import write_order
from fairtransport.transport.reference import draw_indices

from .tables import TABLES


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("table", TABLES)
def test_products_are_those_of_the_matrix(table, storage):
    rng = np.random.default_rng(2)
    X = TABLES[table](rng, 50).astype(float)
    rows = flat_rows(storage(X))
    theta, drawn, factors = rng.normal(size=(2, X.shape[1] + 1)), rng.integers(50, size=9), rng.normal(size=9)
    logits, gradient, model = np.empty(9), np.zeros_like(theta), np.uint64(1)
    score_rows(rows, drawn, theta, model, logits)
    np.testing.assert_allclose(logits, X[drawn] @ theta[1, :-1] + theta[1, -1], atol=1e-12)
    add_rows(rows, drawn, factors, gradient, model)
    np.testing.assert_allclose(gradient[1], np.append(factors @ X[drawn], factors.sum()), atol=1e-12)
    assert not gradient[0].any()


def test_draws_are_those_of_splitmix64():
    for seed, position, size in ((0, 0, 10), (123, 456, 7), (2**62 - 1, 2**40, 2**31)):
        assert draw_index(seed, position, size) == draw_indices(seed, position, 1, size)[0]
    # First output of the published SplitMix64 for seed 0, its upper half.
    assert draw_indices(0, 0, 1, 2**32)[0] == 0xE220A839


def test_batches_are_drawn_in_order_of_position():
    values, drawn = np.linspace(0, 1, 13), np.empty(20)
    draw_values(values, np.uint64(5), np.uint64(100), 20, drawn)
    np.testing.assert_array_equal(drawn, values[draw_indices(5, 100, 20, 13)])


def test_rows_are_drawn_from_their_group():
    drawn = np.empty(30, int)
    population = Population(np.array([0, 2, 5]), np.zeros(0, np.uint64), np.zeros(0, np.int64))
    draw_rows(population, 1, np.uint64(5), np.uint64(0), drawn)
    np.testing.assert_array_equal(drawn, 2 + draw_indices(5, 0, 30, 3))


def test_rows_are_drawn_in_proportion_to_their_weights():
    weights = np.array([0.0, 1.0, 2.0, 5.0])
    accept, alias, drawn = np.zeros(4, np.uint64), np.zeros(4, np.int64), np.empty(80_000, np.int64)
    fill_alias(weights, 0, accept, alias)
    draw_rows(Population(np.array([0, 4]), accept, alias), 0, np.uint64(3), np.uint64(0), drawn)
    share = np.bincount(drawn, minlength=4) / drawn.size
    np.testing.assert_allclose(share, weights / 8, atol=0.007)  # four standard deviations


def test_alias_table_has_the_right_shares():
    weights = np.array([0.0, 1.0, 2.0, 5.0, 0.5])
    accept, alias = np.zeros(5, np.uint64), np.zeros(5, np.int64)
    fill_alias(weights, 100, accept, alias)
    share = np.zeros(5)
    for i in range(5):
        keep = float(accept[i]) / 2**32
        share[i] += keep / 5
        share[alias[i] - 100] += (1 - keep) / 5
    np.testing.assert_allclose(share, weights / weights.sum(), atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 100, 333])
@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_sort(n, spread):
    rng = np.random.default_rng(n)
    keys = np.r_[0.0, 1.0, np.round(rng.random(n), 2), spread * rng.random(n)]
    order = np.empty(len(keys), np.int64)
    write_order(keys, order)
    np.testing.assert_array_equal(keys[order], np.sort(keys))
    np.testing.assert_array_equal(np.sort(order), np.arange(len(keys)))
