"""Compiled functions: exponential and logistic, against formulas, NumPy and scikit-learn; polynomials for cosines."""

import numpy as np
import pytest

from fairtransport.transport import regularizers as plain
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels.functions import chebyshev, combine, exponential, logistic, logistic_loss, project


@pytest.mark.parametrize(("dtype", "most", "error"), [(np.float64, 700, 1e-12), (np.float32, 87, 1e-6)])
def test_exponential(dtype, most, error):
    values = np.r_[0.0, np.linspace(-most, most, 9_999), np.linspace(-1, 1, 1_000)].astype(dtype)
    out = values.copy()
    exponential(out)
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=error)


def compiled(logits, labels, shares):
    scores, slopes = np.empty_like(logits), np.empty_like(logits)
    equal = bool((shares == shares[0]).all())
    return logistic_loss(logits, labels, shares, equal, scores, slopes), scores, slopes


def rows(n, spread=3.0, seed=0):
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=n), rng.integers(2, size=n).astype(float)


UNBOUNDED = np.array([-1000.0, 1000.0, -1000.0, 1000.0, 0.0, 40.0, -40.0, -710.0])


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1024, 3000, "unbounded"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_the_plain_one(n, weighted):
    logits, labels = (UNBOUNDED, np.array([0.0, 1, 1, 0, 1, 1, 0, 1])) if n == "unbounded" else rows(n)
    n = len(logits)
    shares = np.random.default_rng(1).dirichlet(np.ones(n)) if weighted else np.full(n, 1.0 / n)
    loss, scores, slopes = compiled(logits, labels, shares)
    expected_scores = plain.sigmoid(logits)
    assert loss == pytest.approx(shares @ (np.logaddexp(0.0, logits) - labels * logits), rel=1e-12)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(slopes, shares * (expected_scores - labels), rtol=1e-9, atol=1e-15)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logistic(dtype):
    logits = np.r_[-np.inf, np.inf, np.nan, -1e30, 1e30, np.linspace(-30, 30, 1_001)].astype(dtype)
    scores = np.empty_like(logits)
    logistic(logits, scores)
    np.testing.assert_allclose(scores[:2], [0.0, 1.0], atol=1e-30)
    assert np.isnan(scores[2])
    np.testing.assert_allclose(scores[3:], plain.sigmoid(logits[3:].astype(np.float64)), atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("variance", [0.001, 0.01, 0.1, 1.0, 100.0])
def test_polynomials_are_exact_to_a_millionth(variance):
    # f and its slope by their polynomials, and the gradient by its moments, against the features themselves.
    rng = np.random.default_rng(0)
    psi = draw_features(61, variance, rng)
    table = psi.tabulate()
    degrees, width = table.basis.shape
    weights, points, push = rng.normal(size=61), np.r_[0.0, 1.0, rng.random(502)], rng.normal(size=504)
    padded = np.pad(weights, (0, width - 61))
    powers, coefficients = np.empty((degrees, len(points))), np.empty(degrees)
    values, slopes, gradient = np.empty(len(points)), np.empty(len(points)), np.empty(width)
    chebyshev(points, powers)
    project(padded, table.basis, coefficients)
    combine(coefficients, powers, values)
    project(padded, table.slopes, coefficients)
    combine(coefficients, powers, slopes)
    project(push, powers, coefficients)
    combine(coefficients, table.basis, gradient)
    steepest = np.abs(psi.frequency).max()
    np.testing.assert_allclose(values, psi(points) @ weights, atol=1e-7)
    np.testing.assert_allclose(slopes, psi.slope(points) @ weights, atol=1e-7 * steepest)
    np.testing.assert_allclose(gradient[:61], push @ psi(points), atol=1e-7)
    assert not gradient[61:].any()
