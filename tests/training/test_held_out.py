"""Repairs say what held-out rows show, and do no harm."""

import dataclasses
import re
import warnings

import lightgbm
import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler, TargetEncoder
from tests.worlds import people

import fairtransport as ft
from fairtransport.metrics import rank_disparity
from fairtransport.repair.blind import _fitting
from fairtransport.training.evaluation import share_kept
from fairtransport.training.outcome import held_out_change

FOREST = RandomForestClassifier(40, random_state=0)
MEMORIES = {
    "forest": FOREST,
    "boosted": lightgbm.LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1),
    "neighbours": KNeighborsClassifier(5),
}


def world(n, seed, **options):
    return people(n, seed, groups=("a", "b", "c"), shift=(0.5, 0.5, 0.0, 0.0), coef=(1.0, 0.5, 0.5, 0.0), **options)


def measured(model, X, y, group):
    scores = model.predict_proba(X, sensitive_features=group)[:, 1]
    return np.mean((scores > 0.5) != y), rank_disparity(scores, sensitive_features=group)


@pytest.mark.parametrize("name", MEMORIES)
def test_a_model_that_memorises_is_repaired_by_scores_of_rows_it_has_not_seen(name):
    X, y, group = world(1500, 0)
    new = world(6000, 1)
    found = {}
    for cv in ("auto", None):
        model = ft.QuantileRepairClassifier(MEMORIES[name], cv=cv).fit(X, y, sensitive_features=group)
        found[cv] = measured(model, *new)
    plain = measured(model.set_params(amount=0.0), *new)
    assert found["auto"][1] < min(0.7 * plain[1], found[None][1] + 0.01)
    assert found["auto"][0] < found[None][0] + 0.01


@pytest.mark.parametrize(
    ("inner", "in_sample"),
    [
        (LogisticRegression(), True),
        (make_pipeline(StandardScaler(), LogisticRegression()), True),
        (
            make_pipeline(
                KBinsDiscretizer(5, encode="ordinal"), TargetEncoder(target_type="binary"), LogisticRegression()
            ),
            False,
        ),
        (FOREST, False),
    ],
)
def test_scores_of_the_rows_of_fit_are_used_only_where_the_model_cannot_memorise(inner, in_sample):
    X, y, group = world(600, 0)
    automatic, own = (
        ft.QuantileRepairClassifier(inner, cv=cv).fit(X, y, sensitive_features=group) for cv in ("auto", None)
    )
    same = np.array_equal(*(m.predict_proba(X, sensitive_features=group) for m in (automatic, own)))
    assert same is in_sample
    few = slice(150)  # fewer than 50 rows for each weight
    automatic, own = (
        ft.QuantileRepairClassifier(inner, cv=cv).fit(X[few], y[few], sensitive_features=group[few])
        for cv in ("auto", None)
    )
    assert not np.array_equal(*(m.predict_proba(X, sensitive_features=group) for m in (automatic, own)))


def test_what_was_kept_is_that_of_new_rows():
    X, y, group = world(4000, 0, real=True)
    new, y_new, group_new = world(20_000, 1, real=True)
    model = ft.QuantileRepairRegressor(LinearRegression()).fit(X, y, sensitive_features=group)
    after = r2_score(y_new, model.predict(new, sensitive_features=group_new))
    before = r2_score(y_new, model.estimator_.predict(new))
    assert model.information_kept_ == pytest.approx(after / before, abs=0.02)
    blind = ft.BlindRepairRegressor(LinearRegression()).fit(X, y, sensitive_features=group)
    assert blind.information_kept_ == pytest.approx(r2_score(y_new, blind.predict(new)) / before, abs=0.1)
    assert blind.information_kept_ < model.information_kept_ < 1.0


@pytest.mark.parametrize(
    ("before", "after", "kept"), [(0.7, 0.7, 1.0), (0.7, 0.85, 0.5), (0.7, 1.3, -1.0), (1.2, 1.0, 1.0)]
)
def test_the_share_that_is_kept(before, after, kept):
    assert share_kept(before, after) == pytest.approx(kept)


def test_a_repair_that_does_not_help_says_so():
    X, y, group = world(1500, 0)
    with pytest.warns(
        ft.FairnessWarning, match="does not help: on 1,500 rows that it was not fitted to, the mean rank"
    ):
        ft.QuantileRepairClassifier(KNeighborsClassifier(1)).fit(X, y, sensitive_features=group)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)


def test_little_that_is_kept_is_said():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=3000)
    X = group[:, None] + 0.3 * rng.normal(size=(3000, 1))
    y = X[:, 0] + 0.5 * rng.normal(size=3000)
    blind = ft.BlindRepairRegressor(LinearRegression(), slack=0.01)  # automatic, it would end where half is kept
    for model in (ft.QuantileRepairRegressor(LinearRegression()), blind):
        with pytest.warns(ft.FairnessWarning, match=r"keeps \d+% of what the plain model explains"):
            model.fit(X, y, sensitive_features=group)
        assert model.information_kept_ < 0.5
    assert ft.BlindRepairRegressor(LinearRegression()).fit(X, y, sensitive_features=group).information_kept_ > 0.5


def test_blind_repair_that_would_harm_is_not_done(monkeypatch):
    def harmful(before, after, *rest, **options):
        change = held_out_change(before, after, *rest, **options)
        return dataclasses.replace(change, rank_disparity=(0.05, 0.3), error=(0.2, 0.4))

    monkeypatch.setattr(_fitting, "held_out_change", harmful)
    X, y, group = world(600, 0)
    with pytest.warns(ft.FairnessWarning, match="Blind repair does not help: .*The plain model is kept"):
        model = ft.BlindRepairClassifier(LogisticRegression(), LogisticRegression()).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(model.predict_proba(X), model.estimator_.predict_proba(X), atol=1e-9)
    assert model.information_kept_ == 1.0
    with pytest.warns(ft.FairnessWarning, match="Blind repair does not help: (?!.*The plain model is kept)"):  # obeyed
        model.set_params(slack=0.02).fit(X, y, sensitive_features=group)
    assert np.abs(model.predict_proba(X) - model.estimator_.predict_proba(X)).max() > 0.01


def test_a_constant_model_is_named():
    X, y, group = world(300, 0)
    with pytest.raises(ValueError, match="All 300 scores are equal"):
        ft.QuantileRepairClassifier(DummyClassifier()).fit(X, y, sensitive_features=group)


def test_a_group_of_three_rows_is_not_judged():
    X, y, group = world(1500, 0)
    few = np.where(np.arange(1500) < 3, "few", group)
    shown = {}
    for name, groups in (("all", group), ("few", few)):
        with pytest.warns(ft.FairnessWarning, match="does not help") as caught:
            ft.QuantileRepairClassifier(KNeighborsClassifier(1)).fit(X, y, sensitive_features=groups)
        shown[name] = [float(x) for x in re.findall(r"\d\.\d{3}", str(caught[-1].message))[:4]]
    np.testing.assert_allclose(shown["few"], shown["all"], atol=0.02)


def test_wrong_folds_are_named():
    X, y, group = world(300, 0)
    with pytest.raises(ValueError, match="cv must be 'auto', a number of folds"):
        ft.QuantileRepairClassifier(FOREST, cv="five").fit(X, y, sensitive_features=group)
    with pytest.raises(ValueError, match="hold out every row once"):
        ft.QuantileRepairClassifier(FOREST, cv=[(np.arange(100), np.arange(100, 200))]).fit(
            X, y, sensitive_features=group
        )
