import numpy as np
import pytest

from fairtransport.transport.fourier import TabulatedDirections, draw_features, quadrature_features


def test_kernel_is_gaussian():
    psi = draw_features(20_000, 0.1, np.random.default_rng(0))
    x = np.linspace(0, 1, 21)
    kernel = psi(x) @ psi(x).T
    np.testing.assert_allclose(kernel, np.exp(-(np.subtract.outer(x, x) ** 2) / 0.1), atol=0.03)


def test_slope_is_the_derivative():
    psi = draw_features(40, 0.05, np.random.default_rng(1))
    x, step = np.linspace(-2, 2, 31), 1e-6
    np.testing.assert_allclose(psi.slope(x), (psi(x + step) - psi(x - step)) / (2 * step), atol=1e-6)


@pytest.mark.parametrize(("n", "variance"), [(0, 0.1), (10, 0.0), (10, np.nan), (10, -1.0)])
def test_bad_parameters(n, variance):
    with pytest.raises(ValueError, match="must be"):
        draw_features(n, variance, np.random.default_rng(0))
    with pytest.raises(ValueError, match="must be"):
        quadrature_features(n, variance)


@pytest.mark.parametrize("variance", [0.05, 0.1, 0.5, 2.0])
def test_quantiles_of_the_frequencies_make_the_same_kernel(variance):
    """Without the noise of drawing: fifty features are nearer to the kernel than fifty drawn ones."""
    x = np.linspace(-0.5, 1.5, 41)
    expected = np.exp(-(np.subtract.outer(x, x) ** 2) / variance)
    features = {n: quadrature_features(n, variance) for n in (10, 50, 400)}
    errors = {n: np.abs(psi(x) @ psi(x).T - expected).max() for n, psi in features.items()}
    assert errors[10] > errors[50] > errors[400]
    assert errors[50] < 0.06
    drawn = [draw_features(50, variance, np.random.default_rng(seed)) for seed in range(10)]
    assert errors[50] < np.median([np.abs(psi(x) @ psi(x).T - expected).max() for psi in drawn])


def test_quantile_features_are_pairs_of_cosine_and_sine():
    psi = quadrature_features(7, 0.1)
    assert len(psi) == 8
    np.testing.assert_allclose((psi(np.linspace(-3, 3, 50)) ** 2).sum(axis=1), 1.0)
    np.testing.assert_array_equal(psi.frequency, quadrature_features(8, 0.1).frequency)


@pytest.mark.parametrize("psi", [quadrature_features(7, 0.1), draw_features(9, 0.1, np.random.default_rng(2))])
def test_values_and_slopes_together_are_those_apart(psi):
    x = np.linspace(-3, 3, 12).reshape(3, 4)
    value, slope = psi.value_and_slope(x)
    np.testing.assert_allclose(value, psi.value(x), atol=1e-14)
    np.testing.assert_allclose(slope, psi.slope(x), atol=1e-12)


@pytest.mark.parametrize("variance", [0.001, 0.02, 0.1])
def test_tabulated_directions_are_those_of_the_features(variance):
    psi, rng = quadrature_features(50, variance), np.random.default_rng(0)
    exact = psi.along(np.linalg.qr(rng.normal(size=(50, 12)))[0])
    table = TabulatedDirections(exact)
    for reach in (2.9, 30.0):  # inside and beyond the table
        points = rng.uniform(-reach, reach, (4, 200))
        pairs = zip(exact.value_and_slope(points), table.value_and_slope(points), (1e-6, 1e-4), strict=True)
        for expected, found, close in pairs:
            assert np.abs(found - expected).max() < close * np.abs(expected).max()
