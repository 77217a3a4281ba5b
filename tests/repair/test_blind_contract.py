"""Every check that scikit-learn generates, on blind repair.

Those of equal weights and copies of rows are left out: copies of a row fall into other folds than the row does. So is
that of missing values, in whose ten rows a group has one row (see test_blind.py).
"""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from tests.contract.grouped import groups_from_rows

import fairtransport as ft

from .test_blind import people

pytestmark = [pytest.mark.trust, pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")]

CLASSES = (ft.BlindRepairClassifier, ft.BlindRepairRegressor)
ESTIMATORS = [
    ft.BlindRepairClassifier(LogisticRegression(), LogisticRegression(), cv=2),
    ft.BlindRepairRegressor(LinearRegression(), LogisticRegression(), cv=2),
]
ELSEWHERE = ("check_array_api_input", "check_estimators_nan_inf", "check_sample_weight_equivalence")


def name_of(check):
    return getattr(check, "func", check).__name__


@pytest.fixture(autouse=True)
def grouped():
    with groups_from_rows(*CLASSES), config_context(enable_metadata_routing=True):
        yield


@parametrize_with_checks(ESTIMATORS)
def test_generated_checks(estimator, check):
    if not name_of(check).startswith(ELSEWHERE):
        check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_check_is_missed(estimator):
    assert len(list(estimator_checks_generator(estimator))) > 40


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_parameter_takes_a_type_of_its_own(estimator):
    X, y, group = people(60)
    for name in estimator.get_params(deep=False):
        with pytest.raises((TypeError, ValueError)) as caught:
            clone(estimator).set_params(**{name: object()}).fit(X, y, sensitive_features=group)
        assert name in str(caught.value) or name == "random_state"


def test_pipelines_and_searches_route_the_groups():
    X, y, group = people(300)
    model = clone(ESTIMATORS[0]).set_fit_request(sensitive_features=True)
    pipe = make_pipeline(StandardScaler(), model).fit(X, y, sensitive_features=group)
    assert pipe.predict_proba(X).shape == (300, 2)
    search = GridSearchCV(model, {"amount": [0.0, 1.0]}, cv=2).fit(X, y, sensitive_features=group)
    assert search.predict(X).shape == (300,)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sensitive_features"):
        make_pipeline(StandardScaler(), clone(ESTIMATORS[0])).fit(X, y, sensitive_features=group)


def test_the_diagram_says_what_was_fitted():
    X, y, group = people(300)
    model = clone(ESTIMATORS[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "Fitted to" not in model._repr_html_()
        text = model.fit(X, y, sensitive_features=group)._repr_html_()
    assert "Fitted to 2 groups" in text
    assert "not needed at prediction" in text
    assert np.isfinite(model.report_.information)
