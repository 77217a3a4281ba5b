"""Dual variables as Chebyshev polynomials, against the Fourier features themselves."""

import numpy as np
import pytest

from fairtransport.transport.fourier import draw_features
from fairtransport.transport.kernels.functions import chebyshev, combine, project


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chebyshev_polynomials(dtype):
    points = np.linspace(0, 1, 48, dtype=dtype)
    table = np.empty((24, 48), dtype)
    chebyshev(points, table)
    angle = np.arccos(2 * points.astype(np.float64) - 1)
    error = table - np.cos(np.outer(np.arange(24), angle))
    assert np.abs(error).max() < 24**2 * 4 * np.finfo(dtype).eps  # a rounding error grows with the square of the degree
