"""Repair of groups with few rows: none gets a map of its own, and the fitted repair says so."""

import duckdb
import numpy as np
import onnxruntime
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests import worlds

import fairtransport as ft
from fairtransport.metrics import rank_disparity, strong_pairwise_disparity
from fairtransport.persistence.onnx import to_onnx
from fairtransport.repair import OnlineSettings
from fairtransport.transport.line import Sample, quantile_map
from fairtransport.transport.targets import w1_barycenter, w2_barycenter

SIZES = {"a": 400, "b": 300, "c": 20, "d": 15}

AS_SMALL = {"a": "a", "b": "b", "c": "cd", "d": "cd"}  # small groups share the map of all small groups
AS_ALL = {"a": "a", "c": "abcd", "d": "abcd"}


def scored(sizes=SIZES, seed=0):
    return worlds.sized_groups(sizes, seed)[::2]


def samples_of(scores, group):
    return {name: Sample.from_values(scores[np.isin(group, list(name))]) for name in ("a", "b", "c", "d", "cd", "abcd")}


def images(repair, name, scores):
    return repair.transform(scores, sensitive_features=[name] * len(scores))


GRID = np.linspace(0, 1, 101)


@pytest.mark.parametrize(
    ("sizes", "options", "in_target", "maps"),
    [
        (SIZES, {}, {"a": 400, "b": 300, "c": 20, "d": 15}, AS_SMALL),
        # Too few rows even together: the map of everyone.
        (SIZES | {"c": 10, "d": 5}, {}, {"a": 400, "b": 300, "c": 10, "d": 5}, AS_ALL),
        # Dropped groups have no part in the target; a pool enters it as one group.
        (SIZES, {"groups": ft.GroupPolicy(small="drop")}, {"a": 400, "b": 300}, AS_ALL),
        (SIZES, {"groups": ft.GroupPolicy(small="pool")}, {"a": 400, "b": 300, "cd": 35}, AS_SMALL),
        # They do not distort a barycenter with equal weights.
        (SIZES, {"target": "barycenter", "groups": ft.GroupPolicy(small="keep")}, {"a": 1, "b": 1}, {"a": "a"}),
        (
            SIZES,
            {"target": "barycenter", "groups": ft.GroupPolicy(small="pool")},
            {"a": 1, "b": 1, "cd": 1},
            {"a": "a"},
        ),
        (SIZES, {"target": "barycenter", "groups": ft.GroupPolicy(small="drop")}, {"a": 1, "b": 1}, {"a": "a"}),
    ],
)
def test_maps_of_small_groups(sizes, options, in_target, maps):
    """Groups of at least 30 rows have their own map; what the others get, and what the target is made of."""
    scores, group = scored(sizes)
    samples = samples_of(scores, group)
    repair = ft.QuantileRepair(**options).fit(scores, sensitive_features=group)
    parts = [samples[name] for name in in_target]
    target = w1_barycenter(parts) if "target" in options else w2_barycenter(parts, list(in_target.values()))
    for name, source in maps.items():
        np.testing.assert_allclose(images(repair, name, GRID), quantile_map(samples[source], target)(GRID), atol=1e-12)
    assert repair.small_groups_ == ("c", "d")
    assert repair.own_map_.tolist() == [True, True, False, False]
    assert repair.group_sizes_.tolist() == list(sizes.values())


def test_groups_that_are_all_small_warn_and_keep_their_ranks():
    scores, group = scored({"a": 20, "b": 25})
    with pytest.warns(UserWarning, match="None of the 2 groups has min_size=30 rows"):
        repair = ft.QuantileRepair().fit(scores, sensitive_features=group)
    assert repair.small_groups_ == ("a", "b")
    before = rank_disparity(scores, sensitive_features=group)
    after = rank_disparity(repair.transform(scores, sensitive_features=group), sensitive_features=group)
    assert after == pytest.approx(before, abs=1e-12)


def test_rows_without_weight_do_not_make_a_group_large():
    scores, group = scored({"a": 400, "b": 300, "c": 40})
    weights = np.ones(740)
    weights[705:] = 0.0
    repair = ft.QuantileRepair().fit(scores, sensitive_features=group, sample_weight=weights)
    assert repair.small_groups_ == ("c",)


@pytest.mark.parametrize("policy", ["keep", "pool", "drop"])
def test_tables_files_onnx_and_sql_have_the_same_maps(policy, tmp_path):
    scores, group = scored()
    scores = np.ceil(scores * 64) / 64
    table = pl.DataFrame({"s": scores, "g": group})
    exact = ft.QuantileRepair(groups=ft.GroupPolicy(small=policy)).fit(scores, sensitive_features={"g": group})
    by_table = ft.repair.TableRepair(
        ft.QuantileRepair(groups=ft.GroupPolicy(small=policy)), score="s", sensitive_features="g", n_bins=64
    )
    repair = by_table.fit(table).repair_
    assert repair.small_groups_ == exact.small_groups_ == ("c", "d")
    expected = exact.transform(scores, sensitive_features={"g": group})
    np.testing.assert_allclose(repair.transform(scores, sensitive_features={"g": group}), expected, atol=1e-9)
    joined = by_table.transform(table)["repaired"].to_numpy()
    np.testing.assert_allclose(joined, expected, atol=1e-9)
    with duckdb.connect() as database:
        database.register("scores", table.to_arrow())
        *made, query = repair.lookup().to_sql(score="s").strip().split(";\n")
        database.execute(";\n".join(made))
        found = database.execute(query).df().sort_values(["g", "s"])["repaired"].to_numpy()
    np.testing.assert_allclose(found, expected[np.lexsort((scores, group))], atol=1e-9)
    again = ft.load(ft.save(repair, tmp_path / "repair.ft", people_per_point=1))
    assert again.small_groups_ == ("c", "d")
    assert again.get_params() == repair.get_params()
    np.testing.assert_allclose(again.transform(scores, sensitive_features={"g": group}), expected, atol=1e-9)
    session = onnxruntime.InferenceSession(to_onnx(repair, people_per_point=1).SerializeToString())
    given = {"scores": scores, "g": group.astype(object)}
    inputs = {one.name: given[one.name] for one in session.get_inputs()}
    np.testing.assert_allclose(np.ravel(session.run(None, inputs)[0]), expected, atol=1e-9)


def test_a_group_that_grows_past_the_limit_gets_its_own_map(tmp_path):
    scores, group = scored({"a": 400, "b": 300, "c": 12})
    repair = ft.QuantileRepair(online=OnlineSettings(1e9)).fit(scores, sensitive_features=group)
    assert repair.small_groups_ == ("c",)
    more, of_more = scored({"c": 17}, seed=1)
    repair.partial_fit(more, sensitive_features=of_more)
    assert repair.small_groups_ == ("c",)
    repair = ft.load(ft.save(repair, tmp_path / "repair.ft", people_per_point=1))
    more, of_more = scored({"c": 400}, seed=2)
    repair.partial_fit(more, sensitive_features=of_more)
    assert repair.small_groups_ == ()
    fresh, of_fresh = scored({"a": 500, "c": 500}, seed=3)
    before = strong_pairwise_disparity(fresh, sensitive_features=of_fresh)
    repaired = repair.transform(fresh, sensitive_features=of_fresh)
    assert before > 0.3
    assert strong_pairwise_disparity(repaired, sensitive_features=of_fresh) < 0.08


def test_a_stream_may_begin_with_few_rows():
    scores, group = scored({"a": 200, "b": 200})
    order = np.random.default_rng(0).permutation(400)
    scores, group = scores[order], group[order]
    repair = ft.QuantileRepair().partial_fit(scores[:20], sensitive_features=group[:20])
    assert repair.small_groups_ == ("a", "b")
    repair.partial_fit(scores[20:], sensitive_features=group[20:])
    assert repair.small_groups_ == ()
    assert (
        strong_pairwise_disparity(repair.transform(scores, sensitive_features=group), sensitive_features=group) < 0.02
    )


def test_a_classifier_says_which_groups_have_no_map_of_their_own():
    X, y, group = worlds.people(607)
    group[:7] = "c"
    said = "1 of 3 groups has fewer than 30 rows"
    with pytest.warns(ft.FairnessWarning, match=said):
        model = ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)
    with pytest.warns(ft.FairnessWarning, match=said):
        ft.BlindRepairClassifier(LogisticRegression(), LogisticRegression(), cv=2).fit(X, y, sensitive_features=group)
    assert model.small_groups_ == model.repair_.small_groups_ == ("c",)
    assert "1 of 3 groups has fewer than 30 rows and no map of its own" in model._repr_html_()
    assert "1 of 3 groups has fewer than 30 rows" in model.repair_._repr_html_()
    every = ft.QuantileRepairClassifier(
        LogisticRegression(), repair=ft.QuantileRepair(groups=ft.GroupPolicy(min_size=7))
    ).fit(X, y, sensitive_features=group)
    assert every.small_groups_ == ()
    assert "no map of its own" not in every._repr_html_()


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_a_group_of_one_row_is_repaired(criterion):
    """Half of the rows, by which a repair checks itself, may have one group only."""
    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(60, 2)), np.arange(60) % 2, np.array(["a"] * 59 + ["b"])
    repair = ft.QuantileRepair(criterion=criterion, groups=ft.GroupPolicy(min_size=1))
    if criterion == "equalized_odds":
        group[-2] = "b"
    model = ft.QuantileRepairClassifier(LogisticRegression(), repair).fit(X, y, sensitive_features=group)
    assert np.isfinite(model.predict_proba(X, sensitive_features=group)).all()
