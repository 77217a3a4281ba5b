import numpy as np
import pytest

from fairtransport.transport.regularizers import ENTROPY, EXPONENT_LIMIT, L2, get_regularizer

POINTS = np.r_[np.linspace(-5, 9, 57), EXPONENT_LIMIT - 1e-3, EXPONENT_LIMIT + 3.0]


@pytest.mark.parametrize("regularizer", [L2, ENTROPY], ids=lambda r: r.name)
def test_alpha_is_the_slope_of_the_conjugate(regularizer):
    step = 1e-6
    slope = (regularizer.conjugate(POINTS + step) - regularizer.conjugate(POINTS - step)) / (2 * step)
    np.testing.assert_allclose(regularizer.alpha(POINTS), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("regularizer", "phi"),
    [(L2, lambda x: x**2), (ENTROPY, lambda x: x * np.log(np.maximum(x, 1e-300)) - x)],
    ids=["l2", "entropy"],
)
def test_conjugate_is_the_legendre_transform(regularizer, phi):
    # phi*(v) = max over x >= 0 of v x - phi(x), here by search on a fine grid
    x = np.linspace(0, 60, 2_000_001)
    for v in (-3.0, -0.5, 0.0, 0.7, 2.0, 4.0):
        assert regularizer.conjugate(np.array(v)) == pytest.approx(np.max(v * x - phi(x)), abs=1e-6)


def test_l2_has_the_positive_part():
    assert L2.alpha(np.array([-1.0]))[0] == 0.0
    assert L2.conjugate(np.array([-1.0]))[0] == 0.0


def test_entropy_never_overflows():
    assert np.isfinite(ENTROPY.conjugate(np.array([1e6]))).all()
    assert np.isfinite(ENTROPY.alpha(np.array([1e6]))).all()


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'l2', 'entropy'"):
        get_regularizer("kl")
