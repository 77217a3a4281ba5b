"""What the monitor reads is what the metrics read, and its floor is what shuffling says."""

import numpy as np
import pytest

from fairtransport import make_groups, metrics
from fairtransport.stream._monitor import MONITOR_BINS, Monitor
from fairtransport.stream._state import MAX_POINTS, History, _like


def seen(scores, groups, half_life=1e12, original=None):
    monitor = Monitor.new(len(groups), half_life)
    return monitor.after(scores, scores if original is None else original, groups)


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_disparity_is_that_of_the_metrics_within_the_resolution(n_groups):
    rng = np.random.default_rng(n_groups)
    group = rng.integers(n_groups, size=3000)
    scores = rng.beta(1 + group, 3)
    found = seen(scores, make_groups(group)).distances(None)
    exact = metrics.wasserstein_disparity(scores, sensitive_features=group)
    assert found.sum() == pytest.approx(exact, abs=n_groups / MONITOR_BINS)


def test_distance_to_a_fixed_target():
    rng = np.random.default_rng(0)
    scores, target = rng.beta(2, 3, 4000), np.sort(rng.beta(5, 3, 4000))
    cdf = np.searchsorted(target, np.linspace(0, 1, MONITOR_BINS + 1), side="right") / 4000
    (found,) = seen(scores, make_groups(np.zeros(4000, dtype=int))).distances(cdf)
    assert found == pytest.approx(np.abs(np.sort(scores) - target).mean(), abs=1 / MONITOR_BINS)


@pytest.mark.parametrize(("sizes", "shape"), [((1500, 500), (2, 3)), ((800, 100, 100), (1, 8)), ((50, 50), (0.5, 0.5))])
def test_the_noise_floor_is_that_of_shuffling(sizes, shape):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(len(sizes)), sizes)
    scores = rng.beta(*shape, group.size)
    found = seen(scores, make_groups(group)).noise_floor(None)
    shuffled = metrics.noise_floor(metrics.wasserstein_disparity, scores, sensitive_features=group, random_state=0)
    assert found == pytest.approx(shuffled.mean, rel=0.15)


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
