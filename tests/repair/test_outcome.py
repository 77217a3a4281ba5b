"""Repairs of models say what became of the scores, as trained models do."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import fairtransport as ft

CLASSIFIERS = [ft.QuantileRepairClassifier, ft.BlindRepairClassifier]


def people(n, shift):
    """Features of two groups, one of which is shifted, and labels that follow them."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 2
    X = rng.normal(size=(n, 3)) + shift * group[:, None] * [1.0, 0.0, 0.5]
    return X, X @ [1.0, 1.0, 0.5] + rng.logistic(size=n), group


def fitted(model, X, y, group, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=group, **options)
    return model, [str(one.message) for one in caught if issubclass(one.category, ft.FairnessWarning)]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_repair_that_helps_states_what_held_out_rows_exclude(kind, tmp_path):
    X, latent, group = people(6000, 0.5)
    model, _ = fitted(kind(LogisticRegression()), X, latent > 0.5, group)
    assert model.outcome_.startswith("the scores were repaired; ")
    assert "percentage points" in model.outcome_
    ft.save(model, tmp_path / "model.ft")
    assert ft.load(tmp_path / "model.ft").outcome_ == model.outcome_


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_groups_that_do_not_differ_are_not_repaired_and_the_outcome_says_so(kind):
    X, latent, group = people(2000, 0.0)
    model, said = fitted(kind(LogisticRegression()), X, latent > 0.5, group)
    assert "nothing was moved" in model.outcome_
    assert said  # the warning and the outcome are of one opinion


@pytest.mark.parametrize(("limit", "met"), [(0.2, True), (0.0001, False)])
def test_the_outcome_of_a_limit_says_whether_it_was_met(limit, met):
    X, latent, group = people(2000, 1.0)
    repair = ft.repair.BlindRepair(max_disparity=limit)
    model, said = fitted(ft.BlindRepairRegressor(LinearRegression(), repair=repair), X, latent, group)
    assert model.outcome_ == f"max_disparity={limit:g} was {'met' if met else 'not reached'} on held-out rows"
    assert any("not reached" in text for text in said) is not met


def test_too_few_rows_and_batches_are_said_to_be_without_held_out_rows():
    X, latent, group = people(12, 1.0)
    model, _ = fitted(ft.QuantileRepairRegressor(LinearRegression(), cv=None), X[:5], latent[:5], [0, 0, 0, 0, 1])
    assert model.outcome_ == "the scores were repaired; too few rows to hold some out"
    model = ft.QuantileRepairRegressor(LinearRegression().fit(X, latent), ft.QuantileRepair(range=(-9.0, 9.0)))
    model.partial_fit(X, sensitive_features=group)
    assert model.outcome_ == "repaired by batches; no rows were held out"
