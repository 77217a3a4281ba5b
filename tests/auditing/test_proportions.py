"""Shares, differences, ratios and areas under the curve: against scipy, scikit-learn, and simulated worlds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from fairtransport.auditing.proportions import Estimate, Tally, area_under_curve, difference, ratio, share
from fairtransport.transport.line import Sample


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


@pytest.mark.parametrize("weighted", [False, True])
def test_the_area_is_sklearns(weighted):
    rng = np.random.default_rng(0)
    scores, labels = np.round(rng.random(200), 1), rng.integers(0, 2, 200)
    weights = rng.random(200) if weighted else np.ones(200)
    negatives, positives = (Sample.from_values(scores[labels == k], weights[labels == k]) for k in (0, 1))
    found = area_under_curve(negatives, positives, (100, 100), 0.95)
    assert found.value == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights), abs=1e-12)
    assert found.low < found.value < found.high


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
