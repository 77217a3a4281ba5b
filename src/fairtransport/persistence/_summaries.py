r"""Summaries of scores by points that each represent several people.

The map of a repair has a knot at every distinct training score, and a target consists of scores. A file stores neither,
but points that each represent at least ``people`` rows. A score that so many rows share is stored as it is. Between
such scores, neighbouring ones and their images are replaced by their means; fewer than ``people`` rows between
two shared scores get no point. Beyond the first and the last point, the line through the next two is extended by half
of their distance, so that the extreme scores of a group are not all mapped to one score.

The map through the points is non-decreasing and piecewise linear, as the original map is. The largest change of a
repaired score, :math:`\max_s |T'(s) - T(s)|`, is therefore attained at a knot of one of them, and computed exactly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport.histograms import Grid
from fairtransport.repair.group_maps import move_scores
from fairtransport.transport.line import QuantileMap

MAX_POINTS = 1 << 14


class Change(NamedTuple):
    """Change of scores by a summary: the largest, and the mean over the training rows."""

    largest: float
    mean: float


NO_CHANGE = Change(0.0, 0.0)


def summarise_map(
    carry: QuantileMap,
    rows: Ints,
    people: int,
    grid: Grid | None = None,
    score_range: tuple[float, float] | None = (0.0, 1.0),
) -> tuple[QuantileMap, Ints, Change]:
    """Return the map through points of at least ``people`` rows, their rows, and the change."""
    if people <= 1:
        return carry, rows, NO_CHANGE
    filled = np.flatnonzero(rows)
    inner = slice(filled[0], filled[-1] + 1) if filled.size else slice(0, rows.size)
    counts = rows[inner]
    first, last = _blocks(counts, _threshold(counts, people))
    points = np.column_stack([_means(one[inner], counts, first, last) for one in (carry.knots, carry.images)])
    before = after = points[:0]
    if counts.size < rows.size:  # the knots before and after those with rows are not scores of people, and stay
        outer = np.column_stack((carry.knots, carry.images))
        before, after = outer[: inner.start], outer[inner.stop :]
    elif len(points) > 1:
        low, high = (-np.inf, np.inf) if score_range is None else score_range
        before = _beyond(points[0], points[1], low, high)[: int(first[0] < last[0])]
        after = _beyond(points[-1], points[-2], low, high)[: int(first[-1] < last[-1])]
    knots, images = np.concatenate((before, points, after)).T
    behind = np.pad(_sums(counts, first, last), (len(before), len(after)))  # no rows are at the ends
    if grid is not None:
        knots = grid.nodes[np.rint((knots - grid.low) * grid.scale).astype(np.int64).clip(0, grid.n_bins)]
    rising = np.append(True, knots[1:] > knots[:-1])  # means of scores that differ by rounding only may be equal
    short = QuantileMap(knots[rising], np.maximum.accumulate(images)[rising])

    def moved(one: QuantileMap, points: Floats) -> Floats:
        codes = np.zeros(points.size, dtype=np.uint8)
        return move_scores(points, codes, [one], 1.0, extrapolate=score_range is None)

    where = np.union1d(carry.knots, short.knots)
    mean = np.average(np.abs(moved(short, carry.knots) - carry.images), weights=rows)
    largest = np.abs(moved(short, where) - moved(carry, where)).max()
    return short, behind[rising], Change(float(largest), float(mean))


def summarise_quantiles(values: Floats, people: int, n_rows: float) -> tuple[Floats, Change]:
    """Return ascending values of equal mass with at least ``people`` rows behind each distinct one, and the change."""
    if people <= 1:
        return values, NO_CHANGE
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    repeats = np.diff(np.append(starts, values.size))
    shared = np.maximum(1, (repeats - 1) * n_rows // values.size).astype(np.int64)
    first, last = _blocks(shared, people)
    means = _means(values[starts], repeats, first, last)
    # A score without a point is assigned to the nearest point.
    owner = np.searchsorted((first[1:] + last[:-1]) / 2.0, np.arange(starts.size), side="left")
    summary = np.repeat(means[owner], repeats)
    moved = np.abs(summary - values)
    return summary, Change(float(moved.max()), float(moved.mean()))


def _threshold(rows: Ints, people: int) -> int:
    """Return the least number of rows per point, which is larger if there would be too many points."""
    return people if rows.size <= MAX_POINTS + 1 else max(people, math.ceil(rows.sum() / MAX_POINTS))


def _blocks(rows: Ints, people: int) -> tuple[Ints, Ints]:
    """Return the first and last knot of each block; every block has ``people`` rows, if all knots together have."""
    shared = rows >= people
    light = np.where(shared, 0, rows)
    run = np.cumsum(shared)
    before = np.cumsum(light) - light
    # Where the counts of knots differ, blocks of `width` rows still have `people`, wherever their borders fall.
    width = people + int(light.max(initial=1)) - 1
    number = (before - before[np.searchsorted(run, run)]) // max(width, 1)
    border = shared | np.append(True, shared[:-1]) | np.append(True, number[1:] != number[:-1])
    first = np.flatnonzero(border)
    size = np.add.reduceat(rows, first)
    short = size < people
    # The last block of a run may be short. It is merged with the block before it, unless that is a shared score.
    joined = short & np.append(False, ~shared[first[:-1]])
    first, short = first[~joined], short[~joined]
    last = np.append(first[1:], rows.size) - 1
    kept = ~short
    if not kept.any():
        return np.array([0]), np.array([rows.size - 1])
    return first[kept], last[kept]


def _means(values: Floats, rows: Ints, first: Ints, last: Ints) -> Floats:
    """Return the mean value of the rows of each block, clipped to the values of the block against rounding."""
    means = _sums(values * rows, first, last) / _sums(rows, first, last)
    return np.clip(means, values[first], values[last])


def _beyond(end: Floats, inner: Floats, low: float, high: float) -> Floats:
    """Return, as one row, the point on the line that is half as far from the end as the inner one, within the range."""
    step = end - inner
    available = np.where(step > 0, high - end, end - low)
    share = min([0.5, *(available[step != 0] / np.abs(step[step != 0]))])
    return np.clip(end + share * step, low, high)[None]


def _sums(values: NDArray[Any], first: Ints, last: Ints) -> NDArray[Any]:
    edges = np.column_stack((first, last + 1)).ravel()
    return np.add.reduceat(np.append(values, values.dtype.type(0)), edges)[::2]
