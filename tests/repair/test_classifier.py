"""QuantileRepairClassifier: any classifier, honest scores, and the paper's data."""

import pickle
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.worlds import people

import fairtransport as ft
from fairtransport import GroupPolicy, QuantileRepair, QuantileRepairClassifier
from fairtransport.metrics import strong_pairwise_disparity


def world(n=2000, seed=0):
    return people(n, seed, groups=("f", "m"), p=[0.3, 0.7], shift=(1.5, 0.0, 0.0))


def spdd(scores, group):
    return strong_pairwise_disparity(scores, sensitive_features=group)


def positive(model, X, group):
    return model.predict_proba(X, sensitive_features=group)[:, 1]


def test_it_repairs_the_scores_of_a_fitted_clone():
    X, y, group = world()
    inner = LogisticRegression(C=0.1)
    model = QuantileRepairClassifier(inner, repair=QuantileRepair(target="pooled"), amount=0.8).fit(
        X, y, sensitive_features=group
    )
    assert not hasattr(inner, "coef_")
    scores = clone(inner).fit(X, y).predict_proba(X)[:, 1]
    expected = QuantileRepair("pooled", 0.8).fit_transform(scores, sensitive_features=group)
    out = model.predict_proba(X, sensitive_features=group)
    assert np.array_equal(out[:, 1], expected)
    assert np.array_equal(out[:, 0], 1 - expected)
    assert model.estimator_.coef_.shape == (1, 3)
    assert model.repair_.amount == 0.8


def test_predict_is_the_class_above_one_half():
    X, y, group = world()
    words = np.array(["no", "yes"])[y]
    model = QuantileRepairClassifier(LogisticRegression()).fit(X, words, sensitive_features=group)
    assert model.classes_.tolist() == ["no", "yes"]
    predicted = model.predict(X, sensitive_features=group)
    assert np.array_equal(predicted == "yes", positive(model, X, group) > 0.5)
    assert model.score(X, words, sensitive_features=group) == np.mean(predicted == words)
    weights = np.linspace(0, 1, y.size)
    assert model.score(X, words, sensitive_features=group, sample_weight=weights) == pytest.approx(
        np.average(predicted == words, weights=weights)
    )


@pytest.mark.parametrize("amount", [1.0, 0.5])
def test_a_repair_that_does_not_help_is_not_done(amount, tmp_path):
    """Two scores in all: their images differ between groups, and so do the ranks of everyone with the lower one."""
    X, y, group = world(800)
    model = QuantileRepairClassifier(KNeighborsClassifier(1), amount=amount)
    with pytest.warns(ft.FairnessWarning, match="does not help") as caught:
        model.fit(X, y, sensitive_features=group)
    moved = np.abs(positive(model, X, group) - model.estimator_.predict_proba(X)[:, 1]).max()
    assert ("plain model is kept" in str(caught[0].message), moved < 1e-12) == (amount == 1.0, amount == 1.0)
    loaded = ft.load(ft.save(model.repair_, tmp_path / "repair.ft", people_per_point=1))
    assert (loaded.transform([0.2], sensitive_features=group[:1])[0] == 0.2) == (amount == 1.0)


@pytest.mark.parametrize("given", [lambda cv, _: cv, lambda cv, X: list(cv.split(X))], ids=["splitter", "splits"])
def test_cv_uses_out_of_fold_scores_and_predicts_with_all_rows(given):
    X, y, group = world(300)
    tree, cv = DecisionTreeClassifier(max_depth=4, random_state=0), given(KFold(4, shuffle=True, random_state=0), X)
    model = QuantileRepairClassifier(tree, cv=cv, amount=0.9).fit(X, y, sensitive_features=group)
    unseen = cross_val_predict(tree, X, y, cv=cv, method="predict_proba")[:, 1]
    expected = QuantileRepair(amount=0.9).fit(unseen, sensitive_features=group)
    own = clone(tree).fit(X, y).predict_proba(X)[:, 1]
    assert np.array_equal(positive(model, X, group), expected.transform(own, sensitive_features=group))


class Echo(ClassifierMixin, BaseEstimator):
    """Gives the first column as the score."""

    def __init__(self, factor=1.0, first=0):
        self.factor, self.first = factor, first

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        scores = np.asarray(X, dtype=float)[:, 0]
        return np.column_stack((1 - scores, scores))[:, self.first :] * self.factor


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_fitted_estimator_is_used_as_it_is(pipeline):
    X, y, group = world()
    inner = make_pipeline(StandardScaler(), LogisticRegression()) if pipeline else LogisticRegression()
    inner.fit(X[:500], y[:500])
    state = pickle.dumps(inner)
    model = QuantileRepairClassifier(inner).fit(X[500:], y[500:], sensitive_features=group[500:])
    assert model.estimator_ is inner
    assert pickle.dumps(inner) == state
    scores = inner.predict_proba(X)[:, 1]
    repair = QuantileRepair().fit(scores[500:], sensitive_features=group[500:])
    assert np.array_equal(positive(model, X, group), repair.transform(scores, sensitive_features=group))


@pytest.mark.parametrize(
    "inner",
    [
        HistGradientBoostingClassifier(max_iter=10),
        KNeighborsClassifier(20),
        CalibratedClassifierCV(RidgeClassifier(), cv=2),
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=2),
        Echo(),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_any_classifier(inner):
    X, y, group = world(400)
    X = 1 / (1 + np.exp(-X))
    model = QuantileRepairClassifier(inner).fit(X, y, sensitive_features=group)
    assert spdd(positive(model, X, group), group) < spdd(model.estimator_.predict_proba(X)[:, 1], group) / 4


def test_rounding_beyond_one_is_forgiven_and_no_more():
    X, y, group = np.linspace(0, 1, 20)[:, None], [0, 1] * 10, ["a"] * 10 + ["b"] * 10
    model = QuantileRepairClassifier(Echo(1 + 1e-7), repair=QuantileRepair(groups=GroupPolicy(min_size=1))).fit(
        X, y, sensitive_features=group
    )
    assert model.predict_proba(X, sensitive_features=group).max() <= 1
    assert not hasattr(model, "n_features_in_")  # Echo does not say
    with pytest.raises(ValueError, match=re.escape("values outside [0, 1]")):
        QuantileRepairClassifier(Echo(3)).fit(X, y, sensitive_features=group)
    with pytest.raises(ValueError, match="probabilities of two classes"):
        QuantileRepairClassifier(Echo(first=1)).fit(X, y, sensitive_features=group)


def test_weights_that_the_estimator_cannot_take():
    X, y, group = world(100)
    for inner in (KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())):
        with pytest.raises(ValueError, match=r"KNeighborsClassifier cannot be .* Fit it first"):
            QuantileRepairClassifier(inner).fit(X, y, sensitive_features=group, sample_weight=np.ones(100))
        fitted = clone(inner).fit(X, y)
        QuantileRepairClassifier(fitted).fit(X, y, sensitive_features=group, sample_weight=np.ones(100))


FITTED = GaussianNB().fit(*world(100)[:2])
WRONG_FIT = {
    "target": ({"repair": QuantileRepair(target="median")}, {}, ValueError, "target must be one of"),
    "no probabilities": ({"estimator": RidgeClassifier()}, {}, TypeError, "CalibratedClassifierCV"),
    "pipeline without probabilities": (
        {"estimator": make_pipeline(StandardScaler(), RidgeClassifier())},
        {},
        TypeError,
        "CalibratedClassifierCV",
    ),
    "fitted, with folds": ({"estimator": FITTED, "cv": 3}, {}, ValueError, "cv needs an estimator that is not fitted"),
    "fitted to other classes": ({"estimator": FITTED}, {"y": [1, 2] * 50}, ValueError, "other class labels"),
    "a class": ({"estimator": GaussianNB}, {}, TypeError, "is a class, not an instance"),
    "overlapping groups": (
        {"repair": QuantileRepair(groups=GroupPolicy(crossed=False))},
        {"sensitive_features": {"g": ["canary"] * 50 + ["m"] * 50, "h": ["x", "y"] * 50}},
        ValueError,
        "do not overlap",
    ),
    "three classes": ({}, {"y": np.arange(100) % 3}, ValueError, "exactly two classes; y has 3 classes"),
    "numbers as labels": ({}, {"y": np.linspace(0, 1, 100)}, ValueError, "Unknown label type"),
    "missing labels": ({}, {"y": ["canary", None] * 50}, ValueError, "missing ones"),
    "constant scores": ({}, {"X": np.zeros((100, 3))}, ValueError, "nothing to repair"),
    "one fold": ({"cv": 1}, {}, ValueError, "cv must be at least 2"),
    "a word for folds": ({"cv": "five"}, {}, ValueError, "cv must be 'auto', a number of folds"),
    "folds of some rows": ({"cv": [(range(50), range(50, 99))]}, {}, ValueError, "hold out every row once"),
}


@pytest.mark.parametrize("case", WRONG_FIT)
def test_what_fit_refuses_and_tells(case):
    options, given_data, kind, message = WRONG_FIT[case]
    X, y, group = world(100)
    data = {"X": X, "y": y, "sensitive_features": np.where(group == "f", "canary", "m"), **given_data}
    model = QuantileRepairClassifier(**{"estimator": LogisticRegression(), **options})
    with pytest.raises(kind, match=re.escape(message)) as caught:
        model.fit(**data)
    assert "canary" not in str(caught.value)
    assert not hasattr(model, "estimator_")


@pytest.mark.parametrize("method", ["predict_proba", "predict"])
def test_prediction_needs_the_group(method):
    X, y, group = world(100)
    group = np.where(group == "f", "canary", "m")
    model = QuantileRepairClassifier(GaussianNB())
    with pytest.raises(NotFittedError):
        getattr(model, method)(X, sensitive_features=group)
    model.fit(X, y, sensitive_features=group)
    with pytest.raises(ValueError, match="needs sensitive_features at prediction, too"):
        getattr(model, method)(X)
    with pytest.raises(ValueError, match="1 of 100 rows") as caught:
        getattr(model, method)(X, sensitive_features=[*group[1:], "canary-x"])
    assert "canary" not in str(caught.value)
    with pytest.raises(ValueError, match="sensitive_features has 50 rows"):
        getattr(model, method)(X, sensitive_features=group[:50])
