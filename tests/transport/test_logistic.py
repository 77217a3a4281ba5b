"""The compiled logistic function and loss against the formulas, and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from fairtransport.transport import regularizers as plain
from fairtransport.transport.kernels.functions import logistic, logistic_loss


def compiled(logits, labels, shares):
    scores, slopes = np.empty_like(logits), np.empty_like(logits)
    equal = bool((shares == shares[0]).all())
    return logistic_loss(logits, labels, shares, equal, scores, slopes), scores, slopes


def rows(n, spread=3.0, seed=0):
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=n), rng.integers(2, size=n).astype(float)


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1024, 3000])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_plain_one(n, weighted):
    logits, labels = rows(n)
    shares = np.random.default_rng(1).dirichlet(np.ones(n)) if weighted else np.full(n, 1.0 / n)
    loss, scores, slopes = compiled(logits, labels, shares)
    expected, expected_scores = plain.logistic_loss(logits, labels, shares)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(slopes, shares * (expected_scores - labels), rtol=1e-9, atol=1e-15)


def test_it_is_that_of_scikit_learn():
    logits, labels = rows(500)
    loss, scores, _ = compiled(logits, labels, np.full(500, 1 / 500))
    assert loss == pytest.approx(log_loss(labels, scores), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_logits_without_bounds(weighted):
    logits = np.array([-1000.0, 1000.0, -1000.0, 1000.0, 0.0, 40.0, -40.0, -710.0])
    labels = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    shares = np.arange(1.0, 9.0) / 36 if weighted else np.full(8, 0.125)
    loss, scores, slopes = compiled(logits, labels, shares)
    expected, expected_scores = plain.logistic_loss(logits, labels, shares)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-15)
    np.testing.assert_allclose(slopes, shares * (expected_scores - labels), atol=1e-15)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_slopes_are_derivatives():
    logits, labels = rows(20)
    shares, step = np.random.default_rng(1).dirichlet(np.ones(20)), 1e-6
    slopes = compiled(logits, labels, shares)[2]
    for i in range(20):
        move = step * (np.arange(20) == i)
        up, down = (compiled(logits + sign * move, labels, shares)[0] for sign in (1, -1))
        assert slopes[i] == pytest.approx((up - down) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logistic(dtype):
    logits = np.r_[-np.inf, np.inf, np.nan, -1e30, 1e30, np.linspace(-30, 30, 1_001)].astype(dtype)
    scores = np.empty_like(logits)
    logistic(logits, scores)
    np.testing.assert_allclose(scores[:2], [0.0, 1.0], atol=1e-30)
    assert np.isnan(scores[2])
    np.testing.assert_allclose(scores[3:], plain.sigmoid(logits[3:].astype(np.float64)), atol=4 * np.finfo(dtype).eps)
