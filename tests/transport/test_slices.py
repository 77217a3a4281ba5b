"""Slice means of samples and of histograms, and the order they are taken in."""

import numpy as np
import pytest

from fairtransport.transport import line
from fairtransport.transport.kernels.line import add_row_slopes, write_slice_means
from fairtransport.transport.line import ascending_order, slice_means

NONE = np.zeros(0)


def compiled_means(scores, order, weights, n_slices):
    means = np.empty(n_slices)
    write_slice_means(scores, order, weights, means)
    return means


def compiled_slopes(slopes, order, weights, n_rows, factor=1.0):
    gradient = np.zeros(n_rows)
    add_row_slopes(slopes, order, weights, factor, gradient)
    return gradient


def row_slopes(slopes, mass):
    """The mean slope over the levels that each row covers; times its mass, the adjoint of `slice_means`."""
    cumulative, area = (np.concatenate(([0.0], np.cumsum(one))) for one in (mass, slopes))
    reached = np.interp(cumulative, np.linspace(0.0, cumulative[-1], len(slopes) + 1), area)
    return np.diff(reached) * cumulative[-1] / (len(slopes) * mass)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 8), (5, 8), (64, 64), (200, 64), (1000, 7)])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_means_and_slopes_are_the_plain_ones(n, m, weighted):
    rng = np.random.default_rng(n + m)
    scores, weights = rng.random(n), rng.uniform(0.1, 3.0, n) if weighted else NONE
    order = np.argsort(scores)
    mass = weights[order] if weighted else np.ones(n)
    np.testing.assert_allclose(
        compiled_means(scores, order, weights, m), slice_means(scores[order], mass, m), atol=1e-12
    )
    slopes = rng.normal(size=m)
    plain = row_slopes(slopes, mass) * mass / mass.sum()
    np.testing.assert_allclose(compiled_slopes(slopes, order, weights, n)[order], plain, atol=1e-12)


def test_slices_keep_the_mean_and_the_order():
    rng = np.random.default_rng(2)
    scores = rng.lognormal(size=333)
    means = compiled_means(scores, np.argsort(scores), NONE, 50)
    assert means.mean() == pytest.approx(scores.mean())
    assert (np.diff(means) >= 0).all()
    assert scores.min() <= means[0] <= means[-1] <= scores.max()


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 5000])
def test_the_order_is_that_of_argsort(n):
    rng = np.random.default_rng(n)
    kinds = [rng.random(n), rng.integers(10, size=n) / 10.0, np.full(n, 0.3), rng.normal(size=n), np.arange(n) / n]
    ranges = [1e-305, 2e-300, 1e-200, 1e-15, 1e15, 1e200, 1.5e308]
    for values in (*kinds, *((rng.permutation(n) / n - 0.5) * scale for scale in ranges)):
        np.testing.assert_array_equal(ascending_order(values), np.argsort(values, kind="stable"))


def test_values_closer_than_the_resolution_keep_their_order():
    """Positions may be those of values within 2^-33 of the range."""
    rng = np.random.default_rng(0)
    values = np.concatenate((rng.random(3000) * 1e-9, [1.0]))
    result = values[ascending_order(values)]
    assert np.diff(result).min() >= -(2.0**-33)
    assert np.abs(result - np.sort(values)).max() <= 2.0**-33


def test_plain_slopes_of_rows_are_those_of_the_compiled_loop():
    rng = np.random.default_rng(2)
    mass, slopes = rng.random(83), rng.normal(size=32)
    expected = compiled_slopes(slopes, np.arange(83), mass, 83)
    np.testing.assert_allclose(line.row_slopes(slopes, mass / mass.sum()), expected, atol=1e-12)
