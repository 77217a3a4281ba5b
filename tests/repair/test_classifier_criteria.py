"""Classifiers with a repair for a criterion: maps of out-of-fold scores, weights, strata and draws."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tests import worlds

import fairtransport as ft

from .test_criteria import distance

world = partial(worlds.people, shift=(0.8, 0.0, 0.3), coef=(1.2, 0.8, 0.0))


def test_the_classifier_passes_its_labels_to_the_repair():
    X, y, group = world(3000, 0)
    base = LogisticRegression().fit(X, y)
    for options in ({"criterion": "equal_opportunity"}, {"criterion": "equalized_odds", "randomize": True}):
        model = ft.QuantileRepairClassifier(LogisticRegression(), ft.QuantileRepair(**options))
        model.fit(X, np.where(y == 1, "yes", "no"), sensitive_features=group)
        alone = ft.QuantileRepair(**options).fit(base.predict_proba(X)[:, 1], y, sensitive_features=group)
        found = model.predict_proba(X, sensitive_features=group)[:, 1]
        np.testing.assert_allclose(
            found, alone.transform(base.predict_proba(X)[:, 1], sensitive_features=group), atol=1e-9
        )
    assert set(model.predict(X, sensitive_features=group)) == {"no", "yes"}
    assert np.array_equal(model.predict(X, sensitive_features=group), model.predict(X, sensitive_features=group))
    expected = model.predict_proba(X, sensitive_features=group, expected=True)[:, 1]
    assert np.abs(expected - found).max() > 0.1
    by_key = model.predict_proba(X, sensitive_features=group, keys=np.arange(3000))
    assert not np.allclose(by_key[:, 1], found)


def test_what_cannot_be_fitted_raises_before_the_classifier_is_fitted():
    X, y, group = world(200, 4)

    class Unfitted(LogisticRegression):
        def fit(self, *arguments, **options):
            raise AssertionError

    for options, strata, message in (
        ({"criterion": "odds"}, None, "criterion"),
        ({"randomize": True}, None, "randomize=True is for"),
        ({}, group, "nothing to compare"),
        ({}, group[1:], "strata has 199"),
        ({"criterion": "equalized_odds", "randomize": True}, y, "does not take strata"),
    ):
        model = ft.QuantileRepairClassifier(Unfitted(), ft.QuantileRepair(**options))
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, sensitive_features=group, strata=strata)


def test_tables_are_repaired_by_label_and_within_strata():
    pl = pytest.importorskip("polars")
    X, y, group = world(3000, 5)
    scores = np.round(expit(X[:, 0]) * 1024) / 1024
    region = np.where(X[:, 1] > 0.5, "north", "south")
    table = pl.DataFrame({"s": scores, "sex": group, "region": region, "y": y})
    columns = {"score": "s", "sensitive_features": "sex", "n_bins": 1024}
    for criterion in ("equal_opportunity", "equalized_odds"):
        repair = ft.repair.TableRepair(ft.QuantileRepair(criterion=criterion), label="y", **columns).fit(table)
        arrays = ft.QuantileRepair(criterion=criterion).fit(scores, y, sensitive_features=group)
        found = repair.transform(table.drop("y"))["repaired"].to_numpy()
        if criterion == "equal_opportunity":
            np.testing.assert_allclose(found, arrays.transform(scores, sensitive_features=group), atol=1e-9)
        assert distance(found, y, group, 1) < 0.02
        with pytest.raises(ValueError, match="name their column with label="):
            ft.repair.TableRepair(ft.QuantileRepair(criterion=criterion), **columns).fit(table)
    repair = ft.repair.TableRepair(strata="region", **columns).fit(table)
    arrays = ft.QuantileRepair().fit(scores, sensitive_features=group, strata=region)
    found = repair.transform(table)["repaired"].to_numpy()
    np.testing.assert_allclose(found, arrays.transform(scores, sensitive_features=group, strata=region), atol=1e-9)
    np.testing.assert_allclose(
        repair.repair_.transform(scores, sensitive_features=group, strata={"region": region}), found, atol=1e-9
    )
    unseen = table.head(3).with_columns(region=pl.lit("east"))
    assert repair.transform(unseen)["repaired"].null_count() == 3
    assert repair.check(unseen)["unknown group"] == 3
    renamed = table.rename({"region": "area"})
    assert np.array_equal(repair.transform(renamed, strata="area")["repaired"].to_numpy(), found)
    randomised = ft.QuantileRepair(criterion="equalized_odds", randomize=True)
    with pytest.raises(ValueError, match="randomised repair has no lookup table"):
        ft.repair.TableRepair(randomised, label="y", **columns).fit(table).transform(table)
