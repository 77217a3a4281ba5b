"""Reliability curves, recalibration and expected calibration error against scikit-learn and by hand."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.auditing.errors.calibration import estimate_calibration

QUICK = {"inference": Inference(n_bootstrap=200, n_permutations=50, random_state=0)}


def rows_at_random(seed=0, n=2000, *, slope=1.0, intercept=0.0):
    """Scores whose labels follow logit P = intercept + slope * logit(score), in both groups."""
    rng = np.random.default_rng(seed)
    groups, scores = rng.choice(["a", "b"], n), rng.beta(2, 3, n)
    labels = rng.random(n) < expit(intercept + slope * logit(scores))
    return scores, labels.astype(int), groups, rng.random(n) + 0.1


def audit(scores, labels, groups, **options):
    return ft.audit(scores, labels, sensitive_features=groups, **{**QUICK, **options}).calibration


@pytest.mark.parametrize("weighted", [False, True])
def test_reliability_curves_by_hand(weighted):
    scores, labels, groups, weights = rows_at_random()
    mass = weights if weighted else np.ones(scores.size)
    result = audit(scores, labels, groups, sample_weight=mass if weighted else None)
    for one in (result.overall, *result.groups):
        members = np.ones(scores.size, bool) if one is result.overall else groups == one.name
        assert len(one.bins) == 10
        assert sum(part.weight for part in one.bins) == pytest.approx(mass[members].sum())
        error = 0.0
        for number, part in enumerate(one.bins):
            inside = members & (scores <= part.high) & ((scores > part.low) | (number == 0))
            assert part.weight == pytest.approx(mass[inside].sum(), abs=1e-9)
            assert part.weight == pytest.approx(mass[members].sum() / 10, rel=0.05)
            assert part.mean_score == pytest.approx(np.average(scores[inside], weights=mass[inside]), abs=1e-12)
            assert part.rate.value == pytest.approx(np.average(labels[inside], weights=mass[inside]), abs=1e-12)
            assert part.rate.low <= part.rate.value <= part.rate.high
            error += part.weight * abs(part.rate.value - part.mean_score)
        assert one.expected_error.value == pytest.approx(error / mass[members].sum())
        assert one.positive_rate.value == pytest.approx(np.average(labels[members], weights=mass[members]))


def test_intercept_and_slope_by_sklearn():
    scores, labels, groups, weights = rows_at_random(slope=0.6, intercept=-0.4)
    result = audit(scores, labels, groups, sample_weight=weights)
    for one in result.groups:
        rows = groups == one.name
        x = logit(scores[rows])
        model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        model.fit(x[:, None], labels[rows], sample_weight=weights[rows])
        assert one.slope.value == pytest.approx(model.coef_[0, 0], abs=1e-5)
        # The intercept with slope 1 solves sum of weights * (label - probability) = 0.
        residual = labels[rows] - expit(one.intercept.value + x)
        assert weights[rows] @ residual == pytest.approx(0, abs=1e-6)


def test_standard_errors_are_those_of_the_information_matrix():
    scores, labels, groups, _ = rows_at_random()
    one = audit(scores, labels, groups).groups[0]
    x = logit(scores[groups == "a"])
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(x[:, None], labels[groups == "a"])
    shares = model.predict_proba(x[:, None])[:, 1]
    design = np.stack([np.ones_like(x), x])
    information = (design * shares * (1 - shares)) @ design.T
    expected = 1.959964 * np.sqrt(np.linalg.inv(information)[1, 1])
    assert (one.slope.high - one.slope.low) / 2 == pytest.approx(expected, rel=1e-4)


def test_calibrated_scores_have_an_error_that_chance_explains():
    result = audit(*rows_at_random()[:3])
    assert result.largest_error.low == 0
    assert result.largest_error.corrected < result.largest_error.value
    assert result.largest_error.value == max(one.expected_error.value for one in result.groups)
    for one in result.groups:
        assert one.slope.low < 1 < one.slope.high
        assert one.intercept.low < 0 < one.intercept.high


@pytest.mark.parametrize(
    "scores",
    [
        np.repeat([0.0, 1.0], 100),  # separated, all 0 and 1
        np.r_[np.linspace(0, 0.4, 100), np.linspace(0.6, 1, 100)],  # separated
        np.full(200, 0.5),  # constant
        np.r_[np.full(150, 0.2), np.full(50, 0.8)],  # separated but for ties
    ],
)
def test_slopes_that_do_not_exist(scores):
    labels = np.repeat([0, 1], 100)
    result = ft.audit(scores, labels, sensitive_features=np.tile(["a", "b"], 100), **QUICK)
    for one in result.calibration.groups:
        assert one.slope is None
        assert np.isfinite(one.intercept.value)
    json.loads(result.to_json())


def test_one_label_only():
    scores, _, groups, _ = rows_at_random(n=200)
    one = audit(scores, np.zeros(200, int), groups).groups[0]
    assert one.slope is one.intercept is None
    assert one.positive_rate.value == 0
    assert one.expected_error.value == pytest.approx(np.mean(scores[groups == "a"]))


def test_scores_that_are_not_probabilities_have_reliability_curves_only():
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 11, 600)
    result = audit(scores, (rng.random(600) < scores / 12).astype(int), np.tile(["a", "b"], 300), range=(1, 10))
    assert not result.probabilities
    assert result.largest_error is result.overall.expected_error is result.overall.slope is None
    assert result.overall.bins[0].mean_score == 1
    assert [part.mean_score for part in result.overall.bins] == pytest.approx(range(1, 11))
    assert [part.high for part in result.overall.bins] == pytest.approx(range(1, 11), abs=9 / 16384)


@pytest.mark.trust
@pytest.mark.parametrize(("n", "distortion"), [(300, 0.0), (4000, 0.1)])
def test_intervals_of_the_expected_calibration_error_cover_the_truth(n, distortion, estimate):
    """Labels with P = score + distortion have this expected calibration error, whatever the bins."""
    rng = np.random.default_rng(n)
    covered, n_tables = 0, 100
    for seed in range(n_tables):
        scores = rng.uniform(0.1, 0.8, n)
        labels = (rng.random(n) < scores + distortion).astype(int)
        result = estimate(estimate_calibration, scores, labels, np.tile(["a", "b"], n // 2), [0, 1], seed=seed)
        error = result.overall.expected_error
        covered += error.low <= distortion <= error.high
    assert covered >= 0.92 * n_tables
