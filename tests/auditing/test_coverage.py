"""Worlds whose truth is known: intervals cover it as often as they say, and p-values are uniform without a difference.

Small versions of ``python -m benchmarks coverage``, which runs forty worlds; its figures are in the documentation.
"""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest, norm

from fairtransport.auditing._confidence_intervals import (
    PAIRS_TEST,
    DisparityNorm,
    Stratum,
    joint_noise_floors,
    lower_tail,
)
from fairtransport.auditing._evidence import coarsen, variance_precision
from fairtransport.histograms import count_scores

FIGURES = (
    "wasserstein_disparity",
    "strong_demographic_disparity",
    "strong_pairwise_disparity",
    "pair",
    "mean_difference",
    "rate_difference",
    "rate_ratio",
    "rate",
)


def world_named(module, name):
    return next(world for world in module.worlds() if world.name == name)


def check(benchmark_module, name, n_audits):
    """Check that each interval covers in a share of audits that 95% makes likely: within four standard errors."""
    simulate = benchmark_module("coverage").simulate
    world = world_named(benchmark_module("_audit_worlds"), name)
    result = simulate(world, n_audits, n_replicates=99, seed=1)
    slack = 4 * np.sqrt(0.95 * 0.05 / n_audits)
    for figure in FIGURES:
        below, within, above = result[figure]
        assert within >= 0.95 - slack, (name, figure, below, above)
    if world.is_null:
        assert result["p_value"]["at most .05"] <= 0.05 + slack
        assert result["a pair falsely called different"] <= 0.05 + slack
    assert result["a false claim in the verdict"] <= 0.05 + slack


@pytest.mark.parametrize("name", ["null, 40% at 0", "shift .1, 30 + 30", "two values, 30% and 45%"])
def test_intervals_cover(benchmark_module, name):
    check(benchmark_module, name, 40)


@pytest.mark.trust
@pytest.mark.parametrize(
    "name",
    ["null, weights steep in score", "40% at 0, the rest shifted", "shapes differ, weights steep", "tail, 300 + 400",
     "six groups shifted", "null, six groups"],
)  # fmt: skip
def test_intervals_cover_in_harder_worlds(benchmark_module, name):
    check(benchmark_module, name, 60)


@pytest.mark.parametrize(
    "name", ["null, 30 + 30", "null, 90% at 0", "null, weights steep in score", "null, four groups, weights steep"]
)
def test_without_a_difference_p_values_are_uniform(benchmark_module, name):
    world = world_named(benchmark_module("_audit_worlds"), name)
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(200):
        stratum = Stratum(coarsen(world.count(rng, 512), 32), (DisparityNorm("pairs", "pairs"),))
        p_values.append(joint_noise_floors([stratum], 99, rng)[0][PAIRS_TEST].p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)
    if world.weights == "none" and "90%" not in name:
        # p = (1 + reaching) / 100 is uniform on 0.01, ..., 1; spread over its step it is uniform on [0, 1].
        assert kstest(np.array(p_values) - 0.01 * rng.random(len(p_values)), "uniform").pvalue > 0.001


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_unified_intervals_cover_a_normal_mean_that_cannot_be_negative(confidence):
    observed = np.linspace(-6, 12, 9001)
    p_values = norm.sf(observed)
    tails = np.array([lower_tail(p, confidence) if p <= 1 - confidence else np.nan for p in p_values])
    low = np.where(np.isnan(tails), 0.0, observed + norm.ppf(np.nan_to_num(tails, nan=0.5)))
    assert np.all(low[~np.isnan(tails)] > -1e-6)
    high = np.maximum(observed, 0) + norm.ppf((1 + confidence) / 2)
    for mean in (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0):
        density = norm.pdf(observed - mean) * (observed[1] - observed[0])
        covered = float(density[(low <= mean + 1e-6) & (mean <= high)].sum())
        assert confidence - 2e-3 <= covered <= (1 + confidence) / 2 + 2e-3
    assert (low > 0).sum() == pytest.approx((p_values <= 1 - confidence).sum(), abs=2)


def test_degrees_of_freedom_are_few_where_few_rows_have_the_variance():
    rng = np.random.default_rng(0)
    scores, groups = rng.normal(0.5, 0.1, 4000).clip(0, 1), np.repeat(["a", "b"], 2000)
    plain = variance_precision(count_scores(scores, sensitive_features=groups)).degrees_of_freedom
    assert plain == pytest.approx([2000, 2000], rel=0.05)
    weights = np.where(np.arange(4000) % 200 == 0, 100.0, 1.0)
    heavy = count_scores(scores, sensitive_features=groups, sample_weight=weights)
    precision = variance_precision(heavy)
    assert np.all(precision.degrees_of_freedom < 40)
    assert np.all(precision.factors > 1.02)


def run(module, n_audits, seed, **options):
    statuses, made, wrong = Counter(), Counter(), Counter()
    for number in range(n_audits):
        case = module.draw_case(np.random.default_rng([seed, number]), **options)
        assert module.contradictions(case) == [], number
        statuses[case.audit.verdict.status] += 1
        for claim, is_wrong in module.claims(case).items():
            made[claim] += 1
            wrong[claim] += is_wrong
    return statuses, made, wrong


def test_no_contradiction(benchmark_module):
    statuses, _, _ = run(benchmark_module("generated_audits"), 40, 1, max_rows=3000, n_replicates=40)
    assert len(statuses) >= 4


@pytest.mark.trust
def test_no_contradiction_in_more_of_them_and_few_false_claims(benchmark_module):
    statuses, made, wrong = run(benchmark_module("generated_audits"), 120, 2)
    assert len(statuses) >= 5
    for claim, count in made.items():
        # Levels of confidence are .9 to .99; "different" is counted where there is no difference.
        assert wrong[claim] <= 0.1 * count + 4 * np.sqrt(0.09 * count), claim
