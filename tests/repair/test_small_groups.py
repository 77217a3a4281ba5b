"""Repair of groups with few rows: none gets a map of its own, and the fitted repair says so."""

from __future__ import annotations

import duckdb
import numpy as np
import onnxruntime
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.metrics import rank_disparity, strong_pairwise_disparity
from fairtransport.transport.line import Sample, quantile_map
from fairtransport.transport.targets import w1_barycenter, w2_barycenter

SIZES = {"a": 400, "b": 300, "c": 20, "d": 15}


def scored(sizes=None, seed=0):
    """Scores of groups that differ; the small ones more than the large ones."""
    sizes = sizes or SIZES
    rng = np.random.default_rng(seed)
    group = np.repeat(list(sizes), list(sizes.values()))
    shift = {"a": 0.0, "b": 0.8, "c": 2.0, "d": -2.0, "e": 1.0}
    return 1 / (1 + np.exp(-rng.normal(size=group.size) - np.vectorize(shift.get)(group))), group


def samples_of(scores, group):
    return {name: Sample.from_values(scores[np.isin(group, list(name))]) for name in ("a", "b", "c", "d", "cd", "abcd")}


def images(repair, name, scores):
    return repair.transform(scores, sensitive_features=[name] * len(scores))


GRID = np.linspace(0, 1, 101)


def test_small_groups_share_the_map_of_all_small_groups():
    scores, group = scored()
    samples = samples_of(scores, group)
    repair = ft.QuantileRepair().fit(scores, sensitive_features=group)
    target = w2_barycenter([samples[name] for name in "abcd"], list(SIZES.values()))
    for name, source in (("a", "a"), ("b", "b"), ("c", "cd"), ("d", "cd")):
        np.testing.assert_allclose(images(repair, name, GRID), quantile_map(samples[source], target)(GRID), atol=1e-12)
    assert repair.small_groups_ == ("c", "d")
    assert repair.own_map_.tolist() == [True, True, False, False]
    assert repair.group_sizes_.tolist() == list(SIZES.values())


def test_too_few_rows_even_together_use_the_common_map():
    scores, group = scored({"a": 400, "b": 300, "c": 10, "d": 5})
    samples = samples_of(scores, group)
    repair = ft.QuantileRepair().fit(scores, sensitive_features=group)
    target = w2_barycenter([samples[name] for name in "abcd"], [400, 300, 10, 5])
    common = quantile_map(samples["abcd"], target)(GRID)
    for name in "cd":
        np.testing.assert_allclose(images(repair, name, GRID), common, atol=1e-12)


def test_dropped_groups_use_the_common_map_and_have_no_part_in_the_target():
    scores, group = scored()
    samples = samples_of(scores, group)
    repair = ft.QuantileRepair(small_groups="drop").fit(scores, sensitive_features=group)
    target = w2_barycenter([samples["a"], samples["b"]], [400, 300])
    np.testing.assert_allclose(images(repair, "c", GRID), quantile_map(samples["abcd"], target)(GRID), atol=1e-12)
    np.testing.assert_allclose(images(repair, "a", GRID), quantile_map(samples["a"], target)(GRID), atol=1e-12)


@pytest.mark.parametrize(("policy", "names"), [("keep", ["a", "b"]), ("pool", ["a", "b", "cd"]), ("drop", ["a", "b"])])
def test_small_groups_do_not_distort_a_barycenter_with_equal_weights(policy, names):
    scores, group = scored()
    samples = samples_of(scores, group)
    repair = ft.QuantileRepair("barycenter", small_groups=policy).fit(scores, sensitive_features=group)
    target = w1_barycenter([samples[name] for name in names])
    np.testing.assert_allclose(images(repair, "a", GRID), quantile_map(samples["a"], target)(GRID), atol=1e-12)


def test_a_pool_enters_the_target_as_one_group():
    scores, group = scored()
    samples = samples_of(scores, group)
    repair = ft.QuantileRepair(small_groups="pool").fit(scores, sensitive_features=group)
    target = w2_barycenter([samples["a"], samples["b"], samples["cd"]], [400, 300, 35])
    for name, source in (("b", "b"), ("d", "cd")):
        np.testing.assert_allclose(images(repair, name, GRID), quantile_map(samples[source], target)(GRID), atol=1e-12)


def test_a_limit_of_one_row_gives_every_group_its_own_map():
    scores, group = scored()
    repair = ft.QuantileRepair(min_group_size=1).fit(scores, sensitive_features=group)
    assert repair.small_groups_ == ()
    assert strong_pairwise_disparity(repair.transform(scores, sensitive_features=group), sensitive_features=group) < 0.2
    plain = ft.QuantileRepair().fit(scores[:700], sensitive_features=group[:700])
    same = ft.QuantileRepair(min_group_size=1).fit(scores[:700], sensitive_features=group[:700])
    np.testing.assert_array_equal(images(plain, "a", GRID), images(same, "a", GRID))


def test_groups_that_are_all_small_warn_and_keep_their_ranks():
    scores, group = scored({"a": 20, "b": 25})
    with pytest.warns(UserWarning, match="None of the 2 groups has min_group_size=30 rows"):
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


def test_a_small_group_of_strangers_does_not_change_the_others():
    scores, group = scored()
    with_few = ft.QuantileRepair().fit(scores, sensitive_features=group)
    without = ft.QuantileRepair().fit(scores[:700], sensitive_features=group[:700])
    for name in "ab":
        assert np.abs(images(with_few, name, scores[:50]) - images(without, name, scores[:50])).max() < 0.03


# ------------------------------------------------------------------------------------------------- wherever it is used


@pytest.mark.parametrize("policy", ["keep", "pool", "drop"])
def test_tables_files_onnx_and_sql_have_the_same_maps(policy, tmp_path):
    scores, group = scored()
    scores = np.ceil(scores * 64) / 64
    table = pl.DataFrame({"s": scores, "g": group})
    exact = ft.QuantileRepair(small_groups=policy).fit(scores, sensitive_features={"g": group})
    by_table = ft.TableRepair(ft.QuantileRepair(small_groups=policy), score="s", sensitive_features="g", n_bins=64)
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
    session = onnxruntime.InferenceSession(ft.to_onnx(repair, people_per_point=1).SerializeToString())
    given = {"scores": scores, "g": group.astype(object)}
    inputs = {one.name: given[one.name] for one in session.get_inputs()}
    np.testing.assert_allclose(np.ravel(session.run(None, inputs)[0]), expected, atol=1e-9)


def test_a_group_that_grows_past_the_limit_gets_its_own_map(tmp_path):
    scores, group = scored({"a": 400, "b": 300, "c": 12})
    repair = ft.QuantileRepair(stream_half_life=1e9).fit(scores, sensitive_features=group)
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
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [300, 300, 7])
    X = rng.normal(size=(607, 2)) + (group == "b")[:, None]
    y = (X.sum(axis=1) + rng.logistic(size=607) > 0.5).astype(int)
    model = ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)
    assert model.small_groups_ == model.repair_.small_groups_ == ("c",)
    assert "1 of 3 groups has fewer than 30 rows and no map of its own" in model._repr_html_()
    assert "1 of 3 groups has fewer than 30 rows" in model.repair_._repr_html_()
    every = ft.QuantileRepairClassifier(LogisticRegression(), min_group_size=7).fit(X, y, sensitive_features=group)
    assert every.small_groups_ == ()
    assert "no map of its own" not in every._repr_html_()


@pytest.mark.parametrize("target", ["barycenter_w2", "barycenter", "pooled", "a"])
@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_groups_that_were_settled_before_are_repaired_as_such(policy, target):
    scores, group = scored({"a": 400, "b": 300, "c": 25, "d": 15})
    raw = ft.make_groups(group)
    for settled in (raw.settle("drop"), raw.settle("pool")):
        repair = ft.QuantileRepair(target, small_groups=policy).fit(scores, sensitive_features=settled)
        found = repair.transform(scores, sensitive_features=settled)
        np.testing.assert_array_equal(found, repair.transform(scores, sensitive_features=group))
        np.testing.assert_array_equal(found, repair.transform(scores, sensitive_features=raw))
    dropped = ft.QuantileRepair(target, small_groups="drop").fit(scores, sensitive_features=group)
    same = ft.QuantileRepair(target, small_groups=policy).fit(scores, sensitive_features=raw.settle("drop"))
    assert same.small_groups_ == dropped.small_groups_ == ("c", "d")
    np.testing.assert_allclose(
        same.transform(scores, sensitive_features=group),
        dropped.transform(scores, sensitive_features=group),
        atol=1e-12,
    )


# ----------------------------------------------------------------------------------------------- amount, after fitting


def fitted(amount=1.0):
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b"], 500)
    X = rng.normal(size=(500, 2)) + (group == "b")[:, None]
    y = (X.sum(axis=1) + rng.logistic(size=500) > 0.5).astype(int)
    model = ft.QuantileRepairClassifier(LogisticRegression(), amount=amount).fit(X, y, sensitive_features=group)
    return model, X, y, group


@pytest.mark.parametrize("how", ["attribute", "set_params"])
def test_an_amount_set_after_fit_takes_effect(how, tmp_path):
    model, X, _, group = fitted()
    half, *_ = fitted(0.5)
    if how == "attribute":
        model.amount = 0.5
    else:
        model.set_params(amount=0.5)
    expected = half.predict_proba(X, sensitive_features=group)
    np.testing.assert_array_equal(model.predict_proba(X, sensitive_features=group), expected)
    assert (model.amount, model.repair_.amount, model.get_params()["amount"]) == (0.5, 0.5, 0.5)
    again = ft.load(ft.save(model, tmp_path / "model.ft", people_per_point=1))
    np.testing.assert_allclose(again.predict_proba(X, sensitive_features=group), expected, atol=1e-12)
    again.amount = 0.0
    plain = model.estimator_.predict_proba(X)
    np.testing.assert_allclose(again.predict_proba(X, sensitive_features=group), plain, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "error"), [(1.5, ValueError), (-0.1, ValueError), (np.nan, ValueError), ("1", TypeError)]
)
def test_a_wrong_amount_is_refused_and_changes_nothing(wrong, error):
    model, X, _, group = fitted()
    before = model.predict_proba(X, sensitive_features=group)
    with pytest.raises(error, match="amount"):
        model.set_params(amount=wrong)
    assert model.amount == 1.0
    np.testing.assert_array_equal(model.predict_proba(X, sensitive_features=group), before)
