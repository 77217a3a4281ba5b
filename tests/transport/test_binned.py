"""The compiled passes over binned scores against the formulas."""

import numpy as np
import pytest

from fairtransport.transport.kernels.binned import (
    count_masses,
    count_scores,
    count_shared,
    logit_derivatives,
    logit_derivatives_shared,
    slices_and_levels,
    slopes_between_edges,
)
from fairtransport.transport.line import slice_means

CELLS = 16
NONE = np.zeros(0)


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.r_[rng.random(n - 3), 0.0, 1.0, 0.5]  # both ends, and an edge
    return scores, rng.integers(3, size=n).astype(np.uint8), rng.random(n) * 3, (rng.random(n) < 0.3).astype(np.float32)


def edge_masses(scores, shares, weights, n_cells):
    """The mass of each group on each edge of equal cells of [0, 1]."""
    hats = np.maximum(1.0 - np.abs(scores[:, None] - np.arange(n_cells + 1) / n_cells) * n_cells, 0.0)
    return (shares * weights[:, None]).T @ hats


def plain_derivatives(scores, labels, shares, weights, first, second):
    """The derivatives w (s - y + p' s (1 - s)) and w (s (1 - s) + p'' s^2 (1 - s)^2) for each row's logit."""
    cell = np.minimum((scores * first.shape[1]).astype(int), first.shape[1] - 1)
    slope, bend = ((shares * table[:, cell].T).sum(axis=1) for table in (first, second))
    variance = scores * (1.0 - scores)
    return weights * (scores - labels + slope * variance), weights * np.maximum(variance + bend * variance**2, 1e-16)


@pytest.mark.parametrize("weighted", [False, True])
def test_counting_splits_each_weight_between_two_edges(weighted):
    scores, codes, weights, _ = rows()
    masses = np.zeros((3, CELLS + 1))
    count_masses(scores, codes, weights if weighted else NONE, masses)
    plain = edge_masses(scores, np.eye(3)[codes], weights if weighted else np.ones(len(scores)), CELLS)
    np.testing.assert_allclose(masses, plain, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_counting_of_rows_that_belong_to_several_groups(weighted):
    scores, _, weights, _ = rows()
    shares = np.random.default_rng(1).dirichlet(np.ones(3), len(scores)).astype(np.float32)
    strata = np.random.default_rng(2).integers(2, size=len(scores)).astype(np.uint8)
    masses = np.zeros((2, CELLS + 1, 3))
    count_shared(scores, shares, strata, weights if weighted else NONE, masses)
    in_strata = np.hstack([shares * (strata == stratum)[:, None] for stratum in (0, 1)])
    plain = edge_masses(scores, in_strata, weights if weighted else np.ones(len(scores)), CELLS)
    np.testing.assert_allclose(masses.transpose(0, 2, 1).reshape(6, -1), plain, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_those_of_the_cell_of_each_score(weighted):
    scores, codes, weights, labels = rows()
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=(3, CELLS)), rng.random((3, CELLS))
    dirichlet = rng.dirichlet(np.ones(3), len(scores)).astype(np.float32)
    strata = (np.arange(len(scores)) % 2).astype(np.uint8)  # the penalty acts in the first stratum only
    table = np.stack((first, second), axis=-1)
    by_stratum = np.stack((table.transpose(1, 2, 0), np.zeros((CELLS, 2, 3))))
    for kernel, member, shares, cells in (
        (logit_derivatives, (codes,), np.eye(3)[codes], table),
        (logit_derivatives_shared, (dirichlet, strata), dirichlet * (strata == 0)[:, None], by_stratum),
    ):
        gradient, curvature = np.empty((2, len(scores)))
        used = weights if weighted else NONE
        kernel(scores, labels, *member, used, cells, gradient, curvature)
        used = weights if weighted else np.ones(len(scores))
        expected = plain_derivatives(scores, labels, shares, used, first, second)
        np.testing.assert_allclose(gradient, expected[0], atol=1e-12)
        np.testing.assert_allclose(curvature, expected[1], atol=1e-12)


def shares_below(masses):
    return np.hstack((np.zeros((len(masses), 1)), np.cumsum(masses, axis=1))) / masses.sum(axis=1, keepdims=True)


def test_counts_and_sums_of_bins_are_those_of_numpy():
    rng = np.random.default_rng(0)
    scores, weights, codes = rng.random(500), rng.random(500), rng.integers(3, size=500)
    bins, tables = (scores * 20).astype(np.int64), np.zeros((2, 3, 20))
    count_scores(scores, bins, codes, weights, *tables)
    for table, values in zip(tables, (weights, weights * scores), strict=True):
        expected = np.zeros((3, 20))
        np.add.at(expected, (codes, bins), values)
        np.testing.assert_allclose(table, expected, rtol=1e-12)


def test_slopes_between_edges_weight_slices_by_the_triangle_around_both_edges():
    rng = np.random.default_rng(4)
    masses = rng.exponential(size=(3, CELLS + 1)) * (rng.random((3, CELLS + 1)) < 0.7)
    slopes, levels, result = rng.normal(size=(3, 7, 2)), shares_below(masses), np.zeros((3, CELLS, 2))
    slopes_between_edges(slopes, levels, result)
    height = (np.arange(5000) + 0.5) / 5000
    for sample, table in np.ndindex(3, 2):
        low, high = levels[sample, :-1, None], levels[sample, 1:, None]
        rise = slopes[sample, :, table][np.minimum((7 * (low + height * (high - low))).astype(int), 6)]
        upward, downward = (rise * height).mean(axis=1), (rise * (1.0 - height)).mean(axis=1)
        np.testing.assert_allclose(result[sample, :, table], upward[:-1] + downward[1:], atol=2e-3)


def slices_of(masses, edges, n):
    slices, levels = np.zeros((len(masses), n)), np.zeros((len(masses), masses.shape[1] + 1))
    slices_and_levels(masses, edges, slices, levels)
    np.testing.assert_allclose(levels, shares_below(masses), atol=1e-12)
    return slices


def test_slices_of_a_histogram_are_those_of_its_rows():
    rng = np.random.default_rng(0)
    scores, edges = rng.beta(2, 4, 5000), np.linspace(0.0, 1.0, 401)
    slices = slices_of(np.histogram(scores, edges)[0][None].astype(float), edges, 32)[0]
    np.testing.assert_allclose(slices, slice_means(np.sort(scores), np.ones(5000), 32), atol=1 / 400)
    assert slices.mean() == pytest.approx(scores.mean(), abs=1e-3)


def test_a_histogram_of_evenly_spread_cells_is_exact():
    """Masses 1, 3 and 4 on [0, 1], [1, 2] and [3, 4]; four slices of mass 2, by hand."""
    slices = slices_of(np.array([[1.0, 3.0, 0.0, 4.0], [2.0, 0.0, 0.0, 0.0]]), np.arange(5.0), 4)
    np.testing.assert_allclose(slices[0], [(0.5 + 1.0 + 1 / 6) / 2, 1 + 2 / 3, 3.25, 3.75])
    np.testing.assert_allclose(slices[1], [0.125, 0.375, 0.625, 0.875])
