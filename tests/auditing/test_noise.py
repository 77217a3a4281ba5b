"""Coarse histograms, disparity norms, permutation test, confidence distributions and distribution-free bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaincc, stdtrit
from scipy.stats import beta, binomtest

from fairtransport import metrics
from fairtransport.auditing._confidence_intervals import (
    METRICS,
    DisparityNorm,
    Stratum,
    _gamma_tail,
    _sort_curves,
    confidence_distributions,
    joint_noise_floors,
    largest_roots,
    make_norms,
)
from fairtransport.auditing._estimation import distribution_free_margins
from fairtransport.auditing._evidence import coarsen
from fairtransport.auditing.proportions import (
    Estimate,
    Tally,
    area_under_curve,
    difference,
    ratio,
    share,
    student_quantile,
)
from fairtransport.histograms import count_scores
from fairtransport.transport.line import Sample, wasserstein

TARGETS = ["barycenter", "barycenter_w2", "pooled", 1, [0.1, 0.45, 0.5, 0.9]]


def rows_at_random(seed=0, n=3000, n_groups=5):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n)
    return rng.beta(2, 3, n) * (1 - 0.2 * groups / n_groups), groups


def stratum_of(counted, target="barycenter", most=128):
    return Stratum(coarsen(counted, most), make_norms(counted, target))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [60, 3000])
def test_disparities_are_kept_by_coarse_bins(target, n):
    target = tuple(target) if isinstance(target, list) else target
    scores, groups = rows_at_random(n=n)
    counted = count_scores(scores, sensitive_features=groups)
    exact = counted.disparities(target)
    stratum = stratum_of(counted, target)
    floors, _ = joint_noise_floors([stratum], 20, np.random.default_rng(0))
    for name in METRICS:
        floor = floors[name]
        if n == 60 and (name != METRICS[0] or target in {"barycenter", "pooled"}):  # fewer scores than bins
            assert floor.observed == pytest.approx(exact[name], abs=1e-12)
        assert floor.observed == pytest.approx(exact[name], rel=0.015)
    assert stratum.histograms.nodes.size <= 130


@pytest.mark.parametrize("n_groups", [2, 3, 6, 30])
def test_norms_are_sums_of_distances(n_groups):
    scores, groups = rows_at_random(n=40 * n_groups, n_groups=n_groups)
    scores = np.round(scores, 2)
    counted = count_scores(scores, sensitive_features=groups, n_bins=100)
    coarse = coarsen(counted)
    curves, widths = coarse.curves(), coarse.widths
    samples = counted.samples()
    exact = counted.disparities()
    assert DisparityNorm("x", "median").total(curves, widths)[0] == pytest.approx(exact[METRICS[0]])
    assert DisparityNorm("x", "everyone").total(curves, widths)[0] == pytest.approx(exact[METRICS[1]])
    assert DisparityNorm("x", "pairs").total(curves, widths)[0] == pytest.approx(exact[METRICS[2]])
    to_first = sum(wasserstein(sample, samples[0]) for sample in samples)
    assert DisparityNorm("x", "group", group=0).total(curves, widths)[0] == pytest.approx(to_first)


def test_a_small_group_observed_between_two_others_may_lie_outside_them():
    # The mean of its 31 rows is known to .037: two standard errors above it, the sum over pairs is .17.
    sizes, shapes = (31, 300, 3000), (2.15, 2.3, 2.0)
    scores = np.concatenate([beta.ppf((np.arange(n) + 0.5) / n, a, 3) for n, a in zip(sizes, shapes, strict=True)])
    counted = count_scores(scores, sensitive_features=np.repeat(["a", "b", "c"], sizes))
    limits = confidence_distributions([stratum_of(counted)], 1000, np.random.default_rng(0))[METRICS[2]]
    assert 0.16 < limits.interval(0.95, 1.0)[1] < 0.22


@pytest.mark.parametrize("n", [90, 4000])
def test_floors_are_those_of_shuffled_rows(n):
    rng = np.random.default_rng(0)
    scores, groups = rng.beta(2, 3, n), rng.integers(0, 3, n)
    result = joint_noise_floors([stratum_of(count_scores(scores, sensitive_features=groups))], 1000, rng)[0]
    for name in METRICS:
        slow = metrics.noise_floor(
            getattr(metrics, name), scores, sensitive_features=groups, n_shuffles=150, random_state=1
        )
        error = np.hypot(slow.sd / np.sqrt(150), result[name].sd / np.sqrt(1000))
        assert result[name].mean == pytest.approx(slow.mean, abs=4 * error + 0.01 * slow.mean)
        assert result[name].sd == pytest.approx(slow.sd, rel=0.3)


def test_a_thousand_million_rows_have_a_floor():
    counted = count_scores([0.2, 0.4, 0.4, 0.6], sensitive_features=["a", "a", "b", "b"])
    many = counted
    for _ in range(29):
        many = many + many
    floors, _ = joint_noise_floors([stratum_of(many)], 50, np.random.default_rng(0))
    assert 0 < floors[METRICS[2]].mean < 1e-4
    assert floors[METRICS[2]].p_value == 1 / 51


@pytest.mark.parametrize("target", TARGETS)
def test_intervals_contain_a_clear_disparity(target):
    scores, groups = rows_at_random(n=20_000, n_groups=4)
    scores = np.clip(scores * (1 - 0.1 * groups), 0, 1)
    counted = count_scores(scores, sensitive_features=groups)
    exact = counted.disparities(target)
    for name, result in confidence_distributions([stratum_of(counted, target)], 200, np.random.default_rng(0)).items():
        low, high = result.interval(0.95, 0.001)
        assert low < exact[name] * 1.01
        assert high > exact[name] * 0.99
        assert high - low < 0.3 * exact[name]
        assert result.median == pytest.approx(exact[name], rel=0.05)


def test_largest_roots_of_hyperbolas_with_and_without_limits():
    # |d x + h| in the plane is sqrt(s^2 x^2 + 2 b x + c^2), whose roots are those of a quadratic equation.
    rng = np.random.default_rng(0)
    direction, noise, observed = np.array([1.0, 2.0]), rng.normal(size=(500, 2)) * 1.5, 1.7
    slope, at_0 = float(np.linalg.norm(direction)), np.linalg.norm(noise, axis=1)
    b = noise @ direction / slope**2
    discriminant = b**2 + (observed**2 - at_0**2) / slope**2
    exact = np.where(discriminant >= 0, np.maximum(np.sqrt(np.maximum(discriminant, 0)) - b, 0), 0)

    def measure(at, index):
        return np.linalg.norm(at[:, None] * direction + noise[index], axis=1)

    roots = largest_roots(measure, observed, at_0, slope, 2)
    assert measure(roots, np.arange(500))[roots > 0] == pytest.approx(observed, rel=1e-3)
    near = np.abs(discriminant) < 1e-2  # where a function hardly reaches the value
    assert roots[~near] == pytest.approx(exact[~near], abs=0.02)
    for limit in np.quantile(roots, [0.3, 0.5, 0.9]):
        above = largest_roots(measure, observed, at_0, slope, 2, above=limit)
        below = largest_roots(measure, observed, at_0, slope, 2, below=limit)
        for kept, sure in ((above > 0, roots > limit * 1.01), (below < np.inf, roots < limit * 0.99)):
            assert np.all(kept[sure])
        assert above[above > 0] == pytest.approx(roots[above > 0], abs=1e-12)
        assert below[below < np.inf] == pytest.approx(roots[below < np.inf], abs=1e-12)


def test_the_bias_is_corrected():
    # 30 rows in each of 6 groups without a difference: the observed disparity is 0.9, and never unbiased at 0.
    rng = np.random.default_rng(0)
    corrected, observed = [], []
    for _ in range(20):
        counted = count_scores(rng.beta(2, 3, 180), sensitive_features=np.repeat(np.arange(6), 30))
        observed.append(counted.disparities()[METRICS[2]])
        corrected.append(confidence_distributions([stratum_of(counted)], 99, rng)[METRICS[2]].median)
    assert np.mean(corrected) < 0.45 * np.mean(observed)
    assert np.min(corrected) == 0


def test_margins_by_hand():
    sizes, weights = np.array([200.0, 800.0]), np.array([1.0, 3.0])
    radius = np.sqrt(np.log(4 / 0.1) / (2 * sizes))
    kinds = {
        "pairs": radius.sum(),
        "median": radius.sum(),
        "fixed": radius.sum(),
        "everyone": radius.sum() + 2 * (radius @ [0.25, 0.75]),
        "group": radius.sum(),
    }
    for kind, expected in kinds.items():
        result = distribution_free_margins([DisparityNorm("x", kind, group=0)], sizes, weights, 0.9)
        assert result["x"] == pytest.approx(expected)


def test_margins_hold_for_any_distribution():
    rng = np.random.default_rng(0)
    norms = make_norms(count_scores([0.0, 1.0], sensitive_features=[0, 1]), "barycenter")
    for draw in (rng.random, lambda n: (rng.random(n) < 0.5) * 1.0):  # the truth is 0
        margin = distribution_free_margins(norms, np.array([50.0, 50.0]), np.ones(2), 0.95)[METRICS[2]]
        result = [
            metrics.strong_pairwise_disparity(draw(100), sensitive_features=np.repeat([0, 1], 50)) for _ in range(200)
        ]
        assert np.mean(np.array(result) <= margin) >= 0.95


def test_bins_do_not_depend_on_groups():
    scores, groups = rows_at_random()
    shuffled = np.random.default_rng(1).permutation(groups)
    one, other = (coarsen(count_scores(scores, sensitive_features=codes)) for codes in (groups, shuffled))
    assert np.array_equal(one.nodes, other.nodes)
    assert np.array_equal(one.centres, other.centres)


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.8, 0.95, 0.99]))
def test_a_share_has_wilsons_interval(inside, outside, confidence):
    found = share(Tally(inside, outside, inside, outside), confidence)
    expected = binomtest(inside, inside + outside).proportion_ci(confidence, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.value == inside / (inside + outside)


def test_weights_count_by_their_squares():
    # One row of weight 50 among 50 of weight 1: the share is half that one row.
    lone = share(Tally(50, 50, 2500, 50), 0.95)
    many = share(Tally(50, 50, 50, 50), 0.95)
    assert lone.high - lone.low > 2 * (many.high - many.low)
    scaled = share(Tally(100, 100, 200, 200), 0.95)  # weights of 2
    assert scaled == many
    empty = share(Tally(0, 0, 0, 0), 0.95)
    assert np.isnan(empty.value)


def test_differences_and_ratios_cover():
    rng = np.random.default_rng(0)
    for p, q, n, m in ((0.3, 0.5, 80, 120), (0.05, 0.1, 200, 60)):
        hits = np.zeros(2)
        for _ in range(1500):
            one, other = (
                share(Tally(k, size - k, k, size - k), 0.95)
                for k, size in ((rng.binomial(n, p), n), (rng.binomial(m, q), m))
            )
            gap, times = difference(one, other), ratio(one, other)
            hits += [gap.low <= p - q <= gap.high, times.low <= p / q <= times.high]
        assert np.all(hits / 1500 > 0.93)
        assert np.all(hits / 1500 < 0.99)


def test_a_ratio_to_nothing():
    found = ratio(Estimate(0.0, 0.0, 0.1), Estimate(0.0, 0.0, 0.1))
    assert np.isnan(found.value)
    assert (found.low, found.high) == (0.0, np.inf)
    assert ratio(Estimate(0.5, 0.4, 0.6), Estimate(0.1, 0.0, 0.3)).high == np.inf


def test_the_area_covers():
    # Normal scores apart by 1: the area is Phi(1 / sqrt 2) = 0.7602.
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(1000):
        negatives, positives = Sample.from_values(rng.normal(0, 1, 60)), Sample.from_values(rng.normal(1, 1, 40))
        found = area_under_curve(negatives, positives, (60, 40), 0.95)
        hits += found.low <= 0.76025 <= found.high
    assert 0.925 <= hits / 1000 <= 0.98


def test_areas_at_the_edge():
    low, high = Sample.from_values([0.1, 0.2]), Sample.from_values([0.8])
    assert area_under_curve(low, high, (2, 1), 0.95).value == 1.0
    assert area_under_curve(low, high, (2, 1), 0.95).low < 0.5
    assert area_under_curve(high, low, (1, 2), 0.95).value == 0.0
    assert area_under_curve(None, high, (0, 1), 0.95) is None


@pytest.mark.parametrize("n_groups", [1, 2, 3, 5, 10, 16, 17])
def test_curves_are_sorted_at_every_point(n_groups):
    curves = np.random.default_rng(0).integers(2, size=(n_groups, 1, 5000))  # a network that sorts 0 and 1 sorts all
    assert np.array_equal(_sort_curves(curves), np.sort(curves, axis=0))


def test_figures_of_the_same_rows_share_their_draws():
    rng = np.random.default_rng(0)
    scores, groups = rng.random(400), np.repeat(["a", "b"], 200)
    histograms = coarsen(count_scores(scores, sensitive_features=groups))
    first = histograms.replicates(rng, 50)
    assert histograms.replicates(rng, 50) is first
    assert not np.array_equal(histograms.bootstrap(rng, 50)[0], first[0])


def test_quantiles_and_tails_are_those_of_scipy():
    for level in (0.6, 0.975, 0.9999):
        for freedom in (3.0, 199.9, 200.0, 1234.5, 1e7):
            assert student_quantile(freedom, level) == pytest.approx(stdtrit(freedom, level), rel=1e-7)
    for shape in (0.3, 1.0, 2.5, 40.0, 900.0):
        for value in shape + 1 + np.array([0.01, 1.0, 5.0, 40.0]) * np.sqrt(shape):
            assert _gamma_tail(shape, float(value)) == pytest.approx(gammaincc(shape, value), rel=1e-7)
        assert _gamma_tail(shape, shape) == 1.0  # no tail
