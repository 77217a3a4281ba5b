import builtins
import sys

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.linear_model import LogisticRegression

from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.boosting._backends import LightGBM, Relay, XGBoost, default_estimator, library_of


def test_the_library_of_an_estimator():
    assert isinstance(library_of(lightgbm.LGBMClassifier()), LightGBM)
    assert isinstance(library_of(xgboost.XGBClassifier()), XGBoost)

    class Own(lightgbm.LGBMClassifier):
        pass

    assert isinstance(library_of(Own()), LightGBM)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (LogisticRegression(), "LogisticRegression"),
        (lightgbm.LGBMClassifier, "the class LGBMClassifier"),
        (lightgbm.LGBMRegressor(), "LGBMRegressor"),
        (xgboost.XGBRFClassifier(), "XGBRFClassifier"),
        (xgboost.XGBRanker(), "XGBRanker"),
        (7, "int"),
    ],
)
def test_other_models_are_refused_by_name(other, name, world):
    with pytest.raises(TypeError, match=f"LGBMClassifier or an xgboost.XGBClassifier; got {name}. Other models can be"):
        TransportBoostingClassifier(other).fit(world.X, world.y, sensitive_features=world.group)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        (lightgbm.LGBMClassifier(boosting_type="rf"), "forests .* take no objective"),
        (lightgbm.LGBMClassifier(is_unbalance=True), "use class_weight='balanced'"),
        (lightgbm.LGBMClassifier(scale_pos_weight=-1.0), "scale_pos_weight must be a finite number above 0"),
    ],
)
def test_settings_that_an_objective_cannot_have(trees, message, world):
    with pytest.raises(ValueError, match=message):
        TransportBoostingClassifier(trees).fit(world.X, world.y, sensitive_features=world.group)


def test_the_default_is_lightgbm():
    trees = default_estimator(3)
    assert (trees.n_estimators, trees.colsample_bytree, trees.random_state) == (200, 0.5, 3)
    library, own = TransportBoostingClassifier()._unfitted(3)
    assert isinstance(library, LightGBM)
    assert own.get_params() == trees.get_params()


def test_a_library_that_is_not_installed_is_named_with_the_extra(monkeypatch, world):
    def refuse(name, *rest, **options):
        if name.partition(".")[0] == "lightgbm":
            raise ImportError(name)
        return real(name, *rest, **options)

    real = builtins.__import__
    for name in [name for name in sys.modules if name.partition(".")[0] == "lightgbm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setattr("fairtransport.boosting._backends.import_module", refuse)
    with pytest.raises(ImportError, match=r'LightGBM is not installed: pip install "fairtransport\[boosting\]"'):
        TransportBoostingClassifier().fit(world.X, world.y, sensitive_features=world.group)


def test_a_relay_is_one_for_all_copies_until_it_is_cut():
    import copy  # noqa: PLC0415

    relay = Relay(lambda labels, margins, weights: (labels, margins, weights))
    other = copy.deepcopy(relay)
    assert other(1, 2) == (1, 2, None)
    relay.cut()
    with pytest.raises(RuntimeError, match="fit that again instead"):
        other(1, 2)


@pytest.mark.parametrize(
    "trees",
    [lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1), xgboost.XGBClassifier(n_estimators=5, n_jobs=1)],
)
def test_nothing_of_the_groups_stays_behind(trees, world):
    """A fitted model that is fitted again on its own is a plain one of its library."""
    model = TransportBoostingClassifier(trees, random_state=0).fit(world.X, world.y, sensitive_features=world.group)
    again = model.estimator_.fit(world.X, world.y)
    plain = type(trees)(**{**trees.get_params(), "random_state": 0}).fit(world.X, world.y)
    np.testing.assert_allclose(again.predict_proba(world.X), plain.predict_proba(world.X), atol=0.02)
