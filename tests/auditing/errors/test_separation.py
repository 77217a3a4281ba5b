"""Equalized odds over all thresholds against the distances and Kolmogorov-Smirnov statistics of scipy."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, wasserstein_distance
from tests.auditing.rows import quick, rows_at_random

import fairtransport as ft
from fairtransport.auditing.errors.separation import estimate_separation

QUICK = quick(100)


@pytest.mark.parametrize("weighted", [False, True])
def test_distances_within_labels_are_those_of_scipy(weighted):
    scores, labels, groups, weights = rows_at_random(n=1200)
    mass = weights if weighted else np.ones(scores.size)
    result = ft.audit(scores, labels, sensitive_features=groups, sample_weight=mass if weighted else None, **QUICK)
    for part, label in ((result.separation.negatives, 0), (result.separation.positives, 1)):
        assert part.label == label
        total = 0.0
        for i, one in enumerate("abc"):
            for j, other in enumerate("abc"):
                first, second = ((labels == label) & (groups == name) for name in (one, other))
                expected = wasserstein_distance(scores[first], scores[second], mass[first], mass[second])
                assert part.distances[i][j] == pytest.approx(expected, abs=1e-12)
                total += expected * (i < j)
        assert part.disparity.value == pytest.approx(total / 3)  # the mean over three pairs
        assert part.disparity.low <= part.disparity.corrected <= part.disparity.high


def test_for_two_groups_the_mean_is_the_distance_and_the_maximum_is_kolmogorov_and_smirnovs():
    scores, labels, groups, _ = rows_at_random(n=1200, n_groups=2)
    separation = ft.audit(scores, labels, sensitive_features=groups, **QUICK).separation
    parts = (separation.negatives, separation.positives)
    for part in parts:
        one, other = (scores[(labels == part.label) & (groups == name)] for name in "ab")
        assert part.differences.mean.value == pytest.approx(part.distances[0][1], abs=1e-4)
        assert part.differences.maximum.value == pytest.approx(ks_2samp(one, other).statistic, abs=5e-3)
        at = part.differences.threshold
        assert abs((one > at).mean() - (other > at).mean()) == pytest.approx(part.differences.maximum.value, abs=1e-12)
    odds = separation.equalized_odds
    assert odds.maximum.value == max(part.differences.maximum.value for part in parts)
    assert odds.mean.value >= max(part.differences.mean.value for part in parts)


@pytest.mark.trust
def test_intervals_over_all_thresholds_cover_the_truth(estimate):
    """Scores of positive rows are uniform on [0, 1] and on [d, 1]: the mean difference is d / 2, the largest is d."""
    rng = np.random.default_rng(0)
    covered = {"mean": 0, "maximum": 0, "null": 0}
    n_tables, d = 80, 0.2
    for seed in range(n_tables):
        groups = np.repeat(["a", "b"], 600)
        labels = rng.integers(0, 2, 1200)
        scores = rng.random(1200)
        moved = (groups == "b") & (labels == 1)
        scores[moved] = d + (1 - d) * scores[moved]
        separation = estimate(estimate_separation, scores, labels, groups, seed=seed)
        mean, maximum = separation.positives.differences.mean, separation.positives.differences.maximum
        covered["mean"] += mean.low <= d / 2 <= mean.high
        covered["maximum"] += maximum.low <= d <= maximum.high
        covered["null"] += separation.negatives.differences.maximum.low == 0
    assert all(count >= least_covered(n_tables) for count in covered.values()), covered


def least_covered(n_tables, coverage=0.93):
    """Return the number of intervals that cover the truth, less three standard errors of the simulation."""
    return coverage * n_tables - 3 * np.sqrt(coverage * (1 - coverage) * n_tables)


@pytest.mark.trust
def test_the_mean_over_thresholds_is_covered_where_most_of_many_groups_are_alike(estimate):
    """One of six groups differs: the others seem to differ by chance, and the observed spread is too wide."""
    rng = np.random.default_rng(1)
    n_tables, n, d, covered = 40, 6000, 0.1, 0
    for seed in range(n_tables):
        groups, labels = np.arange(n) % 6, rng.integers(0, 2, n)
        scores = rng.random(n)
        scores[groups == 0] = d + (1 - d) * scores[groups == 0]
        mean = estimate(estimate_separation, scores, labels, groups, seed=seed).equalized_odds.mean
        covered += mean.low <= d / 2 <= mean.high
    assert covered >= least_covered(n_tables), covered


def test_a_difference_of_rates_is_never_above_one():
    """Of a few rows: the sampling noise alone would lead the limit beyond what rates can differ by."""
    rng = np.random.default_rng(0)
    groups, y = np.arange(24) % 2, np.arange(24) // 2 % 2
    scores = np.clip(0.45 * groups + 0.1 * y + 0.4 * rng.random(24), 0.0, 1.0)
    odds = ft.audit(scores, y, sensitive_features=groups, **QUICK).separation.equalized_odds
    assert odds.maximum.low <= odds.maximum.value <= odds.maximum.high
    assert odds.maximum.high == 1.0
