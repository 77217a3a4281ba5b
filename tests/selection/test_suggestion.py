"""What is suggested exists, can be made as it says, and needs the group at prediction only where that was allowed."""

from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import fairtransport as ft
from fairtransport._sklearn import takes_groups
from fairtransport.selection.suggestion import MODELS, TASKS

BASES = {kind.__name__: kind for kind in (HistGradientBoostingClassifier, HistGradientBoostingRegressor, Ridge)}
BASES |= {"LogisticRegression": LogisticRegression}


@pytest.mark.parametrize(("aware", "model", "task"), list(product((True, False), MODELS, TASKS)))
def test_the_code_makes_what_is_named(aware, model, task):
    for n_rows in (None, 300, 50_000):
        found = ft.suggest(group_at_prediction=aware, model=model, task=task, n_rows=n_rows)
        if not found.method:
            assert (aware, model) == (False, "scores")
            return
        if found.method.startswith("torch."):
            assert (aware, model) == (False, "network")
            return
        estimator = eval(found.code, {**BASES, **{name: getattr(ft, name) for name in ft.__all__}})  # noqa: S307
        assert type(estimator) is getattr(ft, found.method)
        assert found.method in str(found)
        if hasattr(estimator, "predict"):
            assert takes_groups(estimator) == aware
        if task == "regression" and found.method == "QuantileRepair":
            assert estimator.range == "learned"


def test_few_rows_get_a_linear_model_and_a_caution():
    few, many = (ft.suggest(group_at_prediction=False, n_rows=n, n_groups=4) for n in (300, 30_000))
    assert "LogisticRegression" in few.code
    assert "Boosting" in many.code
    assert (len(few.cautions), many.cautions) == (1, ())
    assert "Caution: 300 rows in 4 groups" in str(few)
    trees = ft.suggest(group_at_prediction=False, n_rows=300, model="trees")
    assert "Boosting" in trees.code


@pytest.mark.parametrize(
    "options", [{"model": "forest"}, {"task": "ranking"}, {"n_rows": 0}, {"n_groups": 1.5}, {"group_at_prediction": 2}]
)
def test_other_arguments_are_refused(options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        ft.suggest(**{"group_at_prediction": True, **options})


def test_a_suggested_repair_runs():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=400)
    X = rng.normal(size=(400, 2)) + group[:, None] * [1.2, 0.0]
    y = (X.sum(axis=1) + rng.logistic(size=400) > 0.5).astype(int)
    found = ft.suggest(group_at_prediction=False, n_rows=400)
    model = eval(found.code, {**BASES, found.method: getattr(ft, found.method)})  # noqa: S307
    scores = model.set_params(cv=2).fit(X, y, sensitive_features=group).predict_proba(X)[:, 1]
    before = model.estimator_.predict_proba(X)[:, 1]
    ends = [ft.metrics.strong_pairwise_disparity(s, sensitive_features=group) for s in (before, scores)]
    assert ends[1] < 0.7 * ends[0]
