"""Draws of histograms against the distributions that they claim to have."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import hypergeom, multivariate_hypergeom

from fairtransport.histograms import resample_masses, shuffle_cells


def test_shuffles_are_those_of_rows():
    counts = np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    cells, nodes = [0, 0, 0, 1, 1], [0, 0, 1, 1, 2]
    exact = Counter()
    for order in permutations(cells):
        table = np.zeros((2, 3))
        np.add.at(table, (list(order), nodes), 1)
        exact[table.tobytes()] += 1 / 120
    drawn = shuffle_cells(counts, np.random.default_rng(0), 4000)
    found = Counter(table.tobytes() for table in drawn)
    for table in set(exact) | set(found):
        share = exact[table]
        assert found[table] / 4000 == pytest.approx(share, abs=5 * np.sqrt(share / 4000) + 1e-12)


def test_shuffles_keep_both_margins():
    counts = np.random.default_rng(0).integers(0, 30, (4, 12)).astype(float)
    drawn = shuffle_cells(counts, np.random.default_rng(1), 500)
    assert np.all(drawn.sum(axis=1) == counts.sum(axis=0))
    assert np.all(drawn.sum(axis=2) == counts.sum(axis=1))
    total, size = counts.sum(axis=0).astype(int), int(counts[1].sum())
    cov = multivariate_hypergeom.cov(total, size)
    assert drawn[:, 1].mean(axis=0) == pytest.approx(multivariate_hypergeom.mean(total, size), abs=1.0)
    assert np.cov(drawn[:, 1], rowvar=False) == pytest.approx(cov, abs=0.25 * np.abs(cov).max())
    one = drawn[:, 1, 0]
    assert one.var() == pytest.approx(hypergeom.var(total.sum(), total[0], size), rel=0.25)


def test_a_thousand_million_rows_are_not_shuffled():
    with pytest.raises(ValueError, match="too many to permute"):
        shuffle_cells(np.array([[1e9], [1.0]]), np.random.default_rng(0), 1)


def test_weights_have_the_variance_of_rows_drawn_one_by_one():
    rng = np.random.default_rng(0)
    weights, nodes = rng.random(40) * 3, rng.integers(0, 4, 40)
    masses, squares = (np.bincount(nodes, weights=weights**power, minlength=4)[None] for power in (1, 2))
    drawn = resample_masses(masses, squares, rng, 4000)[:, 0]
    one_by_one = np.stack([np.bincount(nodes, weights=weights * rng.poisson(1, 40), minlength=4) for _ in range(4000)])
    assert drawn.mean(axis=0) == pytest.approx(masses[0], rel=0.03)
    assert drawn.var(axis=0) == pytest.approx(squares[0], rel=0.12)
    assert drawn.var(axis=0) == pytest.approx(one_by_one.var(axis=0), rel=0.15)


def test_sizes_are_fixed_or_random():
    masses, rng = np.array([[3.0, 4.0], [0.0, 0.0]]), np.random.default_rng(0)
    kept = resample_masses(masses, None, rng, 50)
    assert np.all(kept.sum(axis=2) == [7, 0])
    loose = resample_masses(masses, None, rng, 2000, fixed_sizes=False).sum(axis=2)
    assert loose[:, 0].mean() == pytest.approx(7, abs=0.3)
    assert loose[:, 0].var() == pytest.approx(7, rel=0.15)


def test_nodes_of_many_and_of_few_rows_have_the_moments_of_a_multinomial_draw():
    counts = np.array([[3.0, 400.0, 0.0, 25.0, 12.0, 60.0]])
    drawn = resample_masses(counts, None, np.random.default_rng(0), 40_000)[:, 0]
    total, shares = counts.sum(), counts[0] / counts.sum()
    cov = total * (np.diag(shares) - np.outer(shares, shares))
    assert drawn.sum(axis=1) == pytest.approx(np.full(40_000, total), rel=1e-6)
    assert drawn.mean(axis=0) == pytest.approx(counts[0], abs=5 * np.sqrt(cov.max() / 40_000))
    assert np.cov(drawn, rowvar=False) == pytest.approx(cov, abs=0.03 * cov.max())
    assert np.all(drawn[:, [0, 2, 4]] == np.rint(drawn[:, [0, 2, 4]]))  # few rows are counted


def test_shares_of_fractional_counts_do_not_exceed_one_by_rounding():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = np.where(rng.random(5000) < 0.5, rng.uniform(20, 400, 5000), 0.0)  # sums depend on where zeros are
        drawn = resample_masses(counts[None], None, rng, 3)
        assert drawn.sum(axis=(1, 2)) == pytest.approx(counts.sum())
