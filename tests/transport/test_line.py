"""Exact transport on the line, against POT and scipy, and for what it promises to the last bit."""

import re

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wasserstein_distance

from fairtransport.transport.line import QuantileMap, Sample, as_sample, coupling, quantile_map, wasserstein

CANARY = 0.123454321

numbers = st.floats(-1e6, 1e6, allow_nan=False)
tied = st.sampled_from([-2.0, 0.0, 0.1, 0.2, 0.3, 1.0])
positive = st.floats(1e-3, 1e3)


def vectors(elements=numbers | tied, max_size=30):
    return arrays(np.float64, st.integers(1, max_size), elements=elements)


@st.composite
def weighted(draw, max_size=30):
    values = draw(vectors(max_size=max_size))
    weights = draw(st.none() | arrays(np.float64, values.size, elements=positive))
    return values, weights


def two_random_samples(seed):
    """Unequal sizes, weights (some zero), ties within and between."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 60, size=2)
    x, y = rng.beta(2, 5, n), rng.beta(4, 3, m)
    if seed % 2:
        x, y = np.round(x, 1), np.round(y, 1)
    u, v = rng.random(n), rng.random(m)
    u[rng.random(n) < 0.2], v[rng.random(m) < 0.2] = 0, 0
    u[rng.integers(n)] += 0.1
    v[rng.integers(m)] += 0.1
    return x, y, u / u.sum(), v / v.sum()


def test_a_sample_sorts_drops_what_has_no_weight_and_normalises():
    sample = Sample.from_values([0.5, 0.1, 0.9, 0.1], weights=[2, 1, 0, 5])
    assert sample.values.tolist() == [0.1, 0.1, 0.5]
    assert sample.weights.tolist() == [0.125, 0.625, 0.25]
    assert sample.levels.tolist() == [0.125, 0.75, 1.0]
    assert len(sample) == 3
    assert sample.mean == pytest.approx(0.75 * 0.1 + 0.25 * 0.5)
    assert Sample.from_values([0.0, 1.0], weights=[1.0, 1e-20]).values.tolist() == [0.0]  # too small to move the level


@given(weighted())
def test_levels_end_at_exactly_one_and_weights_are_positive(drawn):
    sample = Sample.from_values(*drawn)
    assert sample.levels[-1] == 1.0
    assert np.all(sample.weights > 0)
    assert sample.weights.sum() == pytest.approx(1)


@given(st.integers(1, 200), st.integers(1, 7))
def test_repeating_a_sample_keeps_its_levels_to_the_last_bit(n, times):
    once = Sample.from_values(np.arange(n))
    often = Sample.from_values(np.repeat(np.arange(n), times))
    weighing = Sample.from_values(np.arange(n), np.full(n, times))
    assert np.isin(once.levels, often.levels).all()
    assert np.array_equal(once.levels, weighing.levels)


@given(weighted(), st.floats(0, 1))
def test_quantile_is_the_generalised_inverse(drawn, level):
    sample = Sample.from_values(*drawn)
    reaches = sample.values[sample.cdf(sample.values) >= level]  # {v : F(v) >= level}
    assert sample.quantile(level) == reaches.min()


def test_cdf_from_both_sides():
    sample = Sample.from_values([1.0, 2.0, 2.0, 3.0])
    points = [-np.inf, 0.5, 1.0, 2.0, 2.5, 3.0, np.inf]
    assert sample.cdf(points).tolist() == [0, 0, 0.25, 0.75, 0.75, 1, 1]
    assert sample.cdf(points, side="left").tolist() == [0, 0, 0, 0.25, 0.75, 0.75, 1]


def test_equal_mass_stands_in_for_a_weighted_sample():
    sample = Sample.from_values([0.0, 1.0], weights=[1, 3])
    assert sample.equal_mass(4).tolist() == [0, 1, 1, 1]
    assert Sample.from_values([0.0, 1.0], weights=[3, 2]).equal_mass(1).tolist() == [0]  # the median
    big = Sample.from_values(np.random.default_rng(0).beta(2, 3, 10_000))
    # Each stand-in lies within its own level interval, so the distance is at most (range) / n.
    assert wasserstein(big, big.equal_mass(100)) < 0.01


@given(vectors())
def test_equal_mass_of_its_own_size_is_the_sample(values):
    assert np.array_equal(Sample.from_values(values).equal_mass(values.size), np.sort(values))


@pytest.mark.parametrize("seed", range(20))
def test_distances_are_those_of_scipy_and_pot(seed):
    x, y, u, v = two_random_samples(seed)
    expected = wasserstein_distance(x, y, u, v)
    assert wasserstein(x, y, x_weights=u, y_weights=v) == pytest.approx(expected, abs=1e-14)
    assert wasserstein(x, y) == pytest.approx(wasserstein_distance(x, y), abs=1e-14)
    for p in (1, 2, 3):
        expected = ot.wasserstein_1d(x, y, u, v, p=p) ** (1 / p)
        assert wasserstein(x, y, p=p, x_weights=u, y_weights=v) == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_a_great_order_neither_overflows_nor_vanishes():
    assert wasserstein([0.0, 1e-200], [1e200, 1e200], p=2) == pytest.approx(1e200)
    assert wasserstein([0.0], [1e-200], p=300) == pytest.approx(1e-200)
    assert wasserstein([0.0, 0.0], [2e-311, 0.0], p=2) == pytest.approx(2e-311 / 2**0.5, rel=1e-6, abs=0.0)
    assert wasserstein([0.0, 0.0], [0.5, 1.0], p=400) == pytest.approx(1, abs=2e-3)  # tends to the farthest move


@pytest.mark.parametrize("seed", range(20))
def test_coupling_costs_what_emd_costs_and_keeps_both_marginals(seed):
    x, y, u, v = two_random_samples(seed)
    plan = coupling(x, y, x_weights=u, y_weights=v)
    dense = plan.to_dense()
    assert dense.shape == (x.size, y.size)
    assert dense.sum(axis=1) == pytest.approx(u, abs=1e-12)
    assert dense.sum(axis=0) == pytest.approx(v, abs=1e-12)
    assert plan.mass.size <= x.size + y.size - 1
    assert np.all(plan.mass > 0)
    for p in (1.0, 2.0):
        costs = np.abs(x[:, None] - y[None, :]) ** p
        assert plan.cost(x, y, p) == pytest.approx(ot.emd2(u, v, costs), abs=1e-9)
        assert plan.cost(x, y, p) == pytest.approx(np.sum(dense * costs), abs=1e-12)


@given(weighted(), weighted())
def test_coupling_realises_the_distance_and_never_crosses(first, second):
    (x, u), (y, v) = first, second
    plan = coupling(x, y, x_weights=u, y_weights=v)
    assert plan.cost(x, y) == pytest.approx(wasserstein(x, y, x_weights=u, y_weights=v), rel=1e-9, abs=1e-7)
    assert np.all(np.diff(x[plan.rows]) >= 0)
    assert np.all(np.diff(y[plan.columns]) >= 0)


@given(st.integers(1, 50), st.integers(1, 8))
def test_sizes_that_divide_each_other_leave_no_slivers(n, times):
    assert coupling(np.arange(n), np.arange(n * times)).mass.size == n * times


@given(weighted(), weighted(), vectors())
def test_the_map_keeps_order_and_range_to_the_last_bit(first, second, points):
    source, target = Sample.from_values(*first), Sample.from_values(*second)
    carry = quantile_map(source, target)
    points = np.sort(np.concatenate([points, source.values, np.nextafter(source.values, np.inf)]))
    images = carry(points)
    assert np.all(np.diff(images) >= 0)
    assert images.min() >= target.values[0]
    assert images.max() <= target.values[-1]


@given(st.sets(numbers, min_size=1, max_size=40), st.data())
def test_equal_sizes_without_ties_are_matched_exactly(distinct, data):
    source = np.array(data.draw(st.permutations(sorted(distinct))))
    target = data.draw(arrays(np.float64, source.size, elements=numbers | tied))
    carry = quantile_map(source, target)
    assert np.array_equal(np.sort(carry(source)), np.sort(target))
    assert np.array_equal(carry(np.sort(source)), np.sort(target))


@given(weighted(), weighted())
def test_the_map_is_the_barycentric_projection_of_the_coupling(first, second):
    (x, u), (y, v) = first, second
    plan = coupling(x, y, x_weights=u, y_weights=v)
    knots, inverse = np.unique(x, return_inverse=True)
    moved = np.bincount(inverse[plan.rows], plan.mass * y[plan.columns])
    images = moved / np.bincount(inverse[plan.rows], plan.mass)
    carry = quantile_map(x, y, source_weights=u, target_weights=v)
    assert np.array_equal(carry.knots, knots)
    assert carry.images == pytest.approx(images, rel=1e-9, abs=1e-6)


def test_ties_share_their_levels():
    carry = quantile_map([0.2, 0.2, 0.8, 0.8], [0.1, 0.3, 0.5, 1.0])
    assert carry.knots.tolist() == [0.2, 0.8]
    assert carry.images.tolist() == [0.2, 0.75]
    assert carry([0.0, 0.5, 1.0]) == pytest.approx([0.2, 0.475, 0.75], abs=1e-15)


def test_a_point_that_rounds_onto_the_next_knot_does_not_pass_it():
    # 0 is as far from -1 as 1e-17 is, once rounded; and -1 + (y - -1) rounds to 2 ** -52, above y.
    y = 1.5 * 2.0**-53
    assert QuantileMap(np.array([-1.0, 1e-17]), np.array([-1.0, y]))(0.0) == y


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Sample.from_values([]), "values is empty"),
        (lambda: Sample.from_values([CANARY, np.nan]), "values has 1 NaN or infinite values"),
        (lambda: Sample.from_values([[CANARY, 1.0]]), "values must have one dimension; it has shape (1, 2)"),
        (lambda: Sample.from_values(["x"]), "values must contain numbers"),
        (lambda: Sample.from_values([CANARY], [-CANARY]), "weights has 1 negative values"),
        (lambda: Sample.from_values([CANARY], [0]), "weights sums to zero"),
        (lambda: Sample.from_values([CANARY], [1, 2]), "weights has 2 rows"),
        (lambda: Sample([1.0, CANARY], [0.5, 1.0]), "values must ascend"),
        (lambda: Sample([CANARY, 1.0], [0.5, 0.9]), "levels must ascend strictly"),
        (lambda: Sample([CANARY, 1.0], [0.0, 1.0]), "levels must ascend strictly"),
        (lambda: Sample([CANARY, 1.0], [1.0, 1.0]), "levels must ascend strictly"),
        (lambda: Sample([CANARY], [0.5, 1.0]), "values and levels must be equally long; got 1 and 2"),
        (lambda: Sample.from_values([CANARY]).quantile([1.5]), "levels must lie within [0, 1]"),
        (lambda: Sample.from_values([CANARY]).quantile([np.nan]), "levels must lie within [0, 1]"),
        (lambda: Sample.from_values([CANARY]).cdf([np.nan]), "points must be numbers"),
        (lambda: Sample.from_values([CANARY]).cdf([1], side="up"), "side must be one of 'left', 'right'"),
        (lambda: Sample.from_values([CANARY]).equal_mass(0), "n must be at least 1"),
        (lambda: wasserstein([CANARY], [1.0], p=0.5), "p must be a finite number at least 1"),
        (lambda: wasserstein([CANARY], [1.0], p=np.inf), "p must be a finite number at least 1"),
        (lambda: wasserstein([CANARY], []), "y is empty"),
        (lambda: wasserstein([CANARY], [1], x_weights=[1, 1]), "x_weights has 2 rows"),
        (
            lambda: as_sample(Sample.from_values([CANARY]), [1.0], name="x"),
            "x is a Sample, which has weights already; leave out x_weights",
        ),
        (lambda: coupling([CANARY], [np.inf]), "y has 1 NaN or infinite values"),
        (lambda: coupling([CANARY], [1], y_weights=[-1]), "y_weights has 1 negative values"),
        (lambda: coupling([CANARY], [1]).cost([CANARY, 2], [1]), "x has 2 values, but the coupling is of 1"),
        (lambda: coupling([CANARY], [1]).cost([CANARY], [1, 2]), "y has 2 values, but the coupling is of 1"),
        (lambda: coupling([CANARY], [1]).cost([CANARY], [1], p=0), "p must be a finite number at least 1"),
        (lambda: quantile_map([CANARY], []), "target is empty"),
        (lambda: quantile_map([CANARY], [1.0])([np.nan]), "points must be finite"),
        (lambda: QuantileMap([CANARY, CANARY], [0.0, 1.0]), "knots must ascend strictly"),
        (lambda: QuantileMap([CANARY, 1.0], [1.0, 0.0]), "images must not descend"),
        (lambda: QuantileMap([CANARY], [0.0, 1.0]), "knots and images must be equally long"),
    ],
)
def test_errors_say_what_is_wrong_and_show_no_value(call, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        call()
    assert str(CANARY) not in str(caught.value)
