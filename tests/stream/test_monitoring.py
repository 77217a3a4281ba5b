"""The alarm keeps its promise whatever the scores are like, and hears a change."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from fairtransport import make_groups, metrics
from fairtransport.stream._monitor import ALARM_BINS, MONITOR_BINS, DriftAlarm, Monitor, _ranks
from fairtransport.stream._state import MAX_POINTS, History, _like

DRAWS = {
    "smooth": lambda rng, n: rng.beta(1, 6, n),
    "one value": lambda rng, n: np.full(n, 0.3),  # noqa: ARG005
    "two values": lambda rng, n: rng.choice([0.1, 0.9], n),
    "at the ends": lambda rng, n: rng.integers(2, size=n).astype(float),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("rows", [1, 30])
def test_false_alarms_stay_below_the_rate(name, rows):
    # A rate of .05 is expected to ring at most 12.5 times in 250 batches; three deviations of a Poisson above that.
    rng, alarm, rung = np.random.default_rng(0), DriftAlarm.new(3, 0.05), 0
    known = make_groups(["a", "b", "c"])
    for _ in range(250):
        groups = known.encode(rng.choice(["a", "b", "c"], rows))
        alarm, rings = alarm.after(DRAWS[name](rng, rows), groups)
        rung += rings
    assert rung <= 12.5 + 3 * 12.5**0.5


def test_a_change_in_one_small_group_is_heard():
    rng, alarm = np.random.default_rng(0), DriftAlarm.new(2, 0.001)
    known = make_groups([0, 1])
    for batch in range(200):
        groups = known.encode((rng.random(100) < 0.9).astype(int))
        scores = rng.beta(1, 6, 100)
        if batch >= 150:
            few = groups.rows[0]
            scores[few] = rng.beta(3, 6, len(few))
        alarm, rings = alarm.after(scores, groups)
        assert not (rings and batch < 150)
        if rings:
            break
    assert 150 < batch < 175  # ten rows a batch: after some hundred of them


def test_after_an_alarm_the_new_world_is_the_usual_one():
    rng, alarm, when = np.random.default_rng(1), DriftAlarm.new(1, 0.001), []
    everyone = make_groups(["a"] * 50)
    for batch in range(300):
        low, high = (0.0, 0.5) if batch < 50 else (0.4, 0.9)
        alarm, rings = alarm.after(rng.uniform(low, high, 50), everyone)
        when += [batch] * rings
    assert when == [50]


def test_ranks_are_uniform_and_equal_a_count_by_hand():
    rng = np.random.default_rng(0)
    bins, counts, lots = rng.integers(0, 5, 400), np.zeros(ALARM_BINS), rng.random(400)
    counts[:5] = [3, 0, 2, 7, 1]
    found, seen = _ranks(bins, counts, lots), counts.copy()
    for own, lot, rank in zip(bins, lots, found, strict=True):
        assert rank == pytest.approx((seen[:own].sum() + lot * (seen[own] + 1)) / (seen.sum() + 1))
        seen[own] += 1
    assert (
        stats.kstest(_ranks(rng.integers(0, 5, 4000), np.zeros(ALARM_BINS), rng.random(4000)), "uniform").pvalue > 0.01
    )


def seen(scores, groups, half_life=1e12, original=None):
    monitor = Monitor.new(len(groups), half_life)
    return monitor.after(scores, scores if original is None else original, groups)


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_disparity_is_that_of_the_metrics_within_the_resolution(n_groups):
    rng = np.random.default_rng(n_groups)
    group = rng.integers(n_groups, size=3000)
    scores = rng.beta(1 + group, 3)
    monitor = seen(scores, make_groups(group), original=1 - scores)
    exact = metrics.wasserstein_disparity(scores, sensitive_features=group)
    assert monitor.distances(None).sum() == pytest.approx(exact, abs=n_groups / MONITOR_BINS)
    for original in (False, True):  # a reflection changes no distance
        exact = metrics.pairwise_disparity(scores, sensitive_features=group)
        assert monitor.disparity(original=original) == pytest.approx(exact, abs=1 / MONITOR_BINS)


def test_one_group_has_no_disparity():
    assert Monitor.new(2, 1e12).disparity() == Monitor.new(2, 1e12).noise_floor() == 0.0
    alone = seen(np.linspace(0, 1, 50), make_groups(np.zeros(50, dtype=int)))
    assert alone.disparity() == alone.noise_floor() == 0.0


def test_distance_to_a_fixed_target():
    rng = np.random.default_rng(0)
    scores, target = rng.beta(2, 3, 4000), np.sort(rng.beta(5, 3, 4000))
    cdf = np.searchsorted(target, np.linspace(0, 1, MONITOR_BINS + 1), side="right") / 4000
    (found,) = seen(scores, make_groups(np.zeros(4000, dtype=int))).distances(cdf)
    assert found == pytest.approx(np.abs(np.sort(scores) - target).mean(), abs=1 / MONITOR_BINS)


FLOORS = [((1500, 500), (2, 3)), ((800, 100, 100), (1, 8)), ((50, 50), (0.5, 0.5)), ((40,) * 60, (2, 3))]


@pytest.mark.parametrize(("sizes", "shape"), FLOORS)
def test_the_noise_floor_is_that_of_shuffling(sizes, shape):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(len(sizes)), sizes)
    scores = rng.beta(*shape, group.size)
    found = seen(scores, make_groups(group)).noise_floor()
    shuffled = metrics.noise_floor(metrics.pairwise_disparity, scores, sensitive_features=group, random_state=0)
    assert found == pytest.approx(shuffled.mean, rel=0.15)


def test_memory_does_not_grow_with_the_numbers_of_groups():
    tracemalloc.start()
    for n_groups in range(2, 80):
        seen(np.linspace(0, 1, n_groups), make_groups(np.arange(n_groups))).noise_floor()
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2**24
    assert most < 2**25


def test_old_rows_count_half_after_a_half_life():
    monitor, groups = Monitor.new(1, 100.0), make_groups(["a"] * 100)
    for value in (0.05, 0.95):
        monitor = monitor.after(np.full(100, value), np.full(100, value), groups)
    assert monitor.adjusted[0, 10] == pytest.approx(50)
    assert monitor.adjusted[0, 190] == pytest.approx(100)
    assert monitor.sizes[0] == pytest.approx(150**2 / (25 + 100))
    assert monitor.shares(50)[0, 2] == pytest.approx(1 / 3)


def test_a_history_keeps_its_ends_its_alarms_and_its_sums():
    history = History()
    alarms = {3, 4000, 9999}
    for batch in range(1, 10_001):
        values = {"disparity": 0.1, "noise_floor": 0.0, "moved": 0.0, "agreement": 1.0}
        history.add(batch=batch, rows=10 * batch, alarm=batch in alarms, updates=2, time=str(batch), **values)
        if batch == 5000:  # as a checkpoint would have it
            times, history = history.known_times(), History.from_array(history.array(), history.stride, history.waiting)
            history.times = times
    points = history.points()
    assert len(points) <= MAX_POINTS
    assert points[-1]["batch"] == 10_000
    assert points[-1]["rows"] == 100_000
    assert sum(point["alarm"] for point in points) == 3
    assert sum(point["updates"] for point in points) == 20_000
    assert all(point["time"] == str(point["batch"]) for point in points)
    assert len(history.times) <= 2 * MAX_POINTS


@pytest.mark.parametrize(
    ("shape", "stride", "waiting"), [((3, 7), 1, 0), ((3,), 1, 0), ((4001, 8), 1, 0), ((3, 8), 0, 0), ((3, 8), 1, -1)]
)
def test_a_history_of_a_forged_checkpoint_is_refused(shape, stride, waiting):
    assert len(History.from_array(np.zeros((3, 8)), 1, 0)) == 3
    with pytest.raises(ValueError, match=r"points|stride|waiting"):
        History.from_array(np.zeros(shape), stride, waiting)


@pytest.mark.parametrize(
    "change", [lambda a: a[:1], lambda a: a - 1, lambda a: a * np.nan, lambda a: a.astype(np.float32)]
)
def test_arrays_of_a_forged_checkpoint_are_refused(change):
    expected = Monitor.new(2, 100.0).arrays()
    stored = {f"monitor.{name}": array for name, array in expected.items()}
    assert set(_like(expected, stored, "monitor.")) == set(expected)
    with pytest.raises(ValueError, match="checkpoint"):
        _like(expected, {**stored, "monitor.weights": change(expected["weights"])}, "monitor.")
    with pytest.raises(ValueError, match="checkpoint"):
        _like(expected, {**stored, "monitor.more": expected["weights"]}, "monitor.")
