"""Model files and ONNX graphs of repairs: of probabilities and real scores, with a criterion, strata or randomness."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.criteria import EqualizedOdds
from fairtransport.persistence import ModelFileError, describe, pack_model, unpack_model
from fairtransport.persistence.onnx import to_onnx
from fairtransport.storage import unpack_container

from .models import forge

KINDS = {
    "equal opportunity": {"criterion": "equal_opportunity"},
    "equalized odds": {"criterion": EqualizedOdds(label_weight="share")},
    "randomised": {"criterion": "equalized_odds", "randomize": True, "random_state": 3},
    "strata": {},
    "strata, equal opportunity": {"criterion": "equal_opportunity"},
}
REAL = {
    "learned": {},
    "learned, partial": {"amount": 0.4},
    "learned, equalized odds": {"criterion": "equalized_odds"},
    "given range": {"range": (-1e3, 1e3)},
    "learned, stream": {},
    "strata, learned": {},
}
FAR = np.array([-500.0, 500.0])


def world(n=3000):
    rng = np.random.default_rng(0)
    group, stratum = rng.integers(2, size=n), rng.integers(3, size=n)
    y = (rng.random(n) < 0.4).astype(int)
    scores = expit(rng.normal(size=n) + y * (1 + 0.5 * group) - 0.4 * stratum)
    rare = (stratum == 2) & (group == 1)
    stratum[np.flatnonzero(rare)[3:]] = 0  # one cell has three rows
    return scores, y, np.array(["F", "M"])[group], np.array(["low", "mid", "high"])[stratum]


@cache
def fitted(kind):
    """A repair, its training scores and the columns that it needs; real scores have heavy tails."""
    scores, y, group, stratum = world()
    if kind in REAL:
        y = np.random.default_rng(1).standard_t(4, size=scores.size) * (1 + (group == "M"))
        scores = 20 * y + np.random.default_rng(2).normal(size=scores.size)
    strata = {"strata": stratum} if kind.startswith("strata") else {}
    repair = ft.QuantileRepair(**({"range": "learned", **REAL[kind]} if kind in REAL else KINDS[kind]))
    if "stream" in kind:
        repair.partial_fit(scores, sensitive_features=group)
    else:
        repair.fit(scores, y, sensitive_features=group, **strata)
    return repair, scores, {"sensitive_features": group, **strata}


@pytest.mark.parametrize("kind", [*KINDS, *REAL])
def test_a_loaded_repair_gives_the_same_scores_also_far_away(kind, tmp_path):
    repair, scores, columns = fitted(kind)
    given = np.append(scores, FAR) if kind in REAL else scores
    columns = {name: np.append(column, column[: given.size - scores.size]) for name, column in columns.items()}
    before = repair.transform(given, **columns)
    exact = ft.load(ft.save(repair, tmp_path / "exact.ft", people_per_point=1))
    np.testing.assert_array_equal(exact.transform(given, **columns), before)
    path = ft.save(repair, tmp_path / "model.ft")
    again = ft.load(path)
    largest = max(change["largest"] for change in describe(path)["changes"].values())
    rare = (columns["strata"] == "high") & (columns["sensitive_features"] == "M") if "strata" in columns else []
    moved = np.abs(again.transform(given, **columns) - before)
    assert np.delete(moved, np.flatnonzero(rare)).max() <= largest + 1e-9
    assert moved.mean() < 0.02 * scores.std()
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()
    assert (again.criterion, again.range) == (repair.criterion, repair.range)


@pytest.mark.parametrize("kind", [*KINDS, *(kind for kind in REAL if "stream" not in kind)])
def test_a_file_has_no_score_of_a_person(kind):
    repair, scores, _ = fitted(kind)
    for name, array in unpack_container(pack_model(repair)[0], kind="model").arrays.items():
        if array.dtype == np.float64:
            assert not np.isin(array, scores).any(), name


def test_a_file_whose_maps_are_beyond_its_range_is_not_loaded(tmp_path):
    repair = ft.load(ft.save(fitted("given range")[0], tmp_path / "model.ft"))
    assert repair.range == (-1e3, 1e3)
    repair.range = (-1.0, 1.0)
    (tmp_path / "wrong.ft").write_bytes(pack_model(repair, 1)[0])
    with pytest.raises(ModelFileError):
        ft.load(tmp_path / "wrong.ft")


@pytest.mark.parametrize(
    "estimator", [LinearRegression(), Ridge(2.0, solver="svd"), make_pipeline(StandardScaler(), Ridge(0.5))], ids=str
)
def test_regressors_are_stored_with_their_repair(estimator, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    group = rng.choice(["F", "M"], 1000)
    X = rng.normal(size=(1000, 3)) + (group == "M")[:, None]
    y = 50 * (X @ [1.0, 2.0, 3.0]) + rng.normal(size=1000)
    model = ft.QuantileRepairRegressor(estimator).fit(X, y, sensitive_features=group)
    model.amount = 0.8
    far, groups = np.concatenate((X, 50 * X[:5])), np.append(group, group[:5])
    exact = ft.load(ft.save(model, tmp_path / "exact.ft", people_per_point=1))
    np.testing.assert_array_equal(
        exact.predict(far, sensitive_features=groups), model.predict(far, sensitive_features=groups)
    )
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    assert (again.cv, again.amount) == ("auto", 0.8)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    found = session.run(["prediction"], {"X": far, "sensitive_feature_0": groups})[0]
    expected = again.predict(far, sensitive_features=groups)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)  # skl2onnx may work in single precision


def test_a_cell_of_few_people_is_not_in_the_file():
    repair, _, _ = fitted("strata")
    again = unpack_model(pack_model(repair)[0])
    # Strata are high, low and mid, groups F and M.
    assert repair.stratum_maps_.sizes[0, 1] == 3
    assert again.stratum_maps_.sizes[0, 1] == 0
    np.testing.assert_array_equal(again.stratum_maps_.maps[1].knots, [0, 1])


def test_points_of_a_randomised_repair_stand_for_ten_rows(tmp_path):
    repair, scores, _ = fitted("randomised")
    group, cuts = np.array(world()[2]), repair.randomized_maps_.cuts
    rows = [np.bincount(np.searchsorted(cuts[n], scores[group == "FM"[n]], side="right")).min() for n in (0, 1)]
    assert min(rows) >= 10
    with pytest.raises(ValueError, match=f"people_per_point can be at most {min(rows)};"):
        ft.save(repair, tmp_path / "model.ft", people_per_point=int(min(rows)) + 1)


FORGED = {
    "strata": [
        ("stratum_maps_.maps.3.images", lambda images: images + 5.0),
        ("stratum_maps_.maps.3.images", lambda images: images[::-1]),
        ("stratum_maps_.maps.3.knots", lambda knots: knots[:-1]),
        ("stratum_maps_.rows_at_knots.3", lambda rows: rows[:-1]),
        ("stratum_maps_.rows_at_knots.3", lambda rows: -rows),
        ("stratum_maps_.rows_at_knots.3", lambda rows: rows.astype(float)),
        ("stratum_maps_.sizes", lambda sizes: sizes[:2]),
        ("stratum_maps_.sizes", lambda sizes: sizes.T),
        ("stratum_maps_.sizes", lambda sizes: -sizes),
        ("stratum_maps_.sizes", lambda sizes: sizes.ravel()),
        ("stratum_maps_.sizes", lambda sizes: sizes.astype(float)),
    ],
    "randomised": [
        ("randomized_maps_.kernels.0", lambda kernel: kernel * 2),
        ("randomized_maps_.kernels.0", lambda kernel: kernel - 1),
        ("randomized_maps_.kernels.0", lambda kernel: kernel * np.nan),
        ("randomized_maps_.kernels.1", lambda kernel: kernel[:-1]),
        ("randomized_maps_.levels", lambda levels: levels[::-1]),
        ("randomized_maps_.levels", lambda levels: levels[:-1]),
        ("randomized_maps_.cuts.0", lambda cuts: cuts[::-1]),
        ("randomized_maps_.cuts.0", lambda cuts: cuts[1:]),
        ("randomized_maps_.target", lambda target: target + 3.0),
        ("randomized_maps_.target", lambda target: target[::-1]),
        ("randomized_maps_.map_of_group", lambda index: index + 1),
        ("randomized_maps_.map_of_group", lambda index: index[:1]),
        ("randomized_maps_.map_of_group", lambda index: index.astype(float)),
    ],
}


@pytest.mark.parametrize(("kind", "name", "change"), [(kind, *case) for kind in FORGED for case in FORGED[kind]])
def test_forged_maps_and_probabilities_are_refused(kind, name, change):
    assert forge(fitted(kind)[0], lambda *_: None, people_per_point=1).maps_
    with pytest.raises(ModelFileError):
        forge(fitted(kind)[0], lambda _, arrays: arrays.update({f"model.{name}": change(arrays[f"model.{name}"])}), 1)


def test_a_criterion_that_does_not_exist_is_refused():
    with pytest.raises(ModelFileError):
        forge(fitted("equal opportunity")[0], lambda model, _: model["params"].update(criterion="fairness"))


@pytest.mark.parametrize("kind", ["equal opportunity", "equalized odds", *(one for one in REAL if "strata" not in one)])
def test_onnx_graphs_repair_as_the_file_does(kind, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    repair, scores, _ = fitted(kind)
    again = ft.load(ft.save(repair, tmp_path / "model.ft"))
    session = onnxruntime.InferenceSession(to_onnx(repair).SerializeToString())
    new = np.append(np.linspace(scores.min(), scores.max(), 1001), FAR if kind in REAL else [])
    group = np.resize(["F", "M"], new.size)
    found = session.run(None, {"scores": new, "sensitive_feature_0": group.astype(object)})[0]
    np.testing.assert_allclose(found, again.transform(new, sensitive_features=group), rtol=1e-12, atol=1e-9)
    for wrong in (np.nan, np.inf):
        with pytest.raises(Exception, match=r"INVALID_ARGUMENT|FAIL"):
            session.run(None, {"scores": np.array([wrong]), "sensitive_feature_0": group[:1].astype(object)})


def test_onnx_graphs_of_strata_and_draws_are_refused():
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="within strata cannot be exported to ONNX"):
        to_onnx(fitted("strata")[0])
    with pytest.raises(ValueError, match="randomised repair cannot be exported to ONNX"):
        to_onnx(fitted("randomised")[0])
