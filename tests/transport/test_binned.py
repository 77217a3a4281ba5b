"""The compiled passes over binned scores against the formulas."""

import numpy as np
import pytest

from fairtransport.transport.kernels.binned import (
    CellDerivatives,
    count_masses,
    count_shared,
    logit_derivatives,
    logit_derivatives_shared,
    slopes_between_edges,
)

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
    by_stratum = [np.stack((table.T, np.zeros_like(table.T))) for table in (first, second)]
    for kernel, member, shares, table in (
        (logit_derivatives, (codes,), np.eye(3)[codes], (first, second)),
        (logit_derivatives_shared, (dirichlet, strata), dirichlet * (strata == 0)[:, None], by_stratum),
    ):
        gradient, curvature = np.empty((2, len(scores)))
        used = weights if weighted else NONE
        kernel(scores, labels, *member, used, CellDerivatives(*table), gradient, curvature)
        used = weights if weighted else np.ones(len(scores))
        expected = plain_derivatives(scores, labels, shares, used, first, second)
        np.testing.assert_allclose(gradient, expected[0], atol=1e-12)
        np.testing.assert_allclose(curvature, expected[1], atol=1e-12)


def shares_below(masses):
    return np.hstack((np.zeros((len(masses), 1)), np.cumsum(masses, axis=1))) / masses.sum(axis=1, keepdims=True)


def test_slopes_between_edges_weight_slices_by_the_triangle_around_both_edges():
    rng = np.random.default_rng(4)
    masses = rng.exponential(size=(3, CELLS + 1)) * (rng.random((3, CELLS + 1)) < 0.7)
    slopes, levels, result = rng.normal(size=(3, 7)), shares_below(masses), np.zeros((3, CELLS))
    slopes_between_edges(slopes, levels, result)
    height = (np.arange(5000) + 0.5) / 5000
    for sample in range(3):
        low, high = levels[sample, :-1, None], levels[sample, 1:, None]
        rise = slopes[sample][np.minimum((7 * (low + height * (high - low))).astype(int), 6)]
        upward, downward = (rise * height).mean(axis=1), (rise * (1.0 - height)).mean(axis=1)
        np.testing.assert_allclose(result[sample], upward[:-1] + downward[1:], atol=2e-3)
