"""The adjuster follows drift, stays in its trust region, and resumes exactly."""

import json
from functools import partial

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.cli.stream import StreamReporter
from fairtransport.linear import SgdSettings
from fairtransport.stream import ContinualAdjuster, StoreError, read_journal

from .worlds import cot, features, raw_scores, repair

DOT = partial(ft.TransportClassifier, distance="discrete")


def batches(seed, n, rows=100, change=10, draw=features, gaps=(0.0, 1.5)):
    rng = np.random.default_rng(seed)
    for batch in range(n):
        X, sex = draw(rng, rows, gaps[batch >= change])
        yield X, {"sex": sex}


score_batches = partial(batches, draw=raw_scores, gaps=(1.0, 5.0))
MODELS = {
    "COT": (cot, batches),
    "DOT": (lambda: cot(kind=DOT), batches),
    "COT, own weights": (lambda: cot(group_specific=True), batches),
    "repair": (repair, score_batches),
}


@pytest.fixture(scope="module")
def made():
    return {name: make() for name, (make, _) in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_drift_raises_the_alarm_and_is_followed(made, name):
    adjuster = ContinualAdjuster(made[name])
    reports = [adjuster.adjust(X, sensitive_features=sex) for X, sex in MODELS[name][1](0, 60, change=20)]
    raised = [report.batch for report in reports if report.alarm]
    assert raised
    assert 20 < raised[0] < 40
    last = reports[-1]
    assert last.disparity_after < 0.6 * last.disparity_before
    assert last.agreement < 1.0
    assert last.mean_change > 0.01
    assert last.moved > 0.0
    quiet, busy = ({report.updates for report in part} for part in (reports[: raised[0] - 1], reports[raised[0] :]))
    assert (quiet, busy) == ({1}, {10})
    assert [group.name for group in last.groups] == ["F", "M"]
    assert sum(group.after for group in last.groups) == pytest.approx(last.disparity_after)


@pytest.mark.parametrize("steps", [{}, {"solver": SgdSettings(parameter_step=0.05, n_updates=200, random_state=0)}])
def test_a_row_far_off_counts_as_an_unusual_one(steps):
    """Its influence is bounded: beyond 10 standard deviations, a cell can be anything."""
    model, moved = cot(**steps), []
    reach = model.adjusting_.origin + model.adjusting_.reach
    for value in (None, 1.0, 1e6, 1e100):
        adjuster = ContinualAdjuster(model, trust_radius=np.inf)
        for number, (X, sex) in enumerate(batches(0, 40, change=5)):
            if number == 8 and value is not None:
                X[3] = value * reach
            report = adjuster.adjust(X, sensitive_features=sex)
        moved.append(adjuster.model.coef_[0])
        assert report.disparity_after < 0.6 * report.disparity_before
    np.testing.assert_array_equal(moved[2], moved[1])
    np.testing.assert_array_equal(moved[3], moved[1])
    assert np.linalg.norm(moved[1] - moved[0]) < 0.1 * np.linalg.norm(model.coef_[0])


def test_an_update_for_which_there_is_no_step_is_counted_and_shown(made, monkeypatch, tmp_path):
    monkeypatch.setattr("fairtransport.linear.online._shrinkage", lambda *_: 0.5)
    with ContinualAdjuster(made["COT"], store=tmp_path / "store") as adjuster:
        reports = [adjuster.adjust(X, sensitive_features=sex) for X, sex in batches(0, 3)]
        assert [(report.updates, report.skipped_updates) for report in reports] == [(0, 1), (0, 2), (0, 3)]
        assert adjuster.snapshot()["spent"]["skipped_updates"] == 3
        said = []
        reporter = StreamReporter(1e9, say=said.append)
        for report in reports:
            reporter.report_batch(report, lines=1, rejected=0)
        assert sum("not adjusted" in line for line in said) == 3
    with ContinualAdjuster.resume(tmp_path / "store") as again:
        assert again.snapshot()["spent"]["skipped_updates"] == 3
        monkeypatch.undo()
        X, sex = next(batches(1, 1))
        report = again.adjust(X, sensitive_features=sex)
        assert (report.skipped_updates, report.stalled) == (3, False)  # those of earlier batches are no alarm now


def test_scores_are_those_of_the_model_before_the_batch(made):
    adjuster = ContinualAdjuster(made["COT"])
    for X, sex in batches(0, 5):
        expected = adjuster.model.predict_proba(X)[:, 1]
        report = adjuster.adjust(X, sensitive_features=sex)
        assert (report.scores == expected).all()
    assert (adjuster.model.coef_ != made["COT"].coef_).any()  # the adjuster's model has changed, the user's has not


def test_a_frozen_model_is_not_updated(made):
    for name in ("COT", "repair"):
        adjuster = ContinualAdjuster(made[name])
        adjuster.freeze()
        feed = list(MODELS[name][1](0, 30, change=5))
        reports = [adjuster.adjust(X, sensitive_features=sex) for X, sex in feed]
        assert any(report.alarm for report in reports)  # still monitored
        assert {report.updates for report in reports} == {0}
        assert {report.moved for report in reports} == {0.0}
        assert reports[-1].disparity_after == reports[-1].disparity_before
        assert reports[-1].frozen
        adjuster.thaw()
        assert adjuster.adjust(feed[-1][0], sensitive_features=feed[-1][1]).moved > 0.0


@pytest.mark.parametrize("name", MODELS)
def test_the_trust_region_is_never_left_until_the_model_is_accepted(made, name):
    free, limited = ContinualAdjuster(made[name], trust_radius=np.inf), ContinualAdjuster(made[name], trust_radius=0.02)
    feed = list(MODELS[name][1](0, 16, change=3))
    loose, tight = ([one.adjust(X, sensitive_features=sex) for X, sex in feed] for one in (free, limited))
    assert max(report.moved for report in loose) > 0.04
    assert max(report.moved for report in tight) <= 0.02 * (1 + 1e-9)
    assert tight[-1].at_border
    before = limited._state.current.score(feed[0][0], limited._state.current.encode(feed[0][1]))
    limited.accept()
    assert limited._state.moved <= 0.02 * (1 + 1e-9)
    after = limited.adjust(feed[0][0], sensitive_features=feed[0][1]).scores
    assert np.abs(after - before).max() < 0.05  # accepting changes no score by much
    more = [limited.adjust(X, sensitive_features=sex) for X, sex in feed]
    assert max(report.moved for report in more) <= 0.02 * (1 + 1e-9)
    assert more[-1].mean_change > tight[-1].mean_change


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("name", ["COT", "repair"])
def test_rolling_back(made, name, stored, tmp_path):
    adjuster = ContinualAdjuster(
        made[name], store=tmp_path / "store" if stored else None, checkpoint_every=5, keep_checkpoints=3
    )
    feed = list(MODELS[name][1](0, 30, change=3))
    probe, sex = feed[0]
    scores = {}
    for X, groups in feed:
        report = adjuster.adjust(X, sensitive_features=groups)
        if report.batch % 5 == 0:
            current = adjuster._state.current
            scores[adjuster.versions()[-1].version] = current.score(probe, current.encode(sex))
    kept = adjuster.versions()
    assert [version.batch for version in kept] == [20, 25, 30]
    assert kept[-1].disparity == pytest.approx(report.disparity_after)
    target = kept[0].version
    adjuster.roll_back(target)
    assert adjuster.frozen
    assert (adjuster.adjust(probe, sensitive_features=sex).scores == scores[target]).all()
    with pytest.raises(StoreError, match="There is no version 0"):
        adjuster.roll_back(0)
    adjuster.close()


@pytest.mark.parametrize("name", MODELS)
def test_a_resumed_run_equals_one_that_was_not_stopped(made, name, tmp_path):
    feed = list(MODELS[name][1](0, 20, rows=37, change=8))
    with ContinualAdjuster(made[name], store=tmp_path / "whole", checkpoint_every=4, trust_radius=0.05) as whole:
        expected = [whole.adjust(X, sensitive_features=sex).scores for X, sex in feed]
    scores = []
    adjuster = ContinualAdjuster(made[name], store=tmp_path / "parts", checkpoint_every=4, trust_radius=0.05)
    while adjuster.batches < len(feed):
        for X, sex in feed[adjuster.batches : adjuster.batches + 7]:
            batch = adjuster.batches
            scores[batch:] = [adjuster.adjust(X, sensitive_features=sex).scores]
        if adjuster.batches == len(feed):
            break
        adjuster._store.close()  # as a kill would: no checkpoint
        adjuster = ContinualAdjuster.resume(tmp_path / "parts")
    adjuster.close()
    assert all((one == other).all() for one, other in zip(scores, expected, strict=True))
    assert (tmp_path / "parts/journal.jsonl").read_bytes() == (tmp_path / "whole/journal.jsonl").read_bytes()
    for path in (tmp_path / "whole").glob("checkpoint-*.ft"):
        assert (tmp_path / "parts" / path.name).read_bytes() == path.read_bytes()


def test_accepting_and_freezing_survive_a_resume(made, tmp_path):
    feed = list(batches(0, 6))
    with ContinualAdjuster(made["COT"], store=tmp_path / "s", trust_radius=0.3) as adjuster:
        for X, sex in feed:
            report = adjuster.adjust(X, sensitive_features=sex)
        adjuster.accept()
        adjuster.freeze()
        assert adjuster._state.moved == 0.0
    assert report.moved > 0.0
    with ContinualAdjuster.resume(tmp_path / "s") as adjuster:
        assert adjuster.frozen
        assert adjuster.adjust(feed[0][0], sensitive_features=feed[0][1]).moved == 0.0
        adjuster.thaw()
    actions = [entry["operator"] for entry in read_journal(tmp_path / "s") if "operator" in entry]
    assert actions == ["accept", "freeze", "thaw"]


@pytest.mark.parametrize("name", ["COT", "COT, own weights", "repair"])
def test_a_new_group_raises_or_is_adopted(name, tmp_path):
    make, source = MODELS[name]
    feed = list(source(0, 8, rows=60))
    X, sex = feed[4]
    with_new = {"sex": np.where(np.arange(60) % 3, sex["sex"], "X")}
    adjuster = ContinualAdjuster(make())
    adjuster.adjust(*feed[0][:1], sensitive_features=feed[0][1])
    if name == "COT":  # it does not need the group; who has none that is known is scored, and taught nothing
        assert adjuster.adjust(X, sensitive_features=with_new).scores.shape == (60,)
    else:
        with pytest.raises(ValueError, match="known groups") as caught:
            adjuster.adjust(X, sensitive_features=with_new)
        assert "'X'" not in str(caught.value)
        assert adjuster.batches == 1
    model = make()
    model.set_params(groups=ft.GroupPolicy(new="adopt"))
    with ContinualAdjuster(model, store=tmp_path / "s", checkpoint_every=1) as adopting:
        adopting.adjust(feed[0][0], sensitive_features=feed[0][1])
        report = adopting.adjust(X, sensitive_features=with_new)
        assert [group.name for group in report.groups] == ["F", "M", "X"]
    with ContinualAdjuster.resume(tmp_path / "s") as again:
        assert len(again.adjust(X, sensitive_features=with_new).groups) == 3
        again.roll_back(1)  # a version that did not know the group
        assert again.adjust(X, sensitive_features=with_new).scores.shape == (60,)


def test_scores_of_another_range():
    rng = np.random.default_rng(0)
    scores, sex = raw_scores(rng, 3000)
    table = pl.DataFrame({"s": 300 + 550 * scores, "sex": sex})
    adjuster = ContinualAdjuster(
        ft.repair.TableRepair(score="s", sensitive_features="sex", range=(300, 850)).fit(table).repair_
    )
    for _ in range(3):
        scores, sex = raw_scores(rng, 100)
        report = adjuster.adjust(300 + 550 * scores, sensitive_features={"sex": sex})
    assert report.scores.min() >= 300
    assert 0.0 < report.disparity_before < 0.3  # a share of the range
    assert adjuster.snapshot()["edges"][0] == 300
    assert adjuster.snapshot()["edges"][-1] == 850


@pytest.mark.parametrize("name", MODELS)
def test_a_snapshot_is_json_of_the_current_state(made, name):
    adjuster = ContinualAdjuster(made[name], title="loans")
    assert json.dumps(adjuster.snapshot(), allow_nan=False)  # before the first batch, too
    for X, sex in MODELS[name][1](0, 12, change=12):
        report = adjuster.adjust(X, sensitive_features=sex)
    shown = json.loads(json.dumps(adjuster.snapshot(), allow_nan=False))
    assert (shown["title"], shown["rows"], shown["batches"]) == ("loans", 1200, 12)
    assert shown["groups"] == ["F", "M"]
    assert len(shown["edges"]) == 51
    for shares in shown["histograms"].values():
        assert len(shares) == 50
        assert sum(shares) == pytest.approx(1.0)
    assert len(shown["history"]) == 12
    assert shown["history"][-1]["disparity"] == report.disparity_after
    assert set(shown["history"][-1]) == {
        *("batch", "rows", "time", "disparity", "noise_floor", "alarm", "updates", "moved", "agreement")
    }
    assert shown["spent"]["updates"] == 12
    assert shown["spent"]["batches_adjusted"] == 12
    assert shown["alarm_rate"] == 0.001
    if name in {"DOT", "repair"}:
        assert shown["duals"] is None
    else:
        assert np.shape(shown["duals"]["values"]) == (2, 51)


def test_memory_does_not_grow(tmp_path):
    """The state has a constant size but for the maps, which have up to 1,025 knots per group."""
    with ContinualAdjuster(repair(), store=tmp_path / "s", checkpoint_every=None) as adjuster:
        sizes = []
        for X, sex in score_batches(0, 80, rows=100):
            adjuster.adjust(X, sensitive_features=sex)
            arrays = adjuster._state.arrays() if adjuster.batches % 20 == 0 else {}
            sizes += [sum(array.nbytes for name, array in arrays.items() if name != "history")] if arrays else []
    assert sizes[-1] <= sizes[-2] * 1.1
    assert sizes[-1] < 200_000


def test_wrong_calls(made, tmp_path):
    for model, options, error, match in (
        ("model.ft", {}, TypeError, "stream needs a fitted"),
        (LogisticRegression(), {}, ValueError, "not fitted"),
        (ft.QuantileRepair(), {}, ValueError, "not fitted"),
        (made["COT"], {"alarm_rate": 0.0}, ValueError, "alarm_rate"),
        (made["COT"], {"trust_radius": 0.0}, ValueError, "trust_radius"),
    ):
        with pytest.raises(error, match=match):
            ContinualAdjuster(model, **options)
    adjuster = ContinualAdjuster(made["COT"], store=tmp_path / "s")
    with pytest.raises(ValueError, match="empty"):
        adjuster.adjust(np.empty((0, 3)), sensitive_features={"sex": np.array([], dtype=str)})
    with pytest.raises(ValueError, match="NaN"):
        adjuster.adjust(np.full((2, 3), np.nan), sensitive_features={"sex": ["F", "M"]})
    assert adjuster.batches == 0
    adjuster.close()
    adjuster.close()
    with pytest.raises(StoreError, match="closed"):
        adjuster.adjust(np.zeros((1, 3)), sensitive_features={"sex": ["F"]})


def test_no_score_in_a_repr(made):
    adjuster = ContinualAdjuster(made["COT"])
    X, sex = next(iter(batches(0, 1)))
    report = adjuster.adjust(X, sensitive_features=sex)
    assert "array" not in repr(report)
    assert "'F'" not in json.dumps(report.to_dict())
