import lightgbm
import numpy as np
import pytest
import xgboost

from fairtransport.boosting._group_probabilities import estimate_group_probabilities
from fairtransport.boosting._libraries import library_of
from fairtransport.boosting._training_data import TrainingData
from fairtransport.groups import make_groups

LIGHT = lightgbm.LGBMClassifier(n_estimators=10, num_leaves=8, verbose=-1, n_jobs=1)
XG = xgboost.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1)


def probabilities_of(trees, X, groups, weights=None, *, criterion="demographic_parity", labels=None, strata=None):
    rows = TrainingData(X, np.zeros(len(X), int) if labels is None else labels, groups, weights, strata)
    compared = rows.compare(criterion)
    return estimate_group_probabilities(library_of(trees, "classification"), trees, rows, compared, 0)


@pytest.mark.parametrize("trees", [LIGHT, XG], ids=["lightgbm", "xgboost"])
def test_probabilities_are_calibrated(trees):
    """Two groups, normal with means 0 and 1: the probability is a logistic function of the feature."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=6000)
    X = rng.normal(size=(6000, 2)) + np.outer(codes, [1.0, 0.0])
    probabilities = probabilities_of(trees, X, make_groups(codes))
    truth = 1.0 / (1.0 + np.exp(0.5 - X[:, 0]))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    assert np.abs(probabilities[:, 1] - truth).mean() < 0.06


def test_no_model_predicts_its_training_rows():
    """Random groups: a model of the same rows would fit them, one of other rows predicts one half."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(2000, 5)), rng.integers(2, size=2000)
    probabilities = probabilities_of(LIGHT, X, make_groups(codes))
    assert probabilities[np.arange(2000), codes].mean() == pytest.approx(0.5, abs=0.02)
