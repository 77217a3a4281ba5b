import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import fairtransport as ft
from fairtransport import GroupPolicy, QuantileRepair
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.metrics import strong_pairwise_disparity

from .conftest import BOTH, LIGHT, XG


def fitted(trees, data, X=None, y=None, weights=None, **options):
    model = TransportBoostingClassifier(trees, random_state=0, **{"parity_weight": 0.3, **options})
    X, y = data.X if X is None else X, data.y if y is None else y
    return model.fit(X, y, sensitive_features=data.group, sample_weight=weights)


def disparity(model, data, X=None, **known):
    scores = model.predict_proba(data.X if X is None else X, **known)[:, 1]
    return strong_pairwise_disparity(scores, sensitive_features=data.group)


def frame(data):
    """Return a table with missing numbers, categories and missing categories."""
    table = pd.DataFrame(data.X, columns=["a", "b", "c"])
    table.loc[::5, "b"] = np.nan
    table["kind"] = pd.Categorical(np.where(data.X[:, 2] > 0.5, "red", np.where(data.X[:, 1] > 0, "blue", None)))
    return table


@BOTH
def test_more_weight_is_less_disparity_and_more_error_on_new_rows(trees, data, new_data):
    models = [fitted(trees, data, parity_weight=weight) for weight in (0.0, 0.3, 1.0)]
    none, some, most = (disparity(model, new_data) for model in models)
    assert none > some > most
    assert most < 0.4 * none
    losses = [-np.log(model.predict_proba(new_data.X)[np.arange(new_data.n), new_data.y]).mean() for model in models]
    assert losses == sorted(losses)
    assert losses[-1] < np.log(2)  # better than a constant


@BOTH
def test_without_parity_it_is_the_library(trees, data, new_data):
    model = fitted(trees, data, parity_weight=0.0)
    plain = clone(trees).set_params(random_state=model.estimator_.random_state).fit(data.X, data.y)
    np.testing.assert_allclose(model.predict_proba(new_data.X), plain.predict_proba(new_data.X), atol=1e-6)
    assert (model.parity_weight_, model.information_kept_) == (0.0, 1.0)


@BOTH
@pytest.mark.parametrize(
    "options", [{"distance": "discrete"}, {"target": "barycenter"}, {"smooth_groups": False}], ids=str
)
def test_other_kinds_and_targets_reduce_the_disparity(trees, data, options):
    assert disparity(fitted(trees, data, parity_weight=0.5, **options), data) < 0.7 * disparity(
        fitted(trees, data, parity_weight=0.0), data
    )


@BOTH
def test_repair_removes_the_remaining_disparity_and_needs_the_group(trees, data, new_data):
    model = fitted(trees, data, parity_weight=0.1, repair=QuantileRepair())
    known = {"sensitive_features": new_data.group}
    assert disparity(model, data, sensitive_features=data.group) < 0.005
    assert disparity(model, new_data, **known) < 0.06
    half = fitted(trees, data, parity_weight=0.1, repair=QuantileRepair(amount=0.5))
    assert (
        disparity(model, new_data, **known)
        < disparity(half, new_data, **known)
        < disparity(clone(half).set_params(repair=None).fit(data.X, data.y, sensitive_features=data.group), new_data)
    )
    by_hand = ft.QuantileRepair("barycenter_w2").fit(
        model.estimator_.predict_proba(data.X)[:, 1], sensitive_features=data.group
    )
    scores = by_hand.transform(model.estimator_.predict_proba(new_data.X)[:, 1], **known)
    np.testing.assert_allclose(model.predict_proba(new_data.X, **known)[:, 1], scores, atol=1e-4)
    with pytest.raises(ValueError, match="repaired group by group: pass sensitive_features="):
        model.predict(new_data.X)
    with pytest.raises(ValueError, match="none of the 2 known groups"):
        model.predict(new_data.X, sensitive_features=np.full(new_data.n, "somebody"))


@BOTH
def test_missing_values_and_categories_are_passed_on(trees, data):
    table = frame(data)
    if trees is XG:
        trees = clone(XG).set_params(enable_categorical=True)
    model = fitted(trees, data, table, parity_weight=0.5)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "kind"]
    assert model.n_features_in_ == 4
    other = table.assign(kind=table["kind"].cat.rename_categories({"red": "blue", "blue": "red"}))
    assert np.abs(model.predict_proba(table) - model.predict_proba(other)).max() > 0.01  # categories matter
    filled = table.assign(b=table["b"].fillna(5.0))
    assert np.abs(model.predict_proba(table) - model.predict_proba(filled)).max() > 0.01  # so does a missing value


@BOTH
@pytest.mark.parametrize("convert", [sparse.csr_matrix, lambda X: pl.DataFrame(X, schema=list("abc"))])
def test_tables_and_sparse_matrices(trees, data, convert):
    plain, other = fitted(trees, data), fitted(trees, data, convert(data.X))
    np.testing.assert_allclose(other.predict_proba(convert(data.X)), plain.predict_proba(data.X), atol=1e-6)


@BOTH
def test_weights_are_passed_on(trees, data):
    weights = np.where(data.y == 1, 3.0, 1.0)
    heavy, light = fitted(trees, data, weights=weights), fitted(trees, data)
    assert heavy.predict_proba(data.X)[:, 1].mean() > light.predict_proba(data.X)[:, 1].mean() + 0.1
    scaled = fitted(clone(trees).set_params(scale_pos_weight=3.0), data)
    np.testing.assert_allclose(scaled.predict_proba(data.X), heavy.predict_proba(data.X), atol=1e-6)
    ones = fitted(trees, data, weights=np.ones(data.n))
    np.testing.assert_allclose(ones.predict_proba(data.X), light.predict_proba(data.X), atol=1e-3)


def test_class_weight_uses_the_original_labels(data):
    words = np.where(data.y == 1, "yes", "no")
    model = fitted(clone(LIGHT).set_params(class_weight={"yes": 3.0}), data, y=words)
    heavy = fitted(LIGHT, data, weights=np.where(data.y == 1, 3.0, 1.0))
    np.testing.assert_allclose(model.predict_proba(data.X), heavy.predict_proba(data.X), atol=1e-6)
    balanced = fitted(clone(LIGHT).set_params(class_weight="balanced"), data)
    assert balanced.predict_proba(data.X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)


@BOTH
def test_the_fitted_model_belongs_to_the_library_and_contains_no_groups(trees, data, tmp_path):
    model = fitted(trees, data)
    inner = model.estimator_
    assert type(inner) is type(trees)
    np.testing.assert_allclose(inner.predict_proba(data.X), model.predict_proba(data.X), atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(data.X), np.log(np.divide(*model.predict_proba(data.X).T[::-1])), atol=1e-6
    )
    path = str(tmp_path / "model.json")
    if trees is LIGHT:
        inner.booster_.save_model(path)
        served = lightgbm.Booster(model_file=path).predict(data.X)
    else:
        inner.save_model(path)
        served = xgboost.Booster(model_file=path).predict(xgboost.DMatrix(data.X))
    np.testing.assert_allclose(served, model.predict_proba(data.X)[:, 1], atol=1e-6)
    assert "high" not in (tmp_path / "model.json").read_text()
    assert not any(isinstance(part, ft.make_groups(["a", "b"]).__class__) for part in vars(inner).values())
    assert inner.get_params()["objective"] in {"binary", "binary:logistic"}


def test_no_penalty_if_groups_differ_by_chance_only(data):
    rng = np.random.default_rng(5)
    model = TransportBoostingClassifier(LIGHT, random_state=0)
    with pytest.warns(ft.FairnessWarning, match=r"Parity cannot be shown: .* disparity of 1,200 rows"):
        model.fit(data.X, data.y, sensitive_features=rng.integers(2, size=data.n))
    assert model.unit_ == 0.0
    assert model.outcome_.startswith(
        "the groups of the initial model differ no more than by chance; nothing was moved; ran all 30 rounds; "
        "held-out rows cannot exclude a difference of 7"
    )
    assert model.parity_weight_ == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parity_weight": -1.0}, "parity_weight must be a finite number at least 0"),
        ({"parity_weight": np.inf}, "parity_weight must be a finite number"),
        ({"parity_weight": "most"}, "parity_weight must be one of 'auto'"),
        ({"max_disparity": 0.1}, "max_disparity chooses the weight: leave parity_weight at 'auto'"),
        ({"amount": 1.5}, "amount must be"),
        ({"spread": "wide"}, "spread must be one of 'trained', 'initial'"),
        ({"scale": "ranks"}, "scale must be one of 'standardized', 'score'"),
        ({"n_iter_no_change": "never"}, "n_iter_no_change must be one of 'auto'"),
        ({"repair": 1.0}, "repair must be None or a QuantileRepair"),
        ({"repair": QuantileRepair(criterion="equalized_odds")}, "repair moves scores towards demographic parity"),
        ({"distance": "both"}, "distance must be 'continuous', 'discrete'"),
        ({"target": "middle"}, "target must be one of"),
        ({"smooth_groups": "yes"}, "smooth_groups must be"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be at least 1"),
        ({"validation_fraction": 0.9}, "validation_fraction must be"),
        ({"groups": GroupPolicy(small="drop", min_size=10_000)}, "at least 2 needed"),
        ({"groups": "none"}, "groups must be a GroupPolicy"),
        ({"criterion": "odds"}, "criterion must be one of 'demographic_parity', 'equalized_odds'"),
    ],
)
def test_invalid_parameters(data, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(LIGHT, data, **options)


@BOTH
def test_a_group_with_missing_features_is_scored(trees, data):
    X = data.X.copy()
    X[data.group == "low"] = np.nan
    model = fitted(trees, data, X, parity_weight=0.5)
    scores = model.predict_proba(X)[:, 1]
    assert np.isfinite(scores).all()
    assert np.ptp(scores[data.group == "low"]) == 0.0


ROWS = np.arange(1200)
BAD_ROWS = [
    ({"sample_weight": lambda d: d.y.astype(float)}, "One of the two classes has total sample_weight 0"),
    ({"eval_set": lambda d: (d.X, d.y)}, "a tuple: X, y and sensitive_features"),
    ({"eval_set": lambda d: (d.X, d.y + 1, d.group)}, "other class labels"),
    ({"eval_set": lambda d: (d.X, d.y, np.full(d.n, "somebody"))}, "none of the 2 known groups"),
    ({"eval_set": lambda d: (d.X, d.y[:5], d.group)}, "y of eval_set has 5 rows"),
    (
        {"strata": lambda _: ROWS % 2, "eval_set": lambda d: (d.X, d.y, d.group)},
        "a tuple: X, y, sensitive_features and strata",
    ),
    (
        {"strata": lambda _: ROWS % 2, "eval_set": lambda d: (d.X, d.y, d.group, ROWS[:10])},
        "strata of eval_set has 10 rows",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD_ROWS)
def test_invalid_rows(data, change, message):
    rows = {"y": data.y, "sensitive_features": data.group, **{name: make(data) for name, make in change.items()}}
    with pytest.raises(ValueError, match=message):
        TransportBoostingClassifier(LIGHT).fit(data.X, **rows)


def test_too_few_rows_and_a_repair_of_another_criterion(data):
    model = TransportBoostingClassifier(LIGHT)
    few = (data.X[:12], data.y[:12], data.group[:12])
    with pytest.raises(ValueError, match="finds no column to split 12 rows by"):
        model.fit(few[0], few[1], sensitive_features=few[2], eval_set=few)
    with pytest.raises(NotFittedError):
        model.predict(data.X)
    with pytest.raises(ValueError, match="undoes another criterion"):
        model.set_params(repair=QuantileRepair(amount=0.5)).fit(
            data.X, data.y, sensitive_features=data.group, strata=ROWS % 2
        )
    with pytest.raises(ValueError, match="nothing to compare: no label has rows of two groups"):
        TransportBoostingClassifier(LIGHT, criterion="equalized_odds").fit(data.X, data.y, sensitive_features=data.y)
