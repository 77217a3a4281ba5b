"""Equalized odds, equal opportunity and conditional parity of boosted trees; probabilities of groups given features."""

import numpy as np
import pytest
from scipy.special import expit

from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.boosting._libraries import library_of
from fairtransport.boosting._settings import GroupModels, PenaltySettings
from fairtransport.boosting._training_data import TrainingData
from fairtransport.criteria.criterion import as_criterion, weigh_by_reliability
from fairtransport.groups import make_groups
from fairtransport.transport.line import wasserstein

from .conftest import BOTH, LIGHT


def make_people(n=3000, seed=0):
    """Return rows whose scores differ by group, given the label and given the education (column 3)."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    education = rng.integers(3, size=n) + (rng.random(n) < 0.5) * group
    X = np.column_stack((rng.normal(size=(n, 3)) + np.outer(group, [1.0, 0.0, 0.0]), education))
    y = (X @ [1.0, 1.5, 0.5, 0.7] + rng.logistic(size=n) > 1.2).astype(int)
    return X, y, group, education


def within(scores, group, strata):
    """Return the Wasserstein-1 distance of two groups within each stratum in which both have rows."""
    parts = [[scores[(strata == s) & (group == g)] for g in (0, 1)] for s in np.unique(strata)]
    return np.array([wasserstein(*pair) for pair in parts if min(map(len, pair))])


@BOTH
@pytest.mark.parametrize("criterion", ["equalized_odds", "equal_opportunity", "conditional"])
def test_each_criterion_reduces_its_own_differences_on_new_rows(trees, criterion):
    X, y, group, education = make_people()
    new_X, new_y, new_group, new_education = make_people(seed=1)
    strata = new_education if criterion == "conditional" else new_y
    options = {} if criterion == "conditional" else {"criterion": criterion}
    given = {"strata": education} if criterion == "conditional" else {}
    found = {}
    for weight in (0.0, 1.5):
        model = TransportBoostingClassifier(trees, parity_weight=weight, random_state=0, **options)
        model.fit(X, y, sensitive_features=group, **given)
        found[weight] = within(model.predict_proba(new_X)[:, 1], new_group, strata)
    judged = slice(1, None) if criterion == "equal_opportunity" else slice(None)
    assert found[1.5][judged].mean() < 0.5 * found[0.0][judged].mean()
    if criterion == "conditional":
        assert model.strata_.columns == ("stratum_0",)
        assert model.strata_.n_rows == 0
        assert model.outcome_ == "conditional parity (3 strata, 1 set aside): ran all 30 rounds"
    else:
        assert model.strata_ is None
        assert model.outcome_ == f"{criterion.replace('_', ' ')}: ran all 30 rounds"


@pytest.mark.models
@BOTH
def test_early_stopping_is_on_the_distances_within_labels(trees):
    X, y, group, education = make_people(1500)
    new = make_people(1500, seed=1)
    model = TransportBoostingClassifier(
        trees, criterion="equalized_odds", parity_weight=0.5, scale="score", random_state=0
    )
    model.fit(X, y, sensitive_features=group, eval_set=new[:3])
    # The labels count by how reliably the plain model's differences can be told from chance.
    comparisons = TrainingData(new[0], new[1], make_groups(new[2])).compare("equalized_odds").comparisons(None)
    weights = weigh_by_reliability(comparisons, model.initial_estimator_.predict_proba(new[0])[:, 1]).weights
    last = weights @ within(model.predict_proba(new[0])[:, 1], new[2], new[1])
    assert model.history_["disparity"][-1] == pytest.approx(last, rel=5e-3)  # 256 slices
    model.set_params(criterion="demographic_parity", target="barycenter")
    model.fit(X, y, sensitive_features=group, strata=education, eval_set=new)
    assert np.isfinite(model.history_["disparity"]).all()
    model.set_params(n_iter_no_change=2).fit(X, y, sensitive_features=group, strata=education)
    assert len(model.history_["loss"]) > 0


def probabilities_of(trees, X, codes, *, criterion="demographic_parity", labels=None):
    rows = TrainingData(X, np.zeros(len(X), int) if labels is None else labels, make_groups(codes))
    penalty = PenaltySettings(as_criterion(criterion), "each_other", "auto", "standardized", smooth_groups=True)
    models = GroupModels(library_of(trees, "classification"), rows, penalty, np.full(len(X), -1))
    return models.probabilities(rows, np.arange(len(X)))


@BOTH
def test_probabilities_are_calibrated(trees):
    """Two groups, normal with means 0 and 1: the probability is a logistic function of the feature."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=6000)
    X = rng.normal(size=(6000, 2)) + np.outer(codes, [1.0, 0.0])
    probabilities = probabilities_of(trees, X, codes)
    truth = expit(X[:, 0] - 0.5)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    assert np.abs(probabilities[:, 1] - truth).mean() < 0.06


def test_no_model_predicts_its_training_rows():
    """Random groups: a model of the same rows would fit them, one of other rows predicts one half."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(2000, 5)), rng.integers(2, size=2000)
    probabilities = probabilities_of(LIGHT, X, codes)
    assert probabilities[np.arange(2000), codes].mean() == pytest.approx(0.5, abs=0.02)


@BOTH
def test_probabilities_are_given_the_label(trees):
    """Within each label two normal groups, in one label one unit apart, in the other none."""
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(2, size=6000), rng.integers(2, size=6000)
    X = rng.normal(size=(6000, 2)) + np.outer(codes * labels, [1.0, 0.0])
    probabilities = probabilities_of(trees, X, codes, labels=labels, criterion="equalized_odds")
    truth = np.where(labels == 1, expit(X[:, 0] - 0.5), 0.5)
    assert np.abs(probabilities[:, 1] - truth).mean() < 0.085
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    for label in (0, 1):
        expected = np.bincount(codes[labels == label])
        np.testing.assert_allclose(probabilities[labels == label].sum(axis=0), expected, rtol=1e-3)
