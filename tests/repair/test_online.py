"""``partial_fit`` of the repairs: maps that follow a stream."""

import pickle
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests import worlds

import fairtransport as ft
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.repair import OnlineSettings

BIN = 1 / 1024


def scores_of(n=400, seed=0, shift=0.0, groups=("a", "b")):
    rng = np.random.default_rng(seed)
    group = rng.choice(groups, n)
    return 1 / (1 + np.exp(-rng.normal(size=n) - (group != groups[0]) - shift * (group == groups[0]))), group


def disparity(repair, scores, group):
    return strong_pairwise_disparity(repair.transform(scores, sensitive_features=group), sensitive_features=group)


def stream(repair, scores, group, sizes):
    edges = np.cumsum([0, *sizes])
    for first, last in pairwise(edges):
        repair.partial_fit(scores[first:last], sensitive_features=group[first:last])
    return repair


def assert_same_repair(one, other):
    for mine, its in zip(one.maps_, other.maps_, strict=True):
        np.testing.assert_array_equal(mine.knots, its.knots)
        np.testing.assert_array_equal(mine.images, its.images)
    np.testing.assert_array_equal(one.counted_.masses, other.counted_.masses)


@pytest.mark.parametrize("target", ["barycenter", "barycenter_w2", "pooled", "b"])
def test_without_forgetting_it_is_fit_within_the_resolution(target):
    scores, group = scores_of(20_000)
    exact = ft.QuantileRepair(target).fit(scores, sensitive_features=group)
    endless = ft.QuantileRepair(target, online=OnlineSettings(1e12))
    stream(endless, scores, group, [1000, 1, 999, 18_000])
    inner = (scores > 0.05) & (scores < 0.95)  # where every bin has rows
    found = endless.transform(scores, sensitive_features=group)
    expected = exact.transform(scores, sensitive_features=group)
    # Score and image move by two bins and one; the maps are at most about twice as steep as the identity here.
    assert np.abs(found - expected)[inner].max() < 6 * BIN
    assert np.abs(found - expected).mean() < 2 * BIN
    assert endless.group_sizes_.tolist() == exact.group_sizes_.tolist()


def test_half_life_is_when_a_row_counts_half():
    repair = ft.QuantileRepair(online=OnlineSettings(100)).partial_fit(
        [0.1, 0.2, 0.3, 0.4] * 25, sensitive_features=["a", "b"] * 50
    )
    assert repair.counted_.weights.tolist() == [50.0, 50.0]
    scores, group = scores_of(100, seed=1)
    repair.partial_fit(scores, sensitive_features=group)
    new = [np.count_nonzero(group == "a"), np.count_nonzero(group == "b")]
    np.testing.assert_allclose(repair.counted_.weights, 25.0 + np.array(new))


def test_a_fitted_repair_goes_on_from_its_rows():
    scores, group = scores_of(600)
    repair = ft.QuantileRepair(online=OnlineSettings(1e12)).fit(scores, sensitive_features=group)
    was = repair.transform(scores, sensitive_features=group)
    repair.partial_fit(scores[:1], sensitive_features=group[:1])
    assert repair.counted_.rows.sum() == 601
    assert np.abs(repair.transform(scores, sensitive_features=group) - was).mean() < 0.01
    short = ft.QuantileRepair(online=OnlineSettings(100)).fit(scores, sensitive_features=group)
    short.partial_fit(scores[:1], sensitive_features=group[:1])
    assert short.counted_.weights.sum() == pytest.approx(1 + 100 / np.log(2) * 0.5**0.01)


def test_a_table_keeps_its_grid_and_range():
    rng = np.random.default_rng(0)
    points, sex = rng.uniform(300, 850, 500), rng.choice(["F", "M"], 500)
    table = pl.DataFrame({"points": points, "sex": sex})
    tables = ft.repair.TableRepair(score="points", sensitive_features="sex", range=(300, 850), n_bins=550)
    repair = tables.fit(table).repair_
    grid = repair.grid_
    repair.partial_fit(points[:50], sensitive_features={"sex": sex[:50]})
    assert repair.grid_ == grid
    found = tables.transform(table)["repaired"].to_numpy()
    np.testing.assert_allclose(found, repair.transform(points, sensitive_features=sex), atol=1e-9)


@pytest.mark.parametrize("through", ["memory", "file", "pickle"])
@pytest.mark.parametrize("begin", ["fit", "nothing"])
def test_a_stream_in_two_parts_is_the_same_stream(through, begin, tmp_path):
    scores, group = scores_of(400, seed=4)
    sizes = [260, 1, 9, 30, 100]

    def first():
        repair = ft.QuantileRepair(online=OnlineSettings(150))
        return repair.fit(*scores_of()[:1], sensitive_features=scores_of()[1]) if begin == "fit" else repair

    whole = stream(first(), scores, group, sizes)
    part = stream(first(), scores, group, sizes[:3])
    if through == "file":
        ft.save(part, tmp_path / "repair.ft")
        part = ft.load(tmp_path / "repair.ft")
    elif through == "pickle":
        part = pickle.loads(pickle.dumps(part))  # noqa: S301
    stream(part, scores[270:], group[270:], sizes[3:])
    assert_same_repair(part, whole)


def test_absent_groups_are_never_wholly_forgotten():
    scores, group = scores_of(400)
    repair = ft.QuantileRepair(online=OnlineSettings(10)).partial_fit(scores, sensitive_features=group)
    rows = group == "b"
    for _ in range(100):
        repair.partial_fit(scores[rows], sensitive_features=group[rows])
    assert repair.counted_.weights[0] == pytest.approx(10.0)
    shape = repair.counted_.by_group[0] / 10.0
    counted = ft.QuantileRepair().partial_fit(scores, sensitive_features=group).counted_.by_group[0]
    np.testing.assert_allclose(shape, counted / counted.sum(), atol=1e-12)


def test_new_groups_by_choice(tmp_path):
    scores, group = scores_of(400)
    later, of_later = scores_of(900, seed=1, groups=("b", "c"))
    repair = ft.QuantileRepair().fit(scores, sensitive_features=group)
    with pytest.raises(ValueError, match="none of the 2 known groups"):
        repair.partial_fit(later, sensitive_features=of_later)
    assert not hasattr(repair, "counted_")
    repair.set_params(groups=ft.GroupPolicy(new="adopt"))
    one = np.flatnonzero(of_later == "c")[:1]
    repair.partial_fit(later[one], sensitive_features=of_later[one])
    assert repair.groups_.labels == ("a", "b", "c")
    # One row says little: the new group's map is still near the identity.
    grid = np.linspace(0.1, 0.9, 9)
    assert np.abs(repair.transform(grid, sensitive_features=["c"] * 9) - grid).max() < 0.15
    repair.partial_fit(later, sensitive_features=of_later)
    both, of_both = np.append(scores, later), np.append(group, of_later)
    assert disparity(repair, both, of_both) < 0.1
    ft.save(repair, tmp_path / "repair.ft")
    again = ft.load(tmp_path / "repair.ft")
    assert_same_repair(stream(again, later, of_later, [50]), stream(repair, later, of_later, [50]))


def test_bounded_memory_purity_and_weights():
    scores, group = scores_of(1000)
    kept = scores.copy()
    repair = ft.QuantileRepair(online=OnlineSettings(100)).partial_fit(scores, sensitive_features=group)
    before, masses = repair.counted_, repair.counted_.masses.copy()
    stream(repair, scores, group, [1] * 30)
    np.testing.assert_array_equal(scores, kept)
    np.testing.assert_array_equal(before.masses, masses)
    assert repair.counted_.masses.shape == masses.shape == (1, 2, 1025)
    weights = np.random.default_rng(0).integers(1, 4, 100).astype(float)
    rows = np.repeat(np.arange(100), weights.astype(int))
    one = ft.QuantileRepair().partial_fit(scores[:100], sensitive_features=group[:100], sample_weight=weights)
    other = ft.QuantileRepair().partial_fit(scores[rows], sensitive_features=group[rows])
    np.testing.assert_array_equal(one.counted_.masses, other.counted_.masses)
    repair.fit(scores, sensitive_features=group)
    assert not hasattr(repair, "counted_")  # a new fit forgets the stream
    assert repair.grid_ is None


def people(n=800, seed=0, first=0.0):
    return worlds.people(n, seed, shift=(1.0, 0.0), first=first, coef=(1.0, 1.0), labels=("no", "yes"))


def test_a_classifier_is_followed_without_labels(tmp_path):
    X, y, group = people()
    model = ft.QuantileRepairClassifier(LogisticRegression(), repair=ft.QuantileRepair(online=OnlineSettings(300))).fit(
        X, y, sensitive_features=group
    )
    weights = model.estimator_.coef_.copy()
    new, _, of_new = people(2000, seed=1, first=2.0)
    kept, _, of_kept = people(3000, seed=2, first=2.0)

    def gap():
        scores = model.predict_proba(kept, sensitive_features=of_kept)[:, 1]
        return strong_pairwise_disparity(scores, sensitive_features=of_kept)

    before = gap()
    for first in range(0, 2000, 100):
        rows = slice(first, first + 100)
        model.partial_fit(new[rows], sensitive_features=of_new[rows])
    assert before > 0.2
    assert gap() < 0.05
    np.testing.assert_array_equal(model.estimator_.coef_, weights)
    ft.save(model, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft")
    for one in (model, again):
        one.partial_fit(kept[:7], sensitive_features=of_kept[:7])
    assert_same_repair(again.repair_, model.repair_)


def test_starts_of_a_classifier():
    X, y, group = people()
    base = LogisticRegression().fit(X, y)
    ours = ft.QuantileRepairClassifier(base).partial_fit(X, sensitive_features=group)
    assert ours.estimator_ is base
    assert ours.classes_.tolist() == ["no", "yes"]
    scores = ours.predict_proba(X, sensitive_features=group)[:, 1]
    assert strong_pairwise_disparity(scores, sensitive_features=group) < 0.01
    first = ft.QuantileRepairClassifier(LogisticRegression()).partial_fit(X, y, sensitive_features=group)
    by_fit = ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(
        first.predict_proba(X, sensitive_features=group), by_fit.predict_proba(X, sensitive_features=group)
    )
    with pytest.raises(ValueError, match="pass y, with both classes"):
        ft.QuantileRepairClassifier(LogisticRegression()).partial_fit(X, sensitive_features=group)
    first.set_params(repair=ft.QuantileRepair(groups=ft.GroupPolicy(new="adopt")))
    first.partial_fit(X[:2], sensitive_features=["a", "c"])
    assert first.repair_.groups_.labels == ("a", "b", "c")


def test_a_state_is_not_changed_by_its_update_and_partial_fit_is_that_update():
    scores, group = scores_of(600)
    repair = ft.QuantileRepair(online=OnlineSettings(200)).fit(scores[:400], sensitive_features=group[:400])
    state = repair.online_state()
    masses = state.histograms.masses.copy()
    later = state.update(scores[400:], sensitive_features=group[400:])
    np.testing.assert_array_equal(state.histograms.masses, masses)
    resumed = (
        ft.QuantileRepair(online=OnlineSettings(200)).fit(scores[:400], sensitive_features=group[:400]).resume(later)
    )
    assert_same_repair(resumed, repair.partial_fit(scores[400:], sensitive_features=group[400:]))


@pytest.mark.parametrize("half_life", [0.0, -1.0, None, np.nan])
def test_a_half_life_is_positive(half_life):
    with pytest.raises((TypeError, ValueError), match="half_life"):
        OnlineSettings(half_life)
