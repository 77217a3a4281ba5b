import sys

import lightgbm
import pytest
import xgboost
from sklearn.linear_model import LogisticRegression

from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (LogisticRegression(), "LogisticRegression"),
        (lightgbm.LGBMClassifier, "the class LGBMClassifier"),
        (xgboost.XGBRFClassifier(), "XGBRFClassifier"),
        (xgboost.XGBRanker(), "XGBRanker"),
        (7, "int"),
    ],
)
def test_other_models_are_refused_by_name(other, name, data):
    with pytest.raises(TypeError, match=f"LGBMClassifier or an xgboost.XGBClassifier; got {name}. Other models can be"):
        TransportBoostingClassifier(other).fit(data.X, data.y, sensitive_features=data.group)


def test_a_model_of_the_other_task_is_refused_with_the_name_of_the_right_class(data):
    with pytest.raises(TypeError, match=r"got LGBMRegressor\. For regression use TransportBoostingRegressor"):
        TransportBoostingClassifier(lightgbm.LGBMRegressor()).fit(data.X, data.y, sensitive_features=data.group)
    with pytest.raises(TypeError, match=r"got XGBClassifier\. For classification use TransportBoostingClassifier"):
        TransportBoostingRegressor(xgboost.XGBClassifier()).fit(data.X, data.X[:, 0], sensitive_features=data.group)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        (lightgbm.LGBMClassifier(boosting_type="rf"), "forests .* take no custom objective"),
        (lightgbm.LGBMClassifier(is_unbalance=True), "use class_weight='balanced'"),
        (lightgbm.LGBMClassifier(scale_pos_weight=-1.0), "scale_pos_weight must be a finite number above 0"),
    ],
)
def test_settings_that_custom_objectives_do_not_support(trees, message, data):
    with pytest.raises(ValueError, match=message):
        TransportBoostingClassifier(trees).fit(data.X, data.y, sensitive_features=data.group)


def test_a_missing_library_raises_with_the_name_of_the_extra(monkeypatch, data):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r'Boosted trees need lightgbm: pip install "fairtransport\[boosting\]"'):
        TransportBoostingClassifier().fit(data.X, data.y, sensitive_features=data.group)
