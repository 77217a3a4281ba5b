"""The regressor with a repair: any base model, out-of-fold maps, units of y, and what it refuses."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from tests import worlds

import fairtransport as ft
from fairtransport.metrics import kolmogorov_smirnov_disparity

people = partial(worlds.people, spread=0.5, real=True)


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        make_pipeline(StandardScaler(), LinearRegression()),
        KNeighborsRegressor(),
        DecisionTreeRegressor(min_samples_leaf=5, random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_new_rows_are_as_close_as_chance_allows(estimator):
    X, y, group = people(1200)
    new, _, new_group = people(1200, 1)
    model = ft.QuantileRepairRegressor(estimator).fit(X, y, sensitive_features=group)
    raw, repaired = model.estimator_.predict(new), model.predict(new, sensitive_features=new_group)
    before, after = (ks_2samp(*(x[new_group == g] for g in "ab")).statistic for x in (raw, repaired))
    assert before > 0.2
    assert after < 0.11  # the 95 % quantile of two samples of 600 rows is .08, and the maps have noise, too


def test_criteria_and_strata():
    X, y, group = people(1200)
    region = np.random.default_rng(3).choice(["north", "south"], y.size)
    odds = ft.QuantileRepairRegressor(Ridge(), repair=ft.QuantileRepair(criterion="equalized_odds")).fit(
        X, y, sensitive_features=group
    )
    assert odds.score(X, y, sensitive_features=group) > 0.5
    within = ft.QuantileRepairRegressor(Ridge()).fit(X, y, sensitive_features=group, strata=region)
    moved = within.predict(X, sensitive_features=group, strata=region)
    for name in ("north", "south"):
        inside = region == name
        assert kolmogorov_smirnov_disparity(moved[inside], sensitive_features=group[inside]) < 0.06
    with pytest.raises(ValueError, match="pass strata"):
        within.predict(X, sensitive_features=group)


def test_starts_of_a_stream():
    X, y, group = people(2000)
    begun = ft.QuantileRepairRegressor(Ridge().fit(X, y), cv=None).partial_fit(X, sensitive_features=group)
    assert begun.repair_.grid_.n_bins == 4096
    first = ft.QuantileRepairRegressor(Ridge()).partial_fit(X, y, sensitive_features=group)
    assert first.repair_.grid_ is None
    with pytest.raises(ValueError, match="has no model yet: pass y"):
        ft.QuantileRepairRegressor(Ridge()).partial_fit(X, sensitive_features=group)
    with pytest.raises(ValueError, match="for demographic parity"):
        ft.QuantileRepairRegressor(Ridge(), repair=ft.QuantileRepair(criterion="equalized_odds")).partial_fit(
            X, y, sensitive_features=group
        )


def test_the_other_kind_of_model_is_named():
    X, y, group = people(100)
    for wrong in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
        with pytest.raises(TypeError, match=r"LogisticRegression is a classifier.*QuantileRepairClassifier"):
            ft.QuantileRepairRegressor(wrong).fit(X, y, sensitive_features=group)
    for wrong in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
        with pytest.raises(TypeError, match=r"Ridge is a regressor.*QuantileRepairRegressor"):
            ft.QuantileRepairClassifier(wrong).fit(X, y > 0, sensitive_features=group)
    with pytest.raises(TypeError, match="StandardScaler has none"):
        ft.QuantileRepairRegressor(StandardScaler()).fit(X, y, sensitive_features=group)


def test_other_input_that_cannot_be_used_raises():
    X, y, group = people(200)
    fitted = ft.QuantileRepairRegressor(Ridge()).fit(X, y, sensitive_features=group)
    opportunity = ft.QuantileRepairRegressor(Ridge(), repair=ft.QuantileRepair(criterion="equal_opportunity"))
    for kind, message, call, *data in (
        (ValueError, "which a regression does not have", opportunity.fit, X, y, group),
        (ValueError, "nothing to repair", ft.QuantileRepairRegressor(DummyRegressor(), cv=None).fit, X, y, group),
        (NotFittedError, "not fitted", ft.QuantileRepairRegressor(Ridge()).predict, X, group),
        (ValueError, "needs sensitive_features at prediction", fitted.predict, X, None),
        (ValueError, "none of the 2 known groups", fitted.predict, X[:1], ["c"]),
    ):
        with pytest.raises(kind, match=message):
            call(*data[:-1], sensitive_features=data[-1])
