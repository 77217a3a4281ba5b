"""ft.save and ft.load: the model that was saved is the model that is loaded."""

import copy
import json
import pickle
import re
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, SplineTransformer, StandardScaler

import fairtransport as ft
from fairtransport.persistence import ModelFileError, ModelFileWarning, Recipe, add_recipe, describe, pack_model
from fairtransport.persistence.recipes import _checks, _registry
from fairtransport.tabular import RowScorer

from .models import EXACT, SUMMED_UP, cot, fitted, people, preprocessing, scores_of, table


def plain(params):
    """Parameters as text, without where in memory anything lies."""
    return {name: re.sub(r" at 0x\w+", "", repr(value)) for name, value in params.items()}


def arrays_in(path):
    with zipfile.ZipFile(path) as archive:
        return {name: np.load(archive.open(name)) for name in archive.namelist() if name.endswith(".npy")}


@pytest.mark.parametrize("name", [*EXACT, *SUMMED_UP])
def test_predictions_parameters_and_bytes_survive(name, tmp_path):
    model, X, group = fitted(name)
    path = ft.save(model, tmp_path / "model.ft")
    again = ft.load(path)
    before, after = scores_of(model, X, group), scores_of(again, X, group)
    if name in EXACT:
        np.testing.assert_array_equal(after, before)
    else:
        changes = describe(path)["changes"]
        largest = max(change["largest"] for path, change in changes.items() if path.endswith(".maps_"))
        assert 0 < np.abs(after - before).max() <= largest + 1e-15
        assert np.abs(after - before).mean() < 0.005
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()
    again = saved_model(again)
    target = getattr(getattr(model, "repair", None) or model, "target", None)
    if target is None or isinstance(target, str):  # given scores are summed up
        assert plain(again.get_params()) == plain(model.get_params())
    assert type(again) is type(model)


def saved_model(loaded):
    """The model itself: what has no score_rows of its own is loaded within a RowScorer."""
    return loaded.estimator_ if isinstance(loaded, RowScorer) else loaded


@pytest.mark.parametrize("name", SUMMED_UP)
def test_people_per_point_1_keeps_repairs_exactly(name, tmp_path):
    model, X, group = fitted(name)
    again = ft.load(ft.save(model, tmp_path / "model.ft", people_per_point=1))
    np.testing.assert_array_equal(scores_of(again, X, group), scores_of(model, X, group))
    assert "people_per_point=1" in describe(tmp_path / "model.ft")["reveals"]


def test_fitted_attributes_survive(tmp_path):
    model, _, _ = fitted("COT")
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    assert again.groups_ == model.groups_
    assert (again.outcome_, again.n_iter_) == (model.outcome_, model.n_iter_)
    assert set(again.history_) == set(model.history_)
    np.testing.assert_array_equal(again.history_["disparity"], model.history_["disparity"])
    points = np.linspace(0, 1, 9)
    for label in ("Female", "Male"):
        np.testing.assert_array_equal(again.duals_.of_group(label, points), model.duals_.of_group(label, points))
        np.testing.assert_array_equal(again.duals_.of_target(label, points), model.duals_.of_target(label, points))
    np.testing.assert_array_equal(again.initial_estimator_.coef_, model.initial_estimator_.coef_)
    assert again.target_.shape == model.target_.shape
    assert 0 < np.abs(again.target_ - model.target_).mean() < 0.003


def test_a_loaded_model_is_a_model(tmp_path):
    model, X, group = fitted("COT")
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    for copied in (copy.deepcopy(again), pickle.loads(pickle.dumps(again))):  # noqa: S301 - made here
        assert ft.save(copied, tmp_path / "copy.ft").read_bytes() == (tmp_path / "model.ft").read_bytes()
    _, y, _ = people()
    assert sklearn.clone(again).fit(X, y, sensitive_features=group).coef_.tolist() == model.coef_.tolist()
    again.fit(X, y, sensitive_features=group)  # what it was loaded with does not pass for what it learned
    assert ft.save(again, tmp_path / "new.ft").read_bytes() == (tmp_path / "model.ft").read_bytes()


def test_metadata_requests_and_output_survive(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        frame, y, group = table()
        step = cot().set_fit_request(sensitive_features="group").set_predict_proba_request(sensitive_features=True)
        pipe = Pipeline([("table", preprocessing()), ("model", step)]).fit(frame, y, group=group)
        again = saved_model(ft.load(ft.save(pipe, tmp_path / "model.ft")))
        routing = again[-1].get_metadata_routing()
        assert routing.fit.requests["sensitive_features"] == "group"
        assert routing.predict_proba.requests["sensitive_features"] is True
        again.fit(frame, y, group=group)
    scaler = StandardScaler().set_output(transform="pandas").fit(frame[["hours"]])
    assert isinstance(ft.load(ft.save(scaler, tmp_path / "s.ft")).transform(frame[["hours"]]), pd.DataFrame)


@pytest.mark.parametrize("name", SUMMED_UP)
def test_no_score_of_a_person_is_in_the_file(name, tmp_path):
    model, _, _ = fitted(name)
    model_in_it = getattr(model, "estimator_", model) if name == "repair of a raw table" else model
    repair = model if isinstance(model, ft.QuantileRepair) else model_in_it.repair_
    secret = np.unique(np.concatenate([carry.knots for carry in repair.maps_]))
    if name == "repair of a table":  # nodes of a grid are nobody's score
        return
    path = ft.save(model, tmp_path / "model.ft")
    assert secret.size > 500
    for stored in arrays_in(path).values():
        if stored.dtype.kind == "f":
            shared = np.intersect1d(stored, secret)
            assert shared.size < 0.01 * secret.size  # what rounding may make equal
    exact = arrays_in(ft.save(model, tmp_path / "exact.ft", people_per_point=1))
    assert any(np.isin(secret, stored).mean() > 0.4 for stored in exact.values() if stored.dtype.kind == "f")


@pytest.mark.parametrize("name", ["COT", "DOT", "COT of each group"])
def test_no_score_of_a_person_is_in_the_target(name, tmp_path):
    model, X, _ = fitted(name)
    secret = np.unique(np.append(model.initial_estimator_.predict_proba(X)[:, 1], model.target_))
    stored = arrays_in(ft.save(model, tmp_path / "model.ft"))["arrays/model.target_.npy"]
    assert np.intersect1d(stored, secret).size < 5


def test_the_file_says_what_it_reveals(tmp_path):
    description = describe(ft.save(fitted("repair")[0], tmp_path / "model.ft"))
    assert description["class"] == "fairtransport.QuantileRepair"
    assert description["people_per_point"] == 5
    assert "at least 5 training rows" in description["reveals"]
    assert description["made_by"]["fairtransport"] == ft.__version__
    assert description["format_version"] == 1
    with zipfile.ZipFile(tmp_path / "model.ft") as archive:
        assert json.loads(archive.read("schema.json"))["reveals"] == description["reveals"]


def test_a_large_change_of_a_small_group_gives_a_warning(tmp_path):
    rng = np.random.default_rng(0)
    scores, group = rng.random(40), np.repeat(["a", "b"], 20)
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)).fit(scores, sensitive_features=group)
    with pytest.warns(ModelFileWarning, match=r"small group by .* on average.*people_per_point=1"):
        ft.save(repair, tmp_path / "model.ft")
    ft.save(repair, tmp_path / "model.ft", people_per_point=1)


CANARY = 0.123454321


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            GradientBoostingClassifier(n_estimators=2),
            "GradientBoostingClassifier, which a model file cannot store.*QuantileRepair",
        ),
        (
            make_pipeline(SplineTransformer(), LogisticRegression()),
            r"step 'splinetransformer' of the model .*SplineTransformer.*Replace a transformer by one of these",
        ),
        (
            make_pipeline(FunctionTransformer(np.abs), LogisticRegression()),
            "is a function, and a model file contains no code",
        ),
        (LogisticRegression(random_state=np.random.RandomState(0)), "random_state is a random number generator"),
        (make_pipeline(OneHotEncoder(feature_name_combiner=str.join), LogisticRegression()), "is a function"),
        (LogisticRegression(max_iter=2_000_000_000), r"max_iter has a value .* outside the allowed range"),
    ],
)
def test_other_models_are_refused_by_name(model, words, tmp_path):
    X, y, _ = people()
    with pytest.raises(TypeError, match=words):
        ft.save(model.fit(X, y), tmp_path / "model.ft")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_fitted_or_has_extras(tmp_path):
    with pytest.raises(ValueError, match="is not fitted; fit it before"):
        ft.save(cot(), tmp_path / "model.ft")
    X, y, _ = people()
    model = LogisticRegression().fit(X, y)
    model.note = CANARY
    with pytest.raises(TypeError, match=r"cannot store: note\. Delete") as caught:
        ft.save(model, tmp_path / "model.ft")
    assert str(CANARY) not in str(caught.value)


def test_failures_hold_no_value_of_a_person(tmp_path):
    """Canaries in every place that a model keeps, and every failure that a saved file can meet."""
    X, y, _ = people()
    group = np.where(X[:, 0] > 0, "CANARY-GROUP", "other")
    repair = ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)
    repair.repair_.note = CANARY
    path, said = tmp_path / "model.ft", []
    with pytest.raises(TypeError) as caught:
        ft.save(repair, path)
    said.append(str(caught.value))
    del repair.repair_.note
    content = ft.save(repair, path).read_bytes()
    for place in range(0, len(content), 997):
        (tmp_path / "bad.ft").write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        try:
            ft.load(tmp_path / "bad.ft")
        except ModelFileError as error:
            said.append(str(error))
    assert len(said) > 10
    assert not any("CANARY" in text or "0.12345" in text for text in said)


def test_another_version_of_scikit_learn_gives_a_warning(tmp_path, monkeypatch):
    X, y, _ = people()
    monkeypatch.setattr("sklearn.__version__", "1.4.2")
    path = ft.save(LogisticRegression().fit(X, y), tmp_path / "model.ft")
    monkeypatch.undo()
    with pytest.warns(ModelFileWarning, match="another version of scikit-learn"):
        ft.load(path)
    assert describe(path)["made_by"]["scikit-learn"] == "1.4.2"


def test_others_can_add_their_class(tmp_path, monkeypatch):
    monkeypatch.setattr(_registry, "_recipes", dict(_registry._recipes))
    X, _, _ = people()
    model = RBFSampler(n_components=3, random_state=0).fit(X)
    with pytest.raises(TypeError):
        pack_model(model)
    fitted = {"n_features_in_": _checks.count, "random_offset_": _checks.array(1), "random_weights_": _checks.array(2)}
    optional = {"_gamma": _checks.finite, "_n_features_out": _checks.count}
    params = {"n_components": _checks.count, "random_state": _checks.count}
    add_recipe(Recipe("sklearn.kernel_approximation.RBFSampler", fitted, optional, params))
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_importing_stays_quick():
    """Loading and saving cost nothing until they are used."""
    code = "import sys, fairtransport; print([m for m in sys.modules if m.startswith(('numpy', 'fairtransport.'))])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
