"""Summaries of maps and targets: enough people behind each point, and the change that is stated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairtransport.persistence._summaries import _blocks, summarise_map, summarise_quantiles
from fairtransport.transport.line import QuantileMap, quantile_map, wasserstein

counts = arrays(np.int64, st.integers(1, 60), elements=st.integers(1, 12))


def some_map(n, seed=0, a=2.0, b=3.0):
    rng = np.random.default_rng(seed)
    return quantile_map(rng.beta(a, b, n), rng.random(n))


@given(counts, st.integers(2, 10))
def test_every_block_has_enough_people_and_shared_scores_stay_alone(rows, people):
    first, last = _blocks(rows, people)
    assert (first <= last).all()
    assert (first[1:] > last[:-1]).all()
    sizes = np.array([rows[a : b + 1].sum() for a, b in zip(first, last, strict=True)])
    if rows.sum() >= people:
        whole = first.size == 1 and first[0] == 0 and last[0] == rows.size - 1
        assert whole or (sizes >= people).all()
    shared = np.flatnonzero(rows >= people)
    alone = {(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True)}
    assert all((place, place) in alone for place in shared.tolist())
    left_out = rows.sum() - sizes.sum()
    assert left_out < people * (shared.size + 1)


@given(counts, st.integers(2, 8), st.integers(0, 99))
def test_the_stated_change_is_the_largest_and_the_map_never_descends(rows, people, seed):
    rng = np.random.default_rng(seed)
    knots, images = np.unique(rng.random(rows.size)), np.sort(rng.random(rows.size))
    carry = QuantileMap(knots, images[: knots.size])
    short, behind, change = summarise_map(carry, rows[: knots.size], people)
    points = np.append(np.linspace(0, 1, 2001), knots)
    moved = np.abs(short(points) - carry(points))
    assert moved.max() <= change.largest + 1e-12
    assert moved[-knots.size :].max() >= change.mean - 1e-12
    assert (np.diff(short(np.sort(points))) >= 0).all()
    assert (short(points) >= 0).all()
    assert (short(points) <= 1).all()
    assert behind.size == short.knots.size
    assert behind.sum() <= rows.sum()


def test_scores_that_many_share_are_kept_exactly():
    carry = QuantileMap(np.array([0.1, 0.2, 0.5, 0.8]), np.array([0.0, 0.3, 0.6, 0.9]))
    short, behind, change = summarise_map(carry, np.array([50, 1, 70, 60]), 5)
    assert short.knots.tolist() == [0.1, 0.5, 0.8]
    assert short.images.tolist() == [0.0, 0.6, 0.9]
    assert behind.tolist() == [50, 70, 60]
    assert change.largest == pytest.approx(0.3 - 0.15)


def test_one_person_a_point_changes_nothing():
    carry, rows = some_map(50), np.ones(50, dtype=int)
    assert summarise_map(carry, rows, 1) == (carry, rows, (0.0, 0.0))
    values = np.sort(np.random.default_rng(0).random(20))
    assert summarise_quantiles(values, 1, 20)[0] is values


@given(st.integers(10, 300), st.integers(2, 8), st.integers(0, 99))
def test_quantiles_keep_size_order_and_mean_nearly(n_rows, people, seed):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.random(n_rows))
    values = rows[(np.arange(512) * n_rows) // 512]  # fewer rows than values: they repeat
    summary, change = summarise_quantiles(values, people, n_rows)
    assert summary.shape == values.shape
    assert (np.diff(summary) >= 0).all()
    assert np.abs(summary - values).max() == pytest.approx(change.largest)
    assert wasserstein(summary, values) == pytest.approx(change.mean)
    if n_rows >= 2 * people:
        _, repeats = np.unique(summary, return_counts=True)
        assert repeats.min() * n_rows / 512 > people - 2  # a row more or less fits between two levels
    assert np.isin(summary, rows).mean() < 0.1 or n_rows < people


def test_a_score_that_many_share_stays_in_the_target():
    values = np.repeat([0.25, 0.5, 0.75], [100, 200, 212])
    assert summarise_quantiles(values, 5, n_rows=1000)[0].tolist() == values.tolist()
    assert np.unique(summarise_quantiles(values, 5, n_rows=3)[0]).size == 1  # three people
