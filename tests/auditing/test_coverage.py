"""Simulated worlds whose truth is known: intervals cover it as often as they say, p-values are uniform without it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from fairtransport.auditing._coarse_histograms import MAX_NODES, coarsen
from fairtransport.auditing._confidence_intervals import Stratum
from fairtransport.auditing._disparity_norms import METRICS, make_norms
from fairtransport.auditing._disparity_readings import disparity_readings
from fairtransport.auditing._permutation_test import noise_floors
from fairtransport.auditing.options import Options
from fairtransport.histograms import count_scores

WTH, SDD, SPDD = METRICS
N_WORLDS = 1000
# Few replicates (and, below, few bins), so that a thousand audits take seconds; more make an interval steadier.
OPTIONS = Options(
    target="barycenter",
    thresholds=(0.5,),
    unit_thresholds=(0.5,),
    confidence=0.95,
    n_bootstrap=99,
    n_permutations=39,
    min_judged_rows=30,
    small_groups="keep",
    min_group_size=30,
)
POINTS = (np.arange(400) + 0.5) / 400


def draw_world(rng, n_groups, n_rows, apart):
    """Groups of unequal sizes with scores of F(s) = 1 - (1 - s**a)**b, whose medians (and shapes) are drawn anew."""
    medians = 0.4 + apart * rng.uniform(-0.5, 0.5, n_groups)
    a = rng.uniform(1.6, 2.4, n_groups) if apart else np.full(n_groups, 2.0)
    b = np.log(0.5) / np.log1p(-(medians**a))
    shares = (rng.dirichlet(np.full(n_groups, 6.0)) + 0.3 / n_groups) / 1.3
    return a, b, np.maximum((n_rows * shares).astype(int), 5)


def true_disparities(a, b, sizes):
    curves = 1 - (1 - POINTS ** a[:, None]) ** b[:, None]
    everyone = sizes @ curves / sizes.sum()
    pairs = sum(np.abs(one - other).mean() for k, one in enumerate(curves) for other in curves[:k])
    return {
        WTH: np.abs(curves - np.median(curves, axis=0)).mean(axis=1).sum(),
        SDD: np.abs(curves - everyone).mean(axis=1).sum(),
        SPDD: pairs,
    }


def count_world(rng, a, b, sizes, *, weighted=False):
    groups = np.repeat(np.arange(sizes.size), sizes)
    scores = (1 - rng.random(groups.size) ** (1 / b)[groups]) ** (1 / a)[groups]
    weights = None
    if weighted:  # high scores were kept more rarely, and count for more: the weighted rows have the true distribution
        kept = rng.random(scores.size) < 1 / (1 + 3 * scores)
        scores, groups, weights = scores[kept], groups[kept], 1 + 3 * scores[kept]
    return count_scores(scores, sensitive_features=groups, sample_weight=weights, n_bins=4096)


def simulate(seed, n_groups, n_rows, apart, metrics, n_worlds=N_WORLDS, *, weighted=False, n_bins=64):
    """Share of worlds in which the truth lies below, within and above the 95% interval, for each metric."""
    rng = np.random.default_rng(seed)
    where = {name: np.zeros(3) for name in metrics}
    for _ in range(n_worlds):
        world = draw_world(rng, n_groups, n_rows, apart)
        truth = true_disparities(*world)
        counted = count_world(rng, *world, weighted=weighted)
        norms = tuple(one for one in make_norms(counted, "barycenter") if one.name in metrics)
        stratum = Stratum(coarsen(counted, n_bins), norms)
        floors = noise_floors([stratum], OPTIONS.n_permutations, rng)
        for name, found in disparity_readings([stratum], [counted.disparities()], floors, OPTIONS, rng).items():
            where[name][int(truth[name] >= found.low - 1e-9) + int(truth[name] > found.high + 1e-9)] += 1 / n_worlds
    return where


@pytest.mark.parametrize("n_rows", [200, 20_000])
@pytest.mark.parametrize("n_groups", [2, 6])
def test_intervals_of_the_pairwise_disparity_cover(n_groups, n_rows):
    # 1,000 worlds: the share that is covered varies by 0.007 around its mean. With two groups all three are the same.
    below, within, above = simulate(0, n_groups, n_rows, 0.3, [SPDD])[SPDD]
    assert 0.92 <= within <= 0.98
    assert below < 0.05  # 0.025 on each side, if it were perfect
    assert above < 0.05


@pytest.mark.parametrize("n_groups", [2, 6])
def test_small_differences_are_covered_too(n_groups):
    # Means apart by less than their noise: readings are two to four times the truth, percentiles would never cover.
    _, within, _ = simulate(1, n_groups, 200, 0.05, [SPDD], n_worlds=300)[SPDD]
    assert within >= 0.92


@pytest.mark.paper
@pytest.mark.parametrize("apart", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("n_rows", [200, 20_000])
@pytest.mark.parametrize("n_groups", [2, 6])
def test_intervals_of_all_disparities_cover(n_groups, n_rows, apart):
    for below, within, above in simulate(2, n_groups, n_rows, apart, METRICS, n_bins=MAX_NODES).values():
        assert within >= 0.91  # 0.92, less what 1,000 worlds leave open
        assert below < 0.055
        assert above < 0.055


def test_weights_are_covered_as_well():
    _, within, _ = simulate(5, 2, 600, 0.3, [SPDD], n_worlds=300, weighted=True)[SPDD]
    assert 0.91 <= within <= 0.99  # 300 worlds: 0.013 around the mean


def test_the_other_disparities_cover():
    for name, (_, within, _) in simulate(3, 6, 200, 0.3, [WTH, SDD], n_worlds=300).items():
        assert 0.9 <= within <= 0.99, name  # 300 worlds: 0.013 around the mean


@pytest.mark.parametrize(("n_groups", "n_rows"), [(2, 200), (6, 200), (2, 20_000)])
def test_without_a_difference_p_values_are_uniform(n_groups, n_rows):
    rng = np.random.default_rng(n_groups + n_rows)
    p_values = []
    for _ in range(N_WORLDS if n_rows == 200 and n_groups == 2 else 300):
        counted = count_world(rng, *draw_world(rng, n_groups, n_rows, 0.0))
        stratum = Stratum(coarsen(counted), make_norms(counted, "barycenter")[2:])
        p_values.append(noise_floors([stratum], 99, rng)[SPDD].p_value)
    # p = (1 + reaching) / 100 is uniform on 0.01, ..., 1; spread over its step it is uniform on [0, 1].
    assert kstest(np.array(p_values) - 0.01 * rng.random(len(p_values)), "uniform").pvalue > 0.001
    assert np.mean(np.array(p_values) <= 0.05) == pytest.approx(0.05, abs=0.04)


def test_without_a_difference_the_interval_reaches_zero():
    # The truth is 0, so an interval misses it only from above: by half of the error, 0.025.
    below, _, above = simulate(4, 2, 200, 0.0, [SPDD], n_worlds=500)[SPDD]
    assert above == 0
    assert below <= 0.04  # 500 worlds: 0.007 around the mean
