"""Model files and ONNX graphs of repairs of real scores: extrapolation, no person's score, the same predictions."""

import numpy as np
import onnxruntime
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.persistence import ModelFileError, describe
from fairtransport.persistence._files import pack_model
from fairtransport.storage import unpack_container

KINDS = {
    "learned": {},
    "partial": {"amount": 0.4},
    "equalized odds": {"criterion": "equalized_odds"},
    "given": {"range": (-1e3, 1e3)},
    "strata": {},
    "stream": {},
}
FAR = np.array([-500.0, 500.0])


def fitted(kind):
    rng = np.random.default_rng(0)
    group, stratum = rng.integers(2, size=2000), rng.choice(["low", "high"], 2000)
    y = rng.standard_t(4, size=2000) * (1 + group) + group
    scores, group = 20 * y + rng.normal(size=2000), np.array(["F", "M"])[group]
    stratum[np.flatnonzero((stratum == "low") & (group == "F"))[3:]] = "high"  # one cell has three rows
    columns = {"sensitive_features": group, **({"strata": stratum} if kind == "strata" else {})}
    repair = ft.QuantileRepair(**{"range": "learned", **KINDS[kind]})
    if kind == "stream":
        return repair.partial_fit(scores, sensitive_features=group), scores, columns
    return repair.fit(scores, y, **columns), scores, columns


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_repair_gives_the_same_scores_also_far_away(kind, tmp_path):
    repair, scores, columns = fitted(kind)
    given = np.append(scores, FAR)
    columns = {name: np.append(column, column[:2]) for name, column in columns.items()}
    before = repair.transform(given, **columns)
    exact = ft.load(ft.save(repair, tmp_path / "exact.ft", people_per_point=1))
    np.testing.assert_array_equal(exact.transform(given, **columns), before)
    path = ft.save(repair, tmp_path / "model.ft")
    again = ft.load(path)
    after = again.transform(given, **columns)
    largest = max(change["largest"] for change in describe(path)["changes"].values())
    tiny = (columns["strata"] == "low") & (columns["sensitive_features"] == "F") if kind == "strata" else []
    assert np.delete(np.abs(after - before), np.flatnonzero(tiny)).max() <= largest + 1e-9
    assert np.abs(after - before).mean() < 0.02 * scores.std()
    assert again.range == repair.range


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"stream"}))
def test_a_file_has_no_score_of_a_person(kind):
    repair, scores, _ = fitted(kind)
    for name, array in unpack_container(pack_model(repair)[0], kind="model").arrays.items():
        if array.dtype == np.float64:
            assert not np.isin(array, scores).any(), name


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"strata"}))
def test_onnx_gives_the_scores_of_the_file(kind, tmp_path):
    repair, scores, columns = fitted(kind)
    again = ft.load(ft.save(repair, tmp_path / "model.ft"))
    session = onnxruntime.InferenceSession(ft.to_onnx(repair).SerializeToString())
    given = np.append(scores, FAR)
    group = np.append(columns["sensitive_features"], ["F", "M"])
    found = session.run(None, {"scores": given, "sensitive_feature_0": group})[0]
    np.testing.assert_allclose(found, again.transform(given, sensitive_features=group), rtol=1e-12, atol=1e-9)
    for wrong in (np.nan, np.inf):
        with pytest.raises(Exception, match=r"INVALID_ARGUMENT|FAIL"):
            session.run(None, {"scores": np.array([wrong]), "sensitive_feature_0": group[:1]})


def test_a_file_whose_maps_are_beyond_its_range_is_not_loaded(tmp_path):
    repair, _, _ = fitted("given")
    assert ft.load(ft.save(repair, tmp_path / "model.ft")).range == (-1e3, 1e3)
    repair.range = (-1.0, 1.0)
    path = tmp_path / "wrong.ft"
    path.write_bytes(pack_model(repair, 1)[0])
    with pytest.raises(ModelFileError):
        ft.load(path)


@pytest.mark.parametrize(
    "estimator",
    [LinearRegression(), Ridge(2.0, solver="svd"), make_pipeline(StandardScaler(), Ridge(0.5))],
    ids=str,
)
def test_regressors_are_stored_with_their_repair(estimator, tmp_path):
    rng = np.random.default_rng(0)
    group = rng.choice(["F", "M"], 1000)
    X = rng.normal(size=(1000, 3)) + (group == "M")[:, None]
    y = 50 * (X @ [1.0, 2.0, 3.0]) + rng.normal(size=1000)
    model = ft.QuantileRepairRegressor(estimator).fit(X, y, sensitive_features=group)
    model.amount = 0.8
    far = np.concatenate((X, 50 * X[:5]))
    groups = np.append(group, group[:5])
    exact = ft.load(ft.save(model, tmp_path / "exact.ft", people_per_point=1))
    np.testing.assert_array_equal(
        exact.predict(far, sensitive_features=groups), model.predict(far, sensitive_features=groups)
    )
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    assert (again.cv, again.amount) == (5, 0.8)
    expected = again.predict(far, sensitive_features=groups)
    session = onnxruntime.InferenceSession(ft.to_onnx(model).SerializeToString())
    found = session.run(["prediction"], {"X": far, "sensitive_feature_0": groups})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)  # skl2onnx may work in single precision
