"""Units and origins of columns."""

import numpy as np
import pytest
from scipy import sparse

from fairtransport.linear.training._scaling import Scaling

RNG = np.random.default_rng(0)
X = np.column_stack(
    (
        RNG.normal(1e6, 3.0, 500),  # far from zero
        RNG.normal(size=500) * 1e-4,
        7.0 * (RNG.random(500) < 0.1),  # an indicator of other values
        np.full(500, 0.1),  # constant
        np.zeros(500),
        RNG.exponential(size=500) * (RNG.random(500) < 0.3),
    )
)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_units_do_not_depend_on_storage_and_theta_gives_the_same_logits(form):
    scaling, dense = Scaling.of(form(X)), Scaling.of(X)
    np.testing.assert_allclose(scaling.unit, dense.unit, rtol=1e-3)
    np.testing.assert_allclose(scaling.origin, dense.origin, rtol=1e-9)
    scaled = scaling.apply(form(X))
    theta = RNG.normal(size=(2, 7)) / np.append(scaling.unit, 1.0)
    there = scaling.to_scaled(theta)
    np.testing.assert_allclose(scaled @ there[0, :-1] + there[0, -1], X @ theta[0, :-1] + theta[0, -1], atol=1e-5)
    np.testing.assert_allclose(scaling.to_raw(there), theta, rtol=1e-6, atol=1e-8)


def test_columns_are_centred_where_they_are_mostly_there():
    scaled = Scaling.of(X).apply(X)
    np.testing.assert_allclose(scaled[:, :2].mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(scaled[:, :2].std(axis=0), 1.0, rtol=1e-6)
    assert set(scaled[:, 2]) == {0.0, 1.0}
    np.testing.assert_allclose(scaled[:, 3:5], 0.0, atol=1e-12)
    assert scaled[:, 5].max() == 1.0


@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e3, 1e200])
def test_other_units_give_the_same_columns(factor):
    np.testing.assert_allclose(Scaling.of(X * factor).apply(X * factor), Scaling.of(X).apply(X), atol=1e-8)


def test_weights_stand_for_copies():
    weights = RNG.integers(0, 4, 500).astype(float)
    copies = np.repeat(X, weights.astype(int), axis=0)
    weighted, copied = Scaling.of(X, weights), Scaling.of(copies)
    np.testing.assert_allclose(weighted.origin, copied.origin, rtol=1e-9)
    np.testing.assert_allclose(weighted.unit[:4], copied.unit[:4], rtol=1e-9)


def test_without_an_intercept_nothing_is_centred():
    assert not Scaling.of(X, centred=False).origin.any()
