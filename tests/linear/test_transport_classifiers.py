"""What COT and DOT promise their users."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.tree import DecisionTreeClassifier

from fairtransport import TransportClassifier

from .tables import aware_table, both

FIXED = {"parity_weight": 1.0}
X, Y, G = aware_table(1500)


def test_group_specific_needs_known_groups_at_prediction():
    model = TransportClassifier(group_specific=True, **FIXED).fit(X, Y, sensitive_features=G)
    assert model.coef_.shape == (2, 5)
    with pytest.raises(ValueError, match="pass sensitive_features"):
        model.predict(X)
    with pytest.raises(ValueError, match="none of the 2 known groups"):
        model.predict(X[:2], sensitive_features=["a", "c"])
    with pytest.raises(ValueError, match="rows"):
        model.predict(X[:3], sensitive_features=["a", "b"])
    swapped = model.predict_proba(X[:50], sensitive_features=np.where(G[:50] == "a", "b", "a"))
    assert not np.allclose(swapped, model.predict_proba(X[:50], sensitive_features=G[:50]))


@pytest.mark.parametrize(
    "start", [LogisticRegression(C=0.5), SGDClassifier(loss="log_loss", random_state=0), LogisticRegression(C=np.inf)]
)
def test_any_linear_logistic_model_starts_theta(start):
    unfitted = TransportClassifier(clone(start), **FIXED).fit(X, Y, sensitive_features=G)
    fitted = clone(start).fit(X, Y)
    kept = TransportClassifier(fitted, **FIXED).fit(X, Y, sensitive_features=G)
    assert kept.initial_estimator_ is fitted
    # A clone is fitted on the rows in another order, which stochastic descent feels.
    np.testing.assert_allclose(unfitted.coef_, kept.coef_, atol=0.02)


@pytest.mark.parametrize("start", [DecisionTreeClassifier(), RidgeClassifier()])
def test_other_models_are_refused(start):
    with pytest.raises(TypeError, match="linear logistic"):
        TransportClassifier(start, **FIXED).fit(X, Y, sensitive_features=G)


def test_a_start_from_other_data_is_refused():
    with pytest.raises(ValueError, match="5 features"):
        TransportClassifier(LogisticRegression().fit(X[:, :2], Y)).fit(X, Y, sensitive_features=G)
    with pytest.raises(ValueError, match="other class labels"):
        TransportClassifier(LogisticRegression().fit(X, Y + 5)).fit(X, Y, sensitive_features=G)


@pytest.mark.parametrize(
    ("features", "weights", "words"),
    [(np.zeros_like(X), None, "same score"), (X, (Y == 1).astype(float), "classes has total sample_weight 0")],
)
@both
def test_bad_data(cls, features, weights, words):
    """Of which scikit-learn's checks and those of all families know nothing."""
    with pytest.raises(ValueError, match=words):
        cls(**FIXED).fit(features, Y, sensitive_features=G, sample_weight=weights)


def test_text_columns_are_named_without_a_cell():
    table = pd.DataFrame(X).set_axis([f"x{j}" for j in range(X.shape[1])], axis=1)
    model = TransportClassifier(**FIXED).fit(table.assign(z="1.5"), Y, sensitive_features=G)  # numbers, if as text
    for many in (1, 7):
        words = {f"t{j}": "canary" for j in range(many)}
        for call in (
            lambda: TransportClassifier(**FIXED).fit(table.assign(**words), Y, sensitive_features=G),  # noqa: B023
            lambda: TransportClassifier(**FIXED).partial_fit(table.assign(**words), Y, sensitive_features=G),  # noqa: B023
        ):
            with pytest.raises(ValueError, match=r"X has text in columns? 't0'.*TableModel") as caught:
                call()
            assert "canary" not in str(caught.value)
            assert ("'t5'" in str(caught.value), "and 2 more" in str(caught.value)) == (False, many == 7)
    with pytest.raises(ValueError, match="X has text in column 'z'"):
        model.predict(table.assign(z="canary"))


class NeverFitted(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("work has started")


@pytest.mark.parametrize(
    "change",
    [{"target": [2.0]}, {"target": "nobody"}, {"distance": "exact"}, {"tol": 0.0}, {"solver": "newton"},
     {"online": 1000.0}, {"weights": (G == "a").astype(float)}],
)  # fmt: skip
def test_bad_input_is_refused_before_work_starts(change):
    weights = change.pop("weights", None)
    with pytest.raises((ValueError, TypeError), match=r"must|target|weight|only"):
        TransportClassifier(NeverFitted(), **{**FIXED, **change}).fit(X, Y, sensitive_features=G, sample_weight=weights)
