import numpy as np
import pytest

from fairtransport.transport.fourier import draw_features


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
