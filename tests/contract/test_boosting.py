"""Every check that scikit-learn generates for a classifier, on boosted trees of both libraries.

A check may fail only where the library's own classifier, with the same settings, fails the same check.
"""

import warnings

import lightgbm
import pytest
import xgboost
from sklearn import config_context
from sklearn.utils.estimator_checks import estimator_checks_generator

from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor

from .grouped import groups_from_rows

pytestmark = pytest.mark.models

LIGHT = {"n_estimators": 5, "verbose": -1, "n_jobs": 1, "min_child_samples": 1, "min_data_in_bin": 1}
XG = {"n_estimators": 5, "n_jobs": 1}
INNER = {
    "LightGBM, classes": (TransportBoostingClassifier, lightgbm.LGBMClassifier(**LIGHT)),
    "XGBoost, classes": (TransportBoostingClassifier, xgboost.XGBClassifier(**XG)),
    "LightGBM, numbers": (TransportBoostingRegressor, lightgbm.LGBMRegressor(**LIGHT, num_leaves=30)),
    "XGBoost, numbers": (TransportBoostingRegressor, xgboost.XGBRegressor(**XG)),
}
ELSEWHERE = "check_array_api_input"  # needs a setting from before SciPy is loaded
WEIGHTS = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}


def failures(estimator, only=None):
    """Return the checks that were run, and what those that failed raised."""
    failed, ran = {}, set()
    for one, check in estimator_checks_generator(estimator):
        name = getattr(check, "func", check).__name__
        if name == ELSEWHERE or (only is not None and name not in only):
            continue
        ran.add(name)
        try:
            with warnings.catch_warnings(action="ignore"):
                check(one)
        except Exception as error:  # noqa: BLE001 - whatever a check raises
            failed[name] = error
    return ran, failed


@pytest.mark.parametrize(("kind", "inner"), INNER.values(), ids=INNER)
def test_generated_checks(kind, inner):
    with groups_from_rows(kind), config_context(enable_metadata_routing=True):
        # A regressor must explain half of the variance, for which five rounds leave no room.
        weight = {} if kind is TransportBoostingClassifier else {"parity_weight": 0.01}
        ran, failed = failures(kind(inner, smooth_groups=False, random_state=0, **weight))
    assert len(ran) > 45
    assert ran >= WEIGHTS
    if isinstance(inner, lightgbm.LGBMRegressor):  # with a custom objective it counts rows, not weights, in leaves
        failed = {name: error for name, error in failed.items() if name not in WEIGHTS}
    _, bare = failures(inner, only=set(failed))
    assert set(failed) <= set(bare), {name: failed[name] for name in set(failed) - set(bare)}
