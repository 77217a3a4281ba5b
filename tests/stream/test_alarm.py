"""The alarm keeps its promise whatever the scores are like, and hears a change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairtransport import make_groups
from fairtransport.stream._monitor import ALARM_BINS, DriftAlarm, _ranks, uniform_at

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


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_lots_are_a_function_of_their_place(sizes):
    whole = uniform_at(3, 0, sum(sizes))
    starts = np.cumsum([0, *sizes[:-1]])
    parts = [uniform_at(3, int(start), size) for start, size in zip(starts, sizes, strict=True)]
    assert (np.concatenate(parts) == whole).all()
    assert ((whole >= 0) & (whole < 1)).all()
