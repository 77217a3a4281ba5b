"""Models of raw tables with other criteria than demographic parity, and with strata."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.worlds import raw_people

import fairtransport as ft
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.criteria import EqualOpportunity
from fairtransport.metrics import conditional_disparity, separation_disparity
from fairtransport.tabular import TableModel
from fairtransport.tabular.held_out_evaluation import measure_models

PLAIN = LogisticRegression(max_iter=1000)
lightgbm = pytest.importorskip("lightgbm")
LIGHT = lightgbm.LGBMClassifier(n_estimators=25, num_leaves=8, verbose=-1, n_jobs=1)


def make(estimator, **options):
    return TableModel(estimator, **{"label": "hired", "sensitive_features": ["sex"], **options})


def cot(**options):
    return ft.TransportClassifier(**{"parity_weight": 0.5, **options})


def labels_of(frame):
    return (frame["hired"] == "yes").to_numpy().astype(int)


@pytest.mark.filterwarnings("ignore:Parity cost most")
def test_equalized_odds_and_its_figures():
    new, estimators = (
        raw_people(2000, seed=1),
        {"plain": PLAIN, "parity": cot(), "odds": cot(criterion="equalized_odds")},
    )
    fitted = {name: make(estimator).fit(raw_people(2000)) for name, estimator in estimators.items()}
    shown = measure_models(fitted, new)
    for name, model in fitted.items():
        scores = model.score_rows(new).scores
        expected = separation_disparity(labels_of(new), scores, sensitive_features=new["sex"])
        assert shown.figures[name]["separation_disparity"] == pytest.approx(expected)
    assert shown.figures["odds"]["separation_disparity"] < 0.6 * shown.figures["plain"]["separation_disparity"]
    assert 0 < shown.floor["separation_disparity"] < 0.05
    alone = measure_models({"parity": fitted["parity"]}, new)
    assert "separation_disparity" not in alone.figures["parity"]


def test_strata_reach_the_estimator_as_numbers_and_text():
    model = make(cot(), strata=["job", "hours"]).fit(raw_people(2000))
    assert model.numeric_strata_ == ["hours"]  # written as text
    strata = model.known_strata
    assert strata.columns == ("job", "hours")
    assert strata.cuts[0] is None
    assert len(strata.cuts[1]) >= 1
    assert {"job", "hours"} <= {*model.columns}  # features as well
    assert not model.needs_strata
    new = raw_people(1000, seed=1)
    shown = measure_models({"cot": model}, new)
    scores = model.score_rows(new).scores
    known = strata.encode({"job": new["job"].to_numpy(), "hours": new["hours"].cast(pl.Float64).to_numpy()})
    expected = conditional_disparity(scores, sensitive_features=new["sex"], strata=known)
    assert shown.figures["cot"]["conditional_disparity"] == pytest.approx(expected, rel=0.05)
    with pytest.raises(ValueError, match=r"no column 'hours', which the model was trained with"):
        measure_models({"cot": model}, new.drop("hours"))


def test_a_conditional_repair_needs_group_and_stratum():
    model = make(ft.QuantileRepairClassifier(PLAIN), strata=["job"], drop=["job"]).fit(raw_people(2000))
    assert model.needs_strata
    assert {"job", "sex"} <= {*model.columns}
    new = raw_people(40, seed=2).with_columns(job=pl.Series(["cook"] * 38 + ["pilot", None]))
    found = model.score_rows(new)
    assert np.flatnonzero(np.isnan(found.scores)).tolist() in ([38], [38, 39])
    assert {*found.reasons.values()} == {"unknown stratum in 'job'"}
    assert [*found.reasons] == np.flatnonzero(np.isnan(found.scores)).tolist()
    np.testing.assert_array_equal(model.score_rows(new[:5]).scores, found.scores[:5])
    shown = measure_models({"dpp": model}, raw_people(1000, seed=3))
    assert shown.figures["dpp"]["conditional_disparity"] < 3 * shown.floor["conditional_disparity"]
    with pytest.raises(ValueError, match="no column 'job', which the model needs"):
        model.score_rows(new.drop("job"))


def test_forged_strata_are_refused(tmp_path):
    model = make(cot(), strata=["job"]).fit(raw_people(500))
    for change in ({"strata": ["region"]}, {"strata": ["hired"]}, {"strata": "job"}):
        forged = make(cot(), strata=["job"]).set_params(**change)
        for name in ("encoder_", "estimator_", "classes_", "set_aside_", "leaking_columns_", "numeric_strata_"):
            setattr(forged, name, getattr(model, name))
        with pytest.raises((ft.storage.ModelFileError, ValueError, TypeError)):
            ft.load(ft.save(forged, tmp_path / "forged.ft") or tmp_path / "forged.ft")


@pytest.mark.filterwarnings("ignore:Parity cost most:fairtransport.FairnessWarning")
@pytest.mark.parametrize(("criterion", "strata"), [("equalized_odds", []), ("demographic_parity", ["job"])])
def test_a_limit_is_one_on_the_disparity_of_the_criterion(monkeypatch, criterion, strata):
    monkeypatch.setattr("fairtransport.tabular._model._PARITY_WEIGHTS", (0.0, 0.3, 1.0))
    kind = ft.TransportClassifier(distance="discrete", criterion=criterion)
    loose, tight = (
        make(kind, strata=strata, max_disparity=limit).fit(raw_people(1500)) for limit in (10.0, 0.1)
    )  # fmt: skip
    assert loose.estimator_.parity_weight == 0.0
    assert 0.0 < tight.estimator_.parity_weight <= 1.0


def test_invalid_strata_and_criteria():
    frame = raw_people(300)
    with pytest.raises(ValueError, match=r"The table has no column 'jobs' \(strata\)"):
        make(cot(), strata=["jobs"]).fit(frame)
    with pytest.raises(ValueError, match="'hired' is the label and cannot be a stratum as well"):
        make(cot(), strata=["hired"]).fit(frame)
    with pytest.raises(ValueError, match=r"'sex': a stratum that is a group as well"):
        make(cot(), strata=["sex"]).fit(frame)
    with pytest.raises(ValueError, match="a list that names each column once"):
        make(cot(), strata="job").fit(frame)
    with pytest.raises(ValueError, match="a list that names each column once"):
        make(cot(), strata=["job", "job"]).fit(frame)
    with pytest.raises(ValueError, match="no stratum has rows of two groups"):
        make(cot(), strata=["copy"]).fit(frame.with_columns(copy=pl.col("sex")))


@pytest.mark.parametrize(
    "estimator",
    [
        cot(criterion="equalized_odds"),
        TransportBoostingClassifier(
            LIGHT, criterion=EqualOpportunity(stratum_weight="share"), parity_weight=0.3, random_state=0
        ),
        ft.QuantileRepairClassifier(PLAIN),
    ],
    ids=["cot", "trees", "dpp"],
)
def test_model_files_keep_criterion_and_strata(estimator, tmp_path):
    model = make(estimator, strata=["job"]).fit(raw_people(1000))
    ft.save(model, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft")
    assert (again.criterion, list(again.strata)) == (model.criterion, ["job"])
    assert again.known_strata.to_spec() == model.known_strata.to_spec()
    new = raw_people(50, seed=1)
    rounding = 0.02 if model.needs_strata else 1e-9  # a file summarises the maps of a repair
    np.testing.assert_allclose(again.score_rows(new).scores, model.score_rows(new).scores, atol=rounding)
