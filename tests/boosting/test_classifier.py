import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.metrics import strong_pairwise_disparity

LIGHT = lightgbm.LGBMClassifier(n_estimators=30, num_leaves=8, verbose=-1, n_jobs=1)
XG = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1)
BOTH = pytest.mark.parametrize("trees", [LIGHT, XG], ids=["lightgbm", "xgboost"])


def fitted(trees, world, X=None, y=None, weights=None, **options):
    model = TransportBoostingClassifier(trees, random_state=0, **options)
    X, y = world.X if X is None else X, world.y if y is None else y
    return model.fit(X, y, sensitive_features=world.group, sample_weight=weights)


def disparity(model, world, X=None, **known):
    scores = model.predict_proba(world.X if X is None else X, **known)[:, 1]
    return strong_pairwise_disparity(scores, sensitive_features=world.group)


def frame(world):
    """Missing numbers, categories, missing categories."""
    table = pd.DataFrame(world.X, columns=["told", "b", "c"])
    table.loc[::5, "b"] = np.nan
    table["kind"] = pd.Categorical(np.where(world.X[:, 2] > 0.5, "red", np.where(world.X[:, 1] > 0, "blue", None)))
    return table


# ------------------------------------------------------------------------------------------------------------ parity


@BOTH
def test_more_weight_is_less_disparity_and_more_error_on_new_rows(trees, world, fresh):
    models = [fitted(trees, world, parity_weight=weight) for weight in (0.0, 0.3, 1.5)]
    none, some, most = (disparity(model, fresh) for model in models)
    assert none > some > most
    assert most < 0.4 * none
    losses = [-np.log(model.predict_proba(fresh.X)[np.arange(fresh.n), fresh.y]).mean() for model in models]
    assert losses == sorted(losses)
    assert losses[-1] < np.log(2)  # it still knows something


@BOTH
def test_without_parity_it_is_the_library(trees, world, fresh):
    model = fitted(trees, world, parity_weight=0.0)
    plain = clone(trees).set_params(random_state=model.estimator_.random_state).fit(world.X, world.y)
    np.testing.assert_allclose(model.predict_proba(fresh.X), plain.predict_proba(fresh.X), atol=1e-6)
    assert model.unit_ == 0.0
    # With rows to follow it is trained by our objective without a penalty: the same to rounding.
    model = TransportBoostingClassifier(trees, parity_weight=0.0, random_state=0)
    model.fit(world.X, world.y, sensitive_features=world.group, eval_set=(fresh.X, fresh.y, fresh.group))
    np.testing.assert_allclose(model.predict_proba(fresh.X), plain.predict_proba(fresh.X), atol=2e-3)


@BOTH
@pytest.mark.parametrize("options", [{"kind": "discrete"}, {"target": "barycenter"}, {"smooth_groups": False}], ids=str)
def test_other_ways_to_parity(trees, world, options):
    assert disparity(fitted(trees, world, parity_weight=1.5, **options), world) < 0.7 * disparity(
        fitted(trees, world, parity_weight=0.0), world
    )


@BOTH
def test_repair_closes_what_is_left_and_needs_the_group(trees, world, fresh):
    model = fitted(trees, world, parity_weight=0.1, repair=True)
    known = {"sensitive_features": fresh.group}
    assert disparity(model, world, sensitive_features=world.group) < 0.005
    assert disparity(model, fresh, **known) < 0.06
    half = fitted(trees, world, parity_weight=0.1, repair=0.5)
    assert (
        disparity(model, fresh, **known)
        < disparity(half, fresh, **known)
        < disparity(clone(half).set_params(repair=False).fit(world.X, world.y, sensitive_features=world.group), fresh)
    )
    by_hand = ft.QuantileRepair("barycenter_w2").fit(
        model.estimator_.predict_proba(world.X)[:, 1], sensitive_features=world.group
    )
    scores = by_hand.transform(model.estimator_.predict_proba(fresh.X)[:, 1], **known)
    np.testing.assert_allclose(model.predict_proba(fresh.X, **known)[:, 1], scores, atol=1e-4)
    with pytest.raises(ValueError, match="closes with a repair, which depends on the group"):
        model.predict(fresh.X)
    with pytest.raises(ValueError, match="none of the 2 known groups"):
        model.predict(fresh.X, sensitive_features=np.full(fresh.n, "somebody"))


# ------------------------------------------------------------------------------------------------- what goes through


@BOTH
def test_missing_values_and_categories_go_through(trees, world):
    table = frame(world)
    if trees is XG:
        trees = clone(XG).set_params(enable_categorical=True)
    model = fitted(trees, world, table, parity_weight=0.5)
    assert model.feature_names_in_.tolist() == ["told", "b", "c", "kind"]
    assert model.n_features_in_ == 4
    other = table.assign(kind=table["kind"].cat.rename_categories({"red": "blue", "blue": "red"}))
    assert np.abs(model.predict_proba(table) - model.predict_proba(other)).max() > 0.01  # categories are read
    filled = table.assign(b=table["b"].fillna(5.0))
    assert np.abs(model.predict_proba(table) - model.predict_proba(filled)).max() > 0.01  # missing is not a number


@BOTH
@pytest.mark.parametrize("convert", [sparse.csr_matrix, pd.DataFrame, lambda X: pl.DataFrame(X, schema=list("abc"))])
def test_tables_and_sparse_matrices(trees, world, convert):
    if trees is LIGHT and "lambda" in convert.__name__:
        convert = lambda X: pd.DataFrame(X, columns=list("abc"))  # noqa: E731 - LightGBM takes no polars
    plain, other = fitted(trees, world), fitted(trees, world, convert(world.X))
    np.testing.assert_allclose(other.predict_proba(convert(world.X)), plain.predict_proba(world.X), atol=1e-6)


@BOTH
def test_weights_go_through(trees, world):
    weights = np.where(world.y == 1, 3.0, 1.0)
    heavy, light = fitted(trees, world, weights=weights), fitted(trees, world)
    assert heavy.predict_proba(world.X)[:, 1].mean() > light.predict_proba(world.X)[:, 1].mean() + 0.1
    scaled = fitted(clone(trees).set_params(scale_pos_weight=3.0), world)
    np.testing.assert_allclose(scaled.predict_proba(world.X), heavy.predict_proba(world.X), atol=1e-6)
    ones = fitted(trees, world, weights=np.ones(world.n))
    np.testing.assert_allclose(ones.predict_proba(world.X), light.predict_proba(world.X), atol=1e-3)


def test_class_weight_takes_the_users_labels(world):
    words = np.where(world.y == 1, "yes", "no")
    model = fitted(clone(LIGHT).set_params(class_weight={"yes": 3.0}), world, y=words)
    heavy = fitted(LIGHT, world, weights=np.where(world.y == 1, 3.0, 1.0))
    np.testing.assert_allclose(model.predict_proba(world.X), heavy.predict_proba(world.X), atol=1e-6)
    balanced = fitted(clone(LIGHT).set_params(class_weight="balanced"), world)
    assert balanced.predict_proba(world.X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)


def test_a_row_without_weight_is_no_row(world):
    weights = (np.arange(world.n) % 2).astype(float)
    flipped = np.where(weights > 0, world.y, 1 - world.y)
    one, other = (fitted(XG, world, y=y, weights=weights, smooth_groups=False) for y in (world.y, flipped))
    np.testing.assert_allclose(one.predict_proba(world.X), other.predict_proba(world.X), atol=1e-6)


# ------------------------------------------------------------------------------------------------------ the contract


@BOTH
def test_labels_of_any_kind(trees, world):
    words = np.where(world.y == 1, "yes", "no")
    model, numbers = fitted(trees, world, y=words), fitted(trees, world)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict_proba(world.X), numbers.predict_proba(world.X))
    np.testing.assert_array_equal(model.predict(world.X), np.where(numbers.predict(world.X) == 1, "yes", "no"))
    assert model.score(world.X, words) == numbers.score(world.X, world.y) > 0.6


@BOTH
def test_the_fitted_model_is_one_of_the_library_and_knows_nothing_of_groups(trees, world, tmp_path):
    model = fitted(trees, world)
    inner = model.estimator_
    assert type(inner) is type(trees)
    np.testing.assert_allclose(inner.predict_proba(world.X), model.predict_proba(world.X), atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(world.X), np.log(np.divide(*model.predict_proba(world.X).T[::-1])), atol=1e-6
    )
    path = str(tmp_path / "model.json")
    if trees is LIGHT:
        inner.booster_.save_model(path)
        served = lightgbm.Booster(model_file=path).predict(world.X)
    else:
        inner.save_model(path)
        served = xgboost.Booster(model_file=path).predict(xgboost.DMatrix(world.X))
    np.testing.assert_allclose(served, model.predict_proba(world.X)[:, 1], atol=1e-6)
    assert "high" not in (tmp_path / "model.json").read_text()
    assert not any(isinstance(part, ft.make_groups(["a", "b"]).__class__) for part in vars(inner).values())
    assert inner.get_params()["objective"] in {"binary", "binary:logistic"}


@BOTH
def test_equal_seeds_are_equal_models(trees, world):
    one, again = (fitted(clone(trees).set_params(subsample=0.7), world) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(world.X), again.predict_proba(world.X))


def test_the_estimator_that_was_given_stays_as_it_was(world):
    trees = clone(LIGHT)
    before = trees.get_params()
    fitted(trees, world)
    assert trees.get_params() == before
    assert not hasattr(trees, "n_features_in_") or trees.n_features_in_ is None


def test_nothing_is_moved_where_groups_differ_by_chance_only(world):
    rng = np.random.default_rng(5)
    model = TransportBoostingClassifier(LIGHT, random_state=0)
    model.fit(world.X, world.y, sensitive_features=rng.integers(2, size=world.n))
    assert model.unit_ == 0.0
    assert model.outcome_.startswith("the groups of a plain model differ no more than by chance")


@BOTH
def test_early_stopping_is_on_loss_plus_penalty(trees, world, fresh):
    trees = clone(trees).set_params(n_estimators=60, learning_rate=0.3)
    model = TransportBoostingClassifier(trees, parity_weight=0.5, n_iter_no_change=4, random_state=0)
    held = (fresh.X, fresh.y, fresh.group)
    model.fit(world.X, world.y, sensitive_features=world.group, eval_set=held)
    total = model.history_["loss"] + 0.5 * model.unit_ * model.history_["disparity"]
    assert len(total) < 60
    first = 45  # the penalty has its full weight after three quarters of the rounds
    assert model.n_iter_ == first + np.argmin(total[first - 1 :]) == len(total) - 4
    assert model.outcome_ == f"stopped after {len(total)} of 60 rounds; round {model.n_iter_} was best"
    # What was kept is the best round: its figures are those in the history.
    assert disparity(model, fresh) == pytest.approx(model.history_["disparity"][model.n_iter_ - 1], abs=1e-5)
    chosen = model.predict_proba(fresh.X)[np.arange(fresh.n), fresh.y]
    assert -np.log(chosen).mean() == pytest.approx(model.history_["loss"][model.n_iter_ - 1], abs=1e-5)


@BOTH
def test_rows_are_held_back_where_none_are_given(trees, world):
    model = fitted(clone(trees).set_params(n_estimators=40), world, n_iter_no_change=1)
    assert 30 <= model.n_iter_ <= 40
    assert len(model.history_["round"]) >= model.n_iter_
    followed = TransportBoostingClassifier(trees, random_state=0)
    followed.fit(world.X, world.y, sensitive_features=world.group, eval_set=(world.X, world.y, world.group))
    assert followed.n_iter_ == len(followed.history_["loss"]) == 30
    assert fitted(trees, world).history_ == {}


@pytest.mark.models
def test_frontier_goes_along_the_weights_and_the_repair(world):
    curve = ft.frontier(
        TransportBoostingClassifier(LIGHT), world.X, world.y, sensitive_features=world.group,
        parity_weights=[0.0, 1.0], cv=2, random_state=0, n_jobs=2,
    )  # fmt: skip
    assert curve.situation == "blind"
    none, most = curve.table()["strong_pairwise_disparity"]
    assert most < 0.5 * none
    assert isinstance(curve.choose(max_disparity=float(most)), TransportBoostingClassifier)
    repaired = ft.frontier(
        TransportBoostingClassifier(LIGHT, parity_weight=0.05), world.X, world.y, sensitive_features=world.group,
        parameter="repair", values=[0.0, 1.0], cv=2, random_state=0,
    )  # fmt: skip
    assert repaired.situation == "aware"
    assert repaired.table()["strong_pairwise_disparity"][1] < 0.07


def test_it_works_at_the_end_of_a_pipeline(world):
    model = make_pipeline(StandardScaler(), TransportBoostingClassifier(LIGHT, random_state=0))
    model.fit(world.X, world.y, transportboostingclassifier__sensitive_features=world.group)
    assert model.predict_proba(world.X).shape == (world.n, 2)


def test_the_notebook_says_what_was_fitted(world):
    assert "Fitted to 2 groups of sensitive_feature_0; ran all 30 rounds." in fitted(LIGHT, world)._repr_html_()


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parity_weight": -1.0}, "parity_weight must be a finite number at least 0"),
        ({"parity_weight": np.inf}, "parity_weight must be a finite number"),
        ({"repair": 1.5}, "repair must be"),
        ({"kind": "both"}, "kind must be one of 'continuous', 'discrete'"),
        ({"target": "middle"}, "target must be one of"),
        ({"smooth_groups": "yes"}, "smooth_groups must be"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be at least 1"),
        ({"validation_fraction": 0.9}, "validation_fraction must be"),
        ({"strength": 0.0}, "strength must be a finite number above 0"),
        ({"min_group_size": 0}, "min_group_size must be at least 1"),
        ({"small_groups": "merge"}, "small_groups must be one of"),
        ({"small_groups": "drop", "min_group_size": 10_000}, "at least 2 needed"),
        ({"grouping": "none"}, "grouping must be"),
    ],
)
def test_bad_options(world, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(LIGHT, world, **options)


def test_bad_rows(world):
    model = TransportBoostingClassifier(LIGHT)
    fit = {"sensitive_features": world.group}
    with pytest.raises(ValueError, match="needs sensitive_features"):
        model.fit(world.X, world.y, sensitive_features=None)
    with pytest.raises(ValueError, match="missing values in 1 rows"):
        model.fit(world.X, world.y, sensitive_features=np.r_[[None], world.group[1:]])
    with pytest.raises(ValueError, match="1 group"):
        model.fit(world.X, world.y, sensitive_features=np.zeros(world.n))
    with pytest.raises(ValueError, match="sensitive_features has 10 rows"):
        model.fit(world.X, world.y, sensitive_features=world.group[:10])
    with pytest.raises(ValueError, match="y has 10 rows"):
        model.fit(world.X, world.y[:10], **fit)
    with pytest.raises(ValueError, match="exactly two classes"):
        model.fit(world.X, np.arange(world.n) % 3, **fit)
    with pytest.raises(ValueError, match="A group has total sample_weight 0"):
        model.fit(world.X, world.y, **fit, sample_weight=(world.group == "low").astype(float))
    with pytest.raises(ValueError, match="One of the two classes has total sample_weight 0"):
        model.fit(world.X, world.y, **fit, sample_weight=world.y.astype(float))
    few = (world.X[:12], world.y[:12], world.group[:12])
    with pytest.raises(ValueError, match="finds no column to split 12 rows by"):
        model.fit(few[0], few[1], sensitive_features=few[2], eval_set=few)
    with pytest.raises(NotFittedError):
        model.predict(world.X)


def test_bad_rows_to_follow(world):
    def fit(eval_set):
        TransportBoostingClassifier(LIGHT).fit(world.X, world.y, sensitive_features=world.group, eval_set=eval_set)

    with pytest.raises(ValueError, match="a tuple of three"):
        fit((world.X, world.y))
    with pytest.raises(ValueError, match="other class labels"):
        fit((world.X, world.y + 1, world.group))
    with pytest.raises(ValueError, match="none of the 2 known groups"):
        fit((world.X, world.y, np.full(world.n, "somebody")))
    with pytest.raises(ValueError, match="y of eval_set has 5 rows"):
        fit((world.X, [0, 1, 0, 1, 1], world.group))


def test_a_column_of_groups_that_is_all_missing_says_so(world):
    with pytest.raises(ValueError, match="missing values in 1200 rows"):
        fitted(LIGHT, world).fit(world.X, world.y, sensitive_features=np.full(world.n, np.nan))


@BOTH
def test_a_group_whose_features_are_all_missing_is_one_more_leaf(trees, world):
    X = world.X.copy()
    X[world.group == "low"] = np.nan
    model = fitted(trees, world, X, parity_weight=0.5)
    scores = model.predict_proba(X)[:, 1]
    assert np.isfinite(scores).all()
    assert np.ptp(scores[world.group == "low"]) == 0.0
