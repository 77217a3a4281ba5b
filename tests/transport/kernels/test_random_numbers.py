"""SplitMix64 over a counter, and drawing in proportion to weights."""

import numpy as np

from fairtransport.transport.kernels.rows import Population, draw_index, draw_rows, draw_values, fill_alias
from fairtransport.transport.reference import draw_indices


def test_draws_are_those_of_splitmix64():
    for seed, position, size in ((0, 0, 10), (123, 456, 7), (2**62 - 1, 2**40, 2**31)):
        assert draw_index(seed, position, size) == draw_indices(seed, position, 1, size)[0]
    # First output of the published SplitMix64 for seed 0, its upper half.
    assert draw_indices(0, 0, 1, 2**32)[0] == 0xE220A839


def test_draws_are_uniform():
    counts = np.bincount([draw_index(9, i, 8) for i in range(80_000)], minlength=8)
    assert np.abs(counts - 10_000).max() < 400  # four standard deviations


def test_batches_are_drawn_in_order_of_position():
    values, drawn = np.linspace(0, 1, 13), np.empty(20)
    draw_values(values, np.uint64(5), np.uint64(100), 20, drawn)
    np.testing.assert_array_equal(drawn, values[draw_indices(5, 100, 20, 13)])


def test_rows_are_drawn_from_their_group():
    population, drawn = (
        Population(np.array([0, 2, 5]), np.zeros(0, np.uint64), np.zeros(0, np.int64)),
        np.empty(30, int),
    )
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
