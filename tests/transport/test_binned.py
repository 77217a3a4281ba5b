"""The compiled passes over binned scores against plain NumPy."""

import numpy as np
import pytest

from fairtransport.transport.binned import count_masses, count_shared, pushes, pushes_shared, quantiles
from fairtransport.transport.line import wasserstein

CELLS = 16
NONE = np.zeros(0)


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.r_[rng.random(n - 3), 0.0, 1.0, 0.5]  # both ends, and an edge
    return scores, rng.integers(3, size=n).astype(np.uint8), rng.random(n) * 3, (rng.random(n) < 0.3).astype(np.float32)


def shared_between_edges(scores, weights):
    """One row's mass on the edges of the cells: a triangle of the width of two cells."""
    edges = np.arange(CELLS + 1) / CELLS
    return weights[:, None] * np.maximum(1.0 - np.abs(scores[:, None] - edges) * CELLS, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_counting_shares_each_weight_between_two_edges(weighted):
    scores, codes, weights, _ = rows()
    masses = np.zeros((3, CELLS + 1))
    count_masses(scores, codes, weights if weighted else NONE, masses)
    single = shared_between_edges(scores, weights if weighted else np.ones(len(scores)))
    np.testing.assert_allclose(masses, [single[codes == a].sum(axis=0) for a in range(3)], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_counting_of_rows_that_belong_to_several_groups(weighted):
    scores, _, weights, _ = rows()
    shares = np.random.default_rng(1).dirichlet(np.ones(3), len(scores)).astype(np.float32)
    masses = np.zeros((CELLS + 1, 3))
    count_shared(scores, shares, weights if weighted else NONE, masses)
    single = shared_between_edges(scores, weights if weighted else np.ones(len(scores)))
    np.testing.assert_allclose(masses, single.T @ shares, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_pushes_look_up_the_cell_of_each_score(weighted):
    scores, codes, weights, labels = rows()
    rng = np.random.default_rng(2)
    slopes, bends = rng.normal(size=(3, CELLS)), rng.random((3, CELLS))
    shares = rng.dirichlet(np.ones(3), len(scores)).astype(np.float32)
    given = weights if weighted else np.ones(len(scores))
    cell = np.minimum((scores * CELLS).astype(int), CELLS - 1)
    rise = scores * (1 - scores)
    one_group = np.eye(3, dtype=np.float32)[codes]
    for kernel, member, tables in (
        (pushes, codes, (slopes, bends)),
        (pushes_shared, shares, (slopes.T.copy(), bends.T.copy())),
    ):
        part = one_group if kernel is pushes else shares
        slope, bend = ((part * table[:, cell].T).sum(axis=1) for table in (slopes, bends))
        gradient, curvature = np.empty((2, len(scores)))
        kernel(scores, labels, member, weights if weighted else NONE, *tables, gradient, curvature)
        np.testing.assert_allclose(gradient, given * (scores - labels + slope * rise), atol=1e-12)
        np.testing.assert_allclose(curvature, given * np.maximum(rise + bend * rise**2, 1e-16), atol=1e-12)


def test_quantiles_of_binned_scores_are_those_of_the_scores():
    scores = np.random.default_rng(3).beta(2, 5, 20_000)
    masses = np.zeros((1, 257))
    count_masses(scores, np.zeros(len(scores), np.uint8), NONE, masses)
    levels = (np.arange(64) + 0.5) / 64
    np.testing.assert_allclose(quantiles(masses[0], levels), np.quantile(scores, levels), atol=1 / 256)


def test_distances_of_binned_scores_are_those_of_the_scores_up_to_half_a_cell():
    rng = np.random.default_rng(4)
    first, second = rng.beta(2, 5, 500), rng.beta(5, 2, 700)
    masses = np.zeros((2, 129))
    codes = np.repeat([0, 1], [500, 700]).astype(np.uint8)
    count_masses(np.r_[first, second], codes, NONE, masses)
    levels = np.cumsum(masses / masses.sum(axis=1, keepdims=True), axis=1)
    area = np.abs(levels[0] - levels[1])[:-1].mean()
    assert area == pytest.approx(wasserstein(first, second), abs=0.5 / 128)
