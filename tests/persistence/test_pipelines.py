"""Pipelines of scikit-learn in model files: the steps that people use, or the exact step that cannot be stored."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold, chi2
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    TargetEncoder,
)

import fairtransport as ft
from fairtransport.persistence import ModelFileError, pack_model, unpack_model
from fairtransport.tabular import RowScorer

N = 300
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 4)), columns=list("abcd"))
Y = (X["a"] + X["b"] ** 2 + RNG.normal(size=N) > 1).to_numpy().astype(int)
WORDS = pd.DataFrame({"job": RNG.choice(["cook", "clerk", "pilot"], N), "town": RNG.choice(["x", "y"], N)})
MIXED = pd.concat([X, WORDS], axis=1)

TRANSFORMERS = [
    MinMaxScaler(feature_range=(-1, 1), clip=True),
    MaxAbsScaler(),
    RobustScaler(quantile_range=(10.0, 90.0)),
    Normalizer(norm="l1"),
    Binarizer(threshold=0.5),
    PolynomialFeatures(degree=3, interaction_only=True),
    PolynomialFeatures(degree=(1, 2), include_bias=False),
    PowerTransformer(),
    PowerTransformer(standardize=False),
    QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    SelectKBest(k=2),
    SelectPercentile(percentile=50),
    VarianceThreshold(0.1),
    PCA(2, whiten=True),
    PCA(),
    TruncatedSVD(2, random_state=0),
    FunctionTransformer(),
    FeatureUnion([("pca", PCA(1)), ("scaled", MinMaxScaler()), ("left", "passthrough")]),
]


@pytest.mark.parametrize("step", TRANSFORMERS, ids=lambda step: str(step)[:30])
def test_transformers_survive(step, tmp_path):
    for rows in (X, X.to_numpy()):
        pipe = make_pipeline(step, LogisticRegression()).fit(rows, Y)
        path = ft.save(pipe, tmp_path / "model.ft")
        again = ft.load(path)
        assert isinstance(again, RowScorer)
        # A file has arrays in C order, PCA in Fortran order, and the rounding of BLAS depends on the order.
        np.testing.assert_allclose(again.predict_proba(rows), pipe.predict_proba(rows), rtol=1e-12)
        np.testing.assert_allclose(again.score_rows(rows).scores, pipe.predict_proba(rows)[:, 1], rtol=1e-12)
        assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("model", [Lasso(alpha=0.01), ElasticNet(alpha=0.01), Ridge()], ids=str)
def test_regressors_survive(model, tmp_path):
    again = ft.load(ft.save(model.fit(X, X["a"] * 2), tmp_path / "model.ft"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert (again.needs_groups_, again.feature_names_in_.tolist()) == (False, list("abcd"))


def encoded(model, numbers=("a", "b", "c", "d")):
    parts = [
        ("numbers", make_pipeline(SimpleImputer(), RobustScaler()), list(numbers)),
        ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["job", "town"]),
    ]
    return Pipeline([("columns", ColumnTransformer(parts)), ("model", model)])


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingClassifier(max_iter=5),
        encoded(HistGradientBoostingClassifier(max_iter=5)),
        HistGradientBoostingClassifier(max_iter=8, categorical_features=["job", "town"], min_samples_leaf=5),
        HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5),
        HistGradientBoostingRegressor(max_iter=5, categorical_features=["town"]),
    ],
    ids=["numbers", "encoded", "names of categories", "categories by type", "regressor"],
)
def test_histogram_trees_survive(model, tmp_path, request):
    rows = X if "numbers" in request.node.name else MIXED
    if "regressor" in request.node.name:
        rows = MIXED.drop(columns="job")
    if "by type" in request.node.name:
        rows = MIXED.astype({"job": "category", "town": "category"})
    rows = rows.copy()
    rows.loc[::9, "a"] = np.nan
    predict = "predict" if "regressor" in request.node.name else "predict_proba"
    model.fit(rows, Y)
    path = ft.save(model, tmp_path / "model.ft")
    again = ft.load(path)
    np.testing.assert_array_equal(getattr(again, predict)(rows), getattr(model, predict)(rows))
    if "job" in rows and "by type" not in request.node.name:
        strange = rows.assign(job="never seen")
        np.testing.assert_array_equal(getattr(again, predict)(strange), getattr(model, predict)(strange))
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()
    scores = again.score_rows(rows.assign(other=1)).scores
    np.testing.assert_array_equal(scores, getattr(model, predict)(rows).reshape(N, -1)[:, -1])


def test_steps_that_cannot_be_stored_are_named(tmp_path):
    inner = make_pipeline(KNNImputer(), RobustScaler())
    deep = Pipeline([("columns", ColumnTransformer([("numbers", inner, ["a", "b"])])), ("model", LogisticRegression())])
    with pytest.raises(TypeError, match=r"step 'knnimputer' of step 'numbers' of step 'columns' of the model is a"):
        ft.save(deep.fit(X, Y), tmp_path / "model.ft")


@pytest.mark.trust
def test_forged_transformers_are_refused():
    for step, attribute, value in (
        (MinMaxScaler(), "scale_", np.ones(3)),
        (PolynomialFeatures(), "_n_out_full", 7),
        (PolynomialFeatures(), "degree", 9),
        (QuantileTransformer(n_quantiles=5), "references_", np.linspace(0, 2, 5)),
        (PCA(2), "components_", np.ones((2, 3))),
        (SelectKBest(k=2), "scores_", np.ones(9)),
        (PowerTransformer(), "lambdas_", np.ones(2)),
    ):
        fitted = step.fit(X, Y)
        setattr(fitted, attribute, value)
        with pytest.raises((ModelFileError, TypeError)):
            unpack_model(pack_model(fitted)[0])


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_pandas_categories_of_boosted_trees_are_known_after_loading(library, tmp_path):
    module = pytest.importorskip(library)
    rows = MIXED[["a", "job", "b", "town"]].astype({"job": "category", "town": "category"})
    options = {"lightgbm": {"verbose": -1}, "xgboost": {"enable_categorical": True}}[library]
    trees = {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier"}[library]
    model = getattr(module, trees)(n_estimators=5, n_jobs=1, **options).fit(rows, Y)
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    kinds = {column.name: column.categories for column in again.columns}
    assert kinds == {"a": None, "job": ("clerk", "cook", "pilot"), "b": None, "town": ("x", "y")}
    text = {name: rows[name].astype(str).to_numpy(dtype=object) for name in rows}
    np.testing.assert_allclose(again.score_rows(text).scores, model.predict_proba(rows)[:, 1], rtol=1e-12)


def test_what_computed_the_scores_of_a_selection_is_not_needed(tmp_path):
    pipe = make_pipeline(MinMaxScaler(), SelectKBest(chi2, k=2), LogisticRegression()).fit(X, Y)
    again = ft.load(ft.save(pipe, tmp_path / "model.ft"))
    np.testing.assert_array_equal(again.predict_proba(X), pipe.predict_proba(X))


def test_target_encoding_survives(tmp_path):
    pipe = make_pipeline(TargetEncoder(cv=3), LogisticRegression()).fit(WORDS, Y)
    again = ft.load(ft.save(pipe, tmp_path / "model.ft"))
    strange = WORDS.assign(town="nowhere")
    np.testing.assert_array_equal(again.predict_proba(strange), pipe.predict_proba(strange))
