"""What all families of estimators promise: unusable rows are named without a value, and ``amount`` is a mixture."""

import re

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from tests.worlds import people

from . import test_invariance as invariance
from .test_invariance import scores

pytestmark = pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")

ESTIMATORS = {
    name: estimator
    for name, estimator in invariance.ESTIMATORS.items()
    if name != "linear" and "neighbours" not in name
}
every = pytest.mark.parametrize("name", ESTIMATORS)


def rows(estimator, n=400):
    X, y, group = people(n, groups=("canary-f", "canary-m"), real=is_regressor(estimator))
    return {"X": X, "y": y, "sensitive_features": group}


@every
def test_amount_is_a_mixture_with_the_plain_model_and_may_be_set_after_fit(name):
    model = clone(ESTIMATORS[name])
    X, y, group = rows(model, 2000).values()
    model.fit(X, y, sensitive_features=group)
    full = scores(model, X, group)
    plain = getattr(model, "initial_estimator_", model.estimator_ if hasattr(model, "estimator_") else None)
    unmoved = plain.predict(X) if is_regressor(model) else plain.predict_proba(X)[:, 1]
    if "boosted regressor" not in name:  # whose plain model predicts standardised numbers
        np.testing.assert_allclose(scores(model.set_params(amount=0.0), X, group), unmoved, atol=1e-6)
    unmoved = scores(model.set_params(amount=0.0), X, group)
    assert np.abs(full - unmoved).max() > 0.01
    part = scores(model.set_params(amount=0.3), X, group)
    np.testing.assert_allclose(part, 0.7 * unmoved + 0.3 * full, rtol=1e-9, atol=1e-6)
    fresh = clone(ESTIMATORS[name]).set_params(amount=0.3).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(part, scores(fresh, X, group), rtol=1e-9, atol=1e-9)
    for wrong in (-0.1, 1.5, np.nan, "half"):
        with pytest.raises((TypeError, ValueError), match="amount"):
            scores(model.set_params(amount=wrong), X, group)


FAULTS = {
    "y too short": (lambda d: {"y": d["y"][:-1]}, "y has 99 rows|inconsistent numbers"),
    "one y": (lambda _: {"y": np.ones(100)}, "two classes|same value"),
    "missing y": (lambda d: {"y": np.where(np.arange(100) == 4, np.nan, d["y"])}, "missing|NaN"),
    "no groups": (lambda _: {"sensitive_features": None}, "needs sensitive_features"),
    "groups too short": (lambda d: {"sensitive_features": d["sensitive_features"][:-1]}, "has 99 rows"),
    "one group": (lambda _: {"sensitive_features": ["canary-f"] * 100}, "at least 2|two groups|1 group"),
    "missing group": (
        lambda d: {"sensitive_features": np.where(np.arange(100) == 4, None, d["sensitive_features"])},
        "missing values in 1 row",
    ),
    "weights too short": (lambda _: {"sample_weight": np.ones(3)}, "sample_weight has 3 rows"),
    "negative weights": (lambda _: {"sample_weight": -np.ones(100)}, "100 negative"),
    "a group without weight": (
        lambda d: {"sample_weight": (d["sensitive_features"] == "canary-f").astype(float)},
        "groups? ha(s|ve) total|zero in all rows of 1 of 2 groups|total (sample_)?weight|1 group",
    ),
    "strata too short": (lambda _: {"strata": np.arange(99) % 2}, "strata has 99"),
    "strata of one group": (lambda d: {"strata": d["sensitive_features"]}, "no stratum has rows of two groups"),
}


@every
@pytest.mark.parametrize("fault", FAULTS)
def test_rows_that_cannot_be_used_are_named_without_a_value(name, fault):
    estimator, (change, message) = clone(ESTIMATORS[name]), FAULTS[fault]
    given = rows(estimator, 100)
    with pytest.raises(ValueError, match=message) as caught:
        estimator.fit(**{**given, **change(given)})
    assert "canary" not in str(caught.value)


@every
def test_every_parameter_is_described(name):
    lists = re.findall(r"^    ([\w, ]+)(?: :|$)", type(ESTIMATORS[name]).__doc__, re.MULTILINE)
    described = {one for line in lists for one in line.split(", ")}
    assert set(ESTIMATORS[name].get_params(deep=False)) <= described
