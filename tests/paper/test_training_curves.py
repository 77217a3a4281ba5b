import numpy as np
import pytest
from tests.worlds import people

from fairtransport import TransportClassifier
from fairtransport.linear import SgdSettings
from fairtransport.metrics import error_rate, wasserstein_disparity
from fairtransport.paper._methods import Evaluator, record_training
from fairtransport.paper.finding import Stop

X, Y, G = people(600)


def make():
    model = TransportClassifier(solver=SgdSettings(parameter_step=0.05, batch_size=20, random_state=0))
    trainer = model.make_trainer(X, Y, sensitive_features=G)
    return model, trainer, Evaluator.build(X, Y, G, model.target_)


def test_records_measure_means_of_iterates():
    model, trainer, evaluator = make()
    curve = record_training(trainer, evaluator, n_updates=40, every=10, stop=Stop())
    np.testing.assert_array_equal(curve["update"], [0, 10, 20, 30, 40])
    start = model.initial_estimator_.predict_proba(X)[:, 1]
    wass1 = wasserstein_disparity(start, sensitive_features=G, target=model.target_)
    assert curve["wass1"][0] == pytest.approx(wass1)
    assert curve["error"][0] == pytest.approx(error_rate(Y, start))
    # The final model is the mean of the second half: what the estimator returns.
    fitted = TransportClassifier(
        solver=SgdSettings(parameter_step=0.05, batch_size=20, n_updates=40, random_state=0)
    ).fit(X, Y, sensitive_features=G)
    np.testing.assert_allclose(curve["final_theta"][:, :-1], fitted.coef_, atol=1e-12)
    scores = fitted.predict_proba(X)[:, 1]
    assert curve["final_error"] == pytest.approx(error_rate(Y, scores))
