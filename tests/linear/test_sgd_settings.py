"""`SgdSettings`: a value that estimators take as ``solver``, as scikit-learn's tools expect of a parameter."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import fairtransport as ft
from fairtransport.linear import ContinuousTransportClassifier, DiscreteTransportClassifier, SgdSettings

from .tables import aware_table

BOTH = [ContinuousTransportClassifier, DiscreteTransportClassifier]
SHORT = SgdSettings(n_updates=50, batch_size=10, random_state=0)
X, Y, G = aware_table(300)

pytestmark = pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")


@pytest.mark.parametrize("cls", BOTH)
def test_the_word_stands_for_the_default_settings(cls):
    one = cls(solver="sgd").make_trainer(X, Y, sensitive_features=G)
    other = cls(solver=SgdSettings()).make_trainer(X, Y, sensitive_features=G)
    assert (one.budget, one.batch_size) == (other.budget, other.batch_size)
    assert one.budget == 20_000
    assert one.batch_size == (100 if cls is ContinuousTransportClassifier else 200)


@pytest.mark.parametrize("cls", BOTH)
def test_clones_and_parameters(cls):
    model = cls(solver=SHORT)
    assert clone(model).solver == SHORT
    assert model.get_params()["solver"] is SHORT
    longer = replace(SHORT, n_updates=60)
    model.set_params(solver=longer).fit(X, Y, sensitive_features=G)
    assert model.n_iter_ == 60
    np.testing.assert_array_equal(clone(model).fit(X, Y, sensitive_features=G).coef_, model.coef_)
    assert "n_updates=60" in repr(model)
    assert "solver" not in repr(cls())


def test_a_grid_search_over_settings():
    class Grouped(DiscreteTransportClassifier):
        def fit(self, X, y):
            return super().fit(X, y, sensitive_features=np.where(X[:, 0] > 0, "a", "b"))

    grid = {"solver": ["lbfgs", SHORT, replace(SHORT, batch_size=20)]}
    search = GridSearchCV(Grouped(parity_weight=1.0), grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_["solver"] in grid["solver"]


def test_model_files_keep_the_settings(tmp_path):
    settings = replace(SHORT, dual_step=0.5, pairs="all", average=False, parameter_step=0.01)
    model = ContinuousTransportClassifier(solver=settings).fit(X, Y, sensitive_features=G)
    ft.save(model, tmp_path / "model.ft")
    assert ft.load(tmp_path / "model.ft").solver == settings
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - as joblib does


def test_settings_do_not_change():
    with pytest.raises(FrozenInstanceError):
        SHORT.n_updates = 5


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"pairs": "few"}, ValueError, "pairs must be one of 'matched', 'all'; got 'few'"),
        ({"average": 1}, TypeError, "average must be True or False"),
        ({"n_updates": 1.5}, TypeError, "n_updates must be a whole number"),
        ({"dual_step": "auto"}, TypeError, "dual_step must be a number"),
        ({"random_state": "x"}, ValueError, "random_state must be None, a whole number"),
    ],
)
def test_wrong_settings_name_what_is_allowed(change, error, words):
    with pytest.raises(error, match=words):
        SgdSettings(**change)
