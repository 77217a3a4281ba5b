"""One way to score rows, whatever the model: the scores are those of the model's own predictions, row by row.

Cells may be text, rows that cannot be scored are set aside with a reason, and no reason quotes a value.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import fairtransport as ft
from fairtransport import QuantileRepair
from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor
from fairtransport.tabular import RowScorer, TableModel

lightgbm = pytest.importorskip("lightgbm")
N = 400
RNG = np.random.default_rng(0)
SEX = RNG.choice(["F", "M"], N)
FRAME = pd.DataFrame(
    {
        "hours": RNG.normal(35, 5, N) + 2 * (SEX == "M"),
        "age": RNG.integers(20, 60, N).astype(float),
        "job": RNG.choice(["cook", "clerk", "pilot"], N),
        "grade": RNG.choice([1, 2, 3], N),
    }
)
NUMBERS = FRAME[["hours", "age"]]
Y = (FRAME["hours"] + 3 * (FRAME["job"] == "pilot") + RNG.normal(0, 4, N) > 37).to_numpy().astype(int)
PAY = 2 * FRAME["hours"].to_numpy() + RNG.normal(0, 3, N)
GROUPS = pd.DataFrame({"sex": SEX})
TABLE = FRAME.assign(sex=SEX)
SMALL_TREES = {"n_estimators": 5, "num_leaves": 4, "verbose": -1, "n_jobs": 1}


def encoder(**options):
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["hours", "age"]),
            ("job", OneHotEncoder(**options), ["job"]),
            ("grade", OrdinalEncoder(), ["grade"]),
        ]
    )


def made():
    """Yield a name, a fitted model, its features, and the options of its predictions."""
    with_groups = {"sensitive_features": GROUPS}
    cot = ft.TransportClassifier(parity_weight=0.5).fit(NUMBERS, Y, **with_groups)
    yield "cot", cot, NUMBERS, {}
    aware = ft.TransportClassifier(parity_weight=0.5, group_specific=True).fit(NUMBERS, Y, **with_groups)
    yield "aware cot", aware, NUMBERS, with_groups
    dot = ft.TransportRegressor(distance="discrete", parity_weight=0.5).fit(NUMBERS, PAY, **with_groups)
    yield "dot regressor", dot, NUMBERS, {}
    pipeline = make_pipeline(encoder(), LogisticRegression(max_iter=1000)).fit(FRAME, Y)
    yield "pipeline", pipeline, FRAME, {}
    fair = make_pipeline(encoder(), ft.TransportClassifier(parity_weight=0.5, group_specific=True))
    fair.fit(FRAME, Y, transportclassifier__sensitive_features=GROUPS)
    yield "aware pipeline", fair, FRAME, with_groups
    repair = ft.QuantileRepairClassifier(make_pipeline(encoder(), LogisticRegression(max_iter=1000)))
    yield "repair", repair.fit(FRAME, Y, **with_groups), FRAME, with_groups
    regressor = ft.QuantileRepairRegressor(Ridge()).fit(NUMBERS, PAY, **with_groups)
    yield "repair regressor", regressor, NUMBERS, with_groups
    blind = ft.BlindRepairClassifier(LogisticRegression(), cv=2)
    yield "blind", blind.fit(NUMBERS, Y, **with_groups), NUMBERS, {}
    trees = TransportBoostingClassifier(lightgbm.LGBMClassifier(**SMALL_TREES), parity_weight=0.0, random_state=0)
    yield "trees", trees.fit(NUMBERS, Y, **with_groups), NUMBERS, {}
    repaired = TransportBoostingRegressor(
        lightgbm.LGBMRegressor(**SMALL_TREES), parity_weight=0.0, repair=QuantileRepair(), random_state=0
    )
    yield "repaired trees", repaired.fit(NUMBERS, PAY, **with_groups), NUMBERS, with_groups
    words = FRAME.astype({"job": "category"})
    categories = TransportBoostingClassifier(lightgbm.LGBMClassifier(**SMALL_TREES), parity_weight=0.0, random_state=0)
    yield "trees of categories", categories.fit(words, Y, **with_groups), words, {}
    histograms = HistGradientBoostingClassifier(max_iter=5, categorical_features=["job"]).fit(FRAME, Y)
    yield "histogram trees", histograms, FRAME, {}


FITTED = {name: parts for name, *parts in made()}
MODELS = [pytest.param(*parts, id=name) for name, parts in FITTED.items()]


def expected_scores(model, X, options):
    predict = getattr(model, "predict_proba", None)
    return model.predict(X, **options) if predict is None else predict(X, **options)[:, 1]


@pytest.mark.parametrize(("model", "X", "options"), MODELS)
def test_scores_are_those_of_the_model_whatever_the_type_of_the_cells(model, X, options):
    scorer = RowScorer(model)
    expected = expected_scores(model, X, options)
    assert scorer.needs_groups_ == bool(options)
    assert scorer.sensitive_columns == (("sex",) if options else ())
    assert scorer.feature_names_in_.tolist() == list(X)
    assert {column.name for column in scorer.columns} == {*X, *scorer.sensitive_columns}
    text = pa.table({name: [repr(v) if isinstance(v, float) else str(v) for v in TABLE[name]] for name in TABLE})
    for table in (TABLE, TABLE.sample(frac=1.0, axis=1, random_state=0), text):
        result = scorer.score_rows(table)
        assert not result.reasons
        np.testing.assert_allclose(result.scores, expected, rtol=1e-12)
    alone = [scorer.score_rows(TABLE[k : k + 1]).scores[0] for k in range(3)]
    np.testing.assert_allclose(alone, expected[:3], rtol=1e-12)
    with pytest.raises(ValueError, match="no column 'hours', which the model needs"):
        scorer.score_rows(TABLE.drop(columns="hours"))


@pytest.mark.parametrize(("model", "X", "options"), MODELS)
def test_rows_that_cannot_be_scored_are_set_aside_and_change_no_other(model, X, options):
    scorer = RowScorer(model)
    before = scorer.score_rows(TABLE).scores
    spoiled = TABLE.astype(dict.fromkeys(TABLE, object))
    spoiled.loc[3, "hours"] = "secret"
    spoiled.loc[5, "hours"] = None
    spoiled.loc[7, "job"] = "secret"
    spoiled.loc[9, "sex"] = "secret"
    spoiled.loc[11, "sex"] = None
    result = scorer.score_rows(spoiled)
    expected = {3: "column 'hours' is not a number"}
    if options:
        expected |= {9: "unknown group in 'sex'", 11: "no group in 'sex'"}
    if "job" not in X and "Boosting" not in type(model).__name__:
        expected[5] = "column 'hours' has no value"  # nothing imputes it, and no tree has a branch for it
    if "job" in X and "Boosting" not in type(model).__name__:
        expected[7] = "column 'job' has an unknown category"
    assert result.reasons == dict(sorted(expected.items()))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(result.scores)), sorted(expected))
    kept = np.setdiff1d(np.arange(N), [3, 5, 7, 9, 11])
    np.testing.assert_allclose(result.scores[kept], before[kept], rtol=1e-12)
    assert "secret" not in str(result.reasons)


def test_a_model_fitted_without_names_takes_matrices_and_named_columns():
    model = LogisticRegression().fit(NUMBERS.to_numpy(), Y)
    expected = model.predict_proba(NUMBERS.to_numpy())[:, 1]
    np.testing.assert_allclose(RowScorer(model).score_rows(NUMBERS.to_numpy()).scores, expected)
    named = RowScorer(model, features=["hours", "age"])
    np.testing.assert_allclose(named.score_rows(TABLE).scores, expected)
    with pytest.raises(ValueError, match="2 features"):
        RowScorer(model, features=["hours"])


def test_a_repair_of_scores_takes_a_column_of_scores():
    scores = RNG.uniform(size=N)
    repair = ft.QuantileRepair().fit(scores, sensitive_features=GROUPS)
    table = {"risk": [*scores[:3], 2.0, None], "sex": [*SEX[:3], "F", "F"]}
    result = RowScorer(repair, score="risk").score_rows(table)
    np.testing.assert_allclose(result.scores[:3], repair.transform(scores[:3], sensitive_features=GROUPS[:3]))
    assert result.reasons == {3: "column 'risk' is outside the range of scores", 4: "column 'risk' has no value"}
    of_table = ft.repair.TableRepair(score="risk", sensitive_features="sex").fit(
        pd.DataFrame({"risk": scores, "sex": SEX})
    )
    expected = of_table.transform(pd.DataFrame({"risk": scores, "sex": SEX}))["repaired"]
    np.testing.assert_allclose(RowScorer(of_table).score_rows({"risk": scores, "sex": SEX}).scores, expected, atol=1e-9)


def test_strata_are_needed_where_a_repair_was_fitted_within_them():
    model = ft.QuantileRepairClassifier(LogisticRegression())
    model.fit(NUMBERS, Y, sensitive_features=GROUPS, strata=FRAME[["grade", "hours"]])
    scorer = RowScorer(model)
    assert scorer.strata_columns == ("grade", "hours")
    expected = model.predict_proba(NUMBERS, sensitive_features=GROUPS, strata=FRAME[["grade", "hours"]])[:, 1]
    np.testing.assert_allclose(scorer.score_rows(TABLE).scores, expected)
    result = scorer.score_rows(TABLE[:4].assign(grade=["1", "2", "9", None]))
    assert {*result.reasons.values()} == {"unknown stratum in 'grade', 'hours'"}
    assert {2, 3} <= {*result.reasons}


def test_cells_of_another_kind_have_a_reason_and_unseen_ones_are_counted():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(FRAME["age"], "D")
    table = TABLE.assign(hired=Y, member=FRAME["age"] > 40, day=days)
    repair = ft.QuantileRepairClassifier(LogisticRegression(max_iter=1000))
    scorer = RowScorer(TableModel(repair, label="hired", sensitive_features=["member"], aware=True).fit(table))
    rows = {name: [*table[name][:1].astype(object)] * 8 for name in table}
    rows["age"][1], rows["day"][2], rows["job"][3] = "secret", "secret", "secret"
    flag = int(rows["member"][0])
    rows["member"][4:] = [flag, float(flag), str(flag), str(bool(flag)).upper()]
    result = scorer.score_rows(rows)
    assert result.reasons == {1: "column 'age' is not a number", 2: "column 'day' is not a date such as 2024-12-31"}
    assert [reason.kind for reason in result.reasons.values()] == ["not a number", "not readable"]
    assert (result.counts, result.replaced["unseen category", "job"].tolist()) == ({"unseen category": {"job": 1}}, [3])
    assert len({*result.scores[[0, 4, 5, 6, 7]]}) == 1  # a boolean in any writing
    pipeline = RowScorer(make_pipeline(encoder(handle_unknown="ignore"), LogisticRegression()).fit(FRAME, Y))
    assert pipeline.score_rows(rows).counts == {"unseen category": {"job": 1}}
    table.loc[7, "age"] = None
    odd = table.astype({"age": object})
    odd.loc[7, "age"] = "many"  # such a cell was missing in training, and is so now
    kept = TableModel(LogisticRegression(max_iter=1000), label="hired", sensitive_features=["sex"]).fit(odd)
    assert kept.score_rows(rows).counts["unreadable"] == {"age": 1}


def test_a_table_model_predicts():
    table = TABLE.assign(hired=np.where(Y == 1, "yes", "no"))
    model = TableModel(LogisticRegression(max_iter=1000), label="hired", sensitive_features=["sex"]).fit(table)
    scores = RowScorer(model).score_rows(TABLE).scores
    np.testing.assert_array_equal(model.predict_proba(TABLE)[:, 1], scores)
    np.testing.assert_array_equal(model.predict(TABLE), np.where(scores > 0.5, "yes", "no"))
    assert model.feature_names_in_.tolist() == list(FRAME)
    assert [column.kind for column in RowScorer(model).columns] == ["number", "number", "text", "number"]
