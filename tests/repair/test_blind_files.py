"""Model files of blind repair."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.criteria import EqualizedOdds
from fairtransport.persistence import ModelFileError
from fairtransport.persistence._files import pack_model
from fairtransport.persistence.recipes._repairs import VALUE_TYPES
from fairtransport.storage import unpack_container

from .test_blind import blind, people

KINDS = {
    "parity": {},
    "equalized odds": {"criterion": EqualizedOdds(label_weight="share"), "slack": 0.01},
    "strata": {"groups": ft.GroupPolicy(small="pool")},
    "decisions": {"loss": "zero_one", "max_disparity": 0.1, "amount": 0.5},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_predicts_the_same(kind, tmp_path):
    X, y, group = people(400)
    strata = {"strata": np.where(np.arange(400) % 2, "odd", "even")} if kind == "strata" else {}
    model = blind(make_pipeline(StandardScaler(), LogisticRegression()), **KINDS[kind])
    model.fit(X, np.where(y == 1, "yes", "no"), sensitive_features=group, **strata)
    path = ft.save(model, tmp_path / "model.ft")
    again = ft.load(path)
    np.testing.assert_array_equal(again.predict_proba(X, **strata), model.predict_proba(X, **strata))
    np.testing.assert_array_equal(again.predict(X, **strata), model.predict(X, **strata))
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert again.report_ == model.report_
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()


def test_a_file_has_no_score_of_a_person():
    X, y, group = people(400)
    model = blind().fit(X, y, sensitive_features=group)
    scores = model.estimator_.predict_proba(X)[:, 1]
    content = unpack_container(pack_model(model)[0], kind="model")
    assert "rows" not in json.dumps(list(content.arrays))
    for name, array in content.arrays.items():
        if array.dtype == np.float64:
            assert not np.isin(array, scores).any(), name


CELLS = {
    "groups": np.array([0]), "labels": np.array([0]), "strata": np.array([-1]), "shares": np.array([0.5]),
    "totals": np.array([1.0]), "priors": np.ones((1, 1, 2)), "stratum_shares": np.full((1, 1, 2), 0.5),
}  # fmt: skip
CALIBRATION = {
    "factor": 1.0, "offsets": np.zeros(2), "change": 0.0, "slopes": np.zeros(2), "center": 0.5, "scale": 0.1,
}  # fmt: skip
POTENTIALS = {"nodes": np.array([0.0, 1.0]), "slopes": np.zeros((1, 1)), "loss": "squared"}
FORGED = [
    ("cells", CELLS, {"groups": np.array([2])}),
    ("cells", CELLS, {"labels": np.array([-1])}),
    ("cells", CELLS, {"strata": np.array([1])}),
    ("cells", CELLS, {"shares": np.array([0.0])}),
    ("cells", CELLS, {"shares": np.array([0.5, 0.5])}),
    ("cells", CELLS, {"priors": np.ones((1, 2))}),
    ("cells", CELLS, {"stratum_shares": np.ones((1, 2))}),
    ("cells", CELLS, {"stratum_shares": np.full((1, 1, 3), 0.5)}),
    ("cells", CELLS, {"stratum_shares": np.full((1, 1, 2), -0.5)}),
    ("cells", CELLS, {"groups": np.array([0.0])}),
    ("potentials", POTENTIALS, {"nodes": np.array([1.0, 0.0])}),
    ("potentials", POTENTIALS, {"slopes": np.zeros((1, 2))}),
    ("potentials", POTENTIALS, {"slopes": np.full((1, 1), np.nan)}),
    ("potentials", POTENTIALS, {"loss": "none"}),
    ("potentials", POTENTIALS, {"loss": "log"}),
    ("group_calibration", CALIBRATION, {"factor": np.inf}),
    ("group_calibration", CALIBRATION, {"offsets": np.zeros((2, 2))}),
    ("group_calibration", CALIBRATION, {"slopes": np.zeros(3)}),
    ("group_calibration", CALIBRATION, {"slopes": np.array([0.0, np.nan])}),
    ("group_calibration", CALIBRATION, {"scale": -1.0}),
]


@pytest.mark.parametrize(("tag", "valid", "change"), FORGED)
def test_forged_parts_are_refused(tag, valid, change):
    (kind,) = [one for one in VALUE_TYPES if one.tag == tag]
    kind.from_parts(dict(valid))
    with pytest.raises((TypeError, ValueError)):
        kind.from_parts({**valid, **change})


def test_parts_that_do_not_agree_are_refused(tmp_path):
    X, y, group = people(300)
    model = blind().fit(X, y, sensitive_features=group)
    model.group_estimator_.classes_ = np.array([0, 7])
    with pytest.raises(ModelFileError):
        ft.load(ft.save(model, tmp_path / "model.ft"))


@pytest.mark.trust
def test_the_default_model_of_the_groups_is_stored(tmp_path):
    X, y, group = people(300)
    model = ft.BlindRepairClassifier(LogisticRegression(), cv=2).fit(X, y, sensitive_features=group)
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
