"""The criterion that a frontier measures."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import fairtransport as ft


class OfAnotherLibrary(ClassifierMixin, BaseEstimator):
    """Its ``criterion`` is a loss, as that of networks in skorch is, or ``"gini"``."""

    def __init__(self, criterion="gini", parity_weight=1.0):
        self.criterion = criterion
        self.parity_weight = parity_weight

    def fit(self, X, y, *, sensitive_features):
        self.model_ = LogisticRegression(C=1.0 / (1.0 + self.parity_weight)).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.model_.predict(X)


def test_a_parameter_of_another_library_with_the_same_name_is_no_criterion():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(300, 2)), np.arange(300) % 2
    X[:, 0] += group
    y = (X[:, 0] + rng.logistic(size=300) > 0.5).astype(int)
    for criterion in ("gini", LogisticRegression):
        curve = ft.frontier(
            OfAnotherLibrary(criterion), X, y, sensitive_features=group, parity_weights=[0.0, 1.0], cv=2, random_state=0
        )
        frame = curve.to_frame()
        assert (frame["criterion_disparity"] == frame["pairwise_disparity"]).all()
