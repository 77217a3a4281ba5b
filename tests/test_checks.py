"""check_fair_estimator passes ours, and catches those that break what it checks."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.checks import FAIR_CHECKS, check_fair_estimator
from fairtransport.linear import SgdSettings

OURS = [
    ft.TransportClassifier(),
    ft.TransportClassifier(parity_weight=1.0, distance=ft.ContinuousDistance(regularizer="entropy")),
    ft.TransportClassifier(group_specific=True, target="barycenter"),
    ft.TransportClassifier(distance="discrete", parity_weight=1.0),
    ft.TransportClassifier(distance="discrete", solver=SgdSettings(n_updates=1500, random_state=0), parity_weight=1.0),
    ft.TransportRegressor(parity_weight=1.0),
    ft.TransportRegressor(distance="discrete", group_specific=True),
    ft.QuantileRepairRegressor(Ridge()),
    ft.QuantileRepairClassifier(LogisticRegression()),
    ft.QuantileRepairClassifier(make_pipeline(StandardScaler(), LogisticRegression()), amount=0.8, cv=3),
]


# The groups differ in a predictive feature: without the group, parity costs accuracy or is not reached.
@pytest.mark.filterwarnings("ignore:Parity cost most", "ignore:Parity was not reached")
@pytest.mark.parametrize("estimator", OURS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("name", FAIR_CHECKS)
def test_ours_pass(estimator, name):
    assert FAIR_CHECKS[name](estimator, 0.02, 0)


class Broken(ClassifierMixin, BaseEstimator):
    """A repair that breaks what it is told to."""

    def __init__(self, fault=""):
        self.fault = fault

    def fit(self, X, y, *, sensitive_features, sample_weight=None):
        weights = None if self.fault == "weights" else sample_weight
        if self.fault == "changes X":
            X[0] = 0.0
        groups = np.asarray(sensitive_features)
        if self.fault == "names":
            weights = np.where(groups == np.unique(groups)[0], 1.0, 9.0)
        self.model_ = ft.QuantileRepairClassifier(LogisticRegression(), amount=0.1 if self.fault == "parity" else 1.0)
        self.model_.fit(X, y, sensitive_features=groups, sample_weight=weights)
        self.calls_ = 0
        return self

    def predict_proba(self, X, *, sensitive_features=None):
        if sensitive_features is None:
            raise ValueError("sensitive_features needed")
        groups = np.asarray(sensitive_features)
        known = np.isin(groups, self.model_.repair_.groups_.labels)
        if not known.all():
            if self.fault == "tells":
                raise ValueError(f"unknown group {groups[0]}")
            if self.fault == "silent":
                return np.full((len(X), 2), 0.5)
        scores = self.model_.predict_proba(X, sensitive_features=groups)
        if self.fault == "batch":
            scores = np.clip(scores + 1e-3 * X[:, :1].mean(), 0, 1)
        if self.fault == "chance":
            scores += 1e-6 * np.random.default_rng().random(scores.shape)
        if self.fault == "state":
            self.calls_ += 1
        return scores


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("batch", "depends on the other rows of the batch|order of the rows"),
        ("chance", "different scores|order of the rows|in the batch"),
        ("state", "Predicting changes the model"),
        ("changes X", "X was changed"),
        ("silent", "scored without an error"),
        ("tells", "contains its value"),
        ("names", "Renaming the groups changes scores"),
        ("weights", "A weight of 2 is not equivalent"),
        ("parity", "Disparity of new rows is"),
    ],
)
def test_each_fault_is_caught(fault, words):
    check_fair_estimator(Broken())
    with pytest.raises(AssertionError, match=words):
        check_fair_estimator(Broken(fault), tolerance=0.001)
