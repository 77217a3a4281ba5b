import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_tweedie_deviance

from fairtransport.boosting._objective import LOSSES, make_loss

MARGINS = np.linspace(-2.0, 2.0, 40)
Y = np.tile([0.0, 1.0], 20)


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_by_finite_differences(name):
    loss, step = make_loss(name, 1.3), 1e-5
    y = Y if name == "log_loss" else 3.0 * Y + 0.01
    up, down = (loss.values(MARGINS + change, y) for change in (step, -step))
    gradient, curvature = loss.derivatives(MARGINS, y)
    np.testing.assert_allclose(gradient, (up - down) / (2 * step), atol=1e-6)
    assert (curvature > 0).all()
    slopes = (loss.predictions(MARGINS + step) - loss.predictions(MARGINS - step)) / (2 * step)
    np.testing.assert_allclose(loss.prediction_slopes(loss.predictions(MARGINS)), slopes, rtol=1e-6)


def test_values_are_those_of_scikit_learn():
    probabilities = make_loss("log_loss").predictions(MARGINS)
    assert make_loss("log_loss").values(MARGINS, Y).mean() == pytest.approx(log_loss(Y, probabilities))
    means = np.exp(MARGINS)
    poisson, tweedie = make_loss("poisson").values(MARGINS, Y), make_loss("tweedie", 1.3).values(MARGINS, Y)
    assert 2 * poisson.mean() == pytest.approx(mean_poisson_deviance(Y, means))
    assert 2 * tweedie.mean() == pytest.approx(mean_tweedie_deviance(Y, means, power=1.3))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weights", [None, np.arange(1.0, 42.0)], ids=["equal", "weighted"])
def test_the_constant_is_the_best_one(name, weights):
    loss = make_loss(name)
    y = (np.arange(41.0) % 3 == 0) * 1.0 if name == "log_loss" else np.arange(41.0) ** 2 / 100

    def mean_loss(margin):
        return np.average(loss.values(np.full(41, margin), y), weights=weights)

    best = loss.constant(y, weights)
    assert mean_loss(best) <= min(mean_loss(best - 0.01), mean_loss(best + 0.01))
    assert loss.information(np.full(41, best), y, weights) == pytest.approx(0.01 * mean_loss(best))
