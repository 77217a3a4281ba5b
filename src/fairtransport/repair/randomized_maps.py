r"""Randomised scores with the same distribution in every group given the label: equalized odds at every threshold.

The receiver operating characteristic (ROC) curve of a group can be lowered by randomising, but not raised. The highest
curve that all groups can have is the pointwise minimum of their concave hulls. It is the hull of any of the groups, cut
off by the lines through the segments of the minimum. A cut by a line joins all scores between its two ends into one
class, in which only a draw distinguishes people. So each cut randomises the score further, and all cuts together
are a matrix of probabilities for each group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_length
from fairtransport.repair._score_counts import ScoreCounts
from fairtransport.transport.line import QuantileMap

_MIN_CLASS_ROWS = 10  # least number of training rows in a class of original scores
_SLICES = 200  # of the scores of a group, before the hull is taken
_TOLERANCE = 1e-12
SPLIT_MIX = np.uint64(0x9E3779B97F4A7C15)  # the increment of SplitMix64


@dataclass(frozen=True, eq=False, repr=False)
class RandomizedMaps:
    """The randomised repair of each group, from classes of original scores to classes of repaired ones."""

    cuts: tuple[Floats, ...]
    kernels: tuple[Floats, ...]
    levels: Floats
    target: Floats
    map_of_group: Ints

    def __post_init__(self) -> None:
        n_classes, n_maps = self.levels.size - 1, len(self.kernels)
        shapes = [(cuts.size + 1, n_classes) for cuts in self.cuts]
        if n_classes < 1 or n_maps == 0 or [kernel.shape for kernel in self.kernels] != shapes:
            raise ValueError("Randomised maps need a kernel for each pair of classes.")
        ascending = [np.all(cuts[1:] > cuts[:-1]) for cuts in self.cuts]
        ascending += [np.all(np.diff(values) >= 0) for values in (self.levels, self.target)]
        if not all(ascending) or self.levels[0] != 0.0 or self.levels[-1] != 1.0 or not self.target.size:
            raise ValueError("Cuts, levels and target of randomised maps must ascend, levels from 0 to 1.")
        fine = [np.all(kernel >= 0.0) and np.allclose(kernel.sum(axis=1), 1.0, atol=1e-9) for kernel in self.kernels]
        if not all(fine):
            raise ValueError("The rows of a kernel must be probabilities.")
        if np.any((self.map_of_group < 0) | (self.map_of_group >= n_maps)):
            raise ValueError("A group uses a map that does not exist.")

    def __repr__(self) -> str:  # may appear in logs, so without scores
        return f"RandomizedMaps({len(self.kernels)} maps to {self.levels.size - 1} classes)"

    @classmethod
    def fit(cls, counts: Sequence[ScoreCounts], target: Floats, map_of_group: Any) -> RandomizedMaps:
        """Return the randomised maps of groups to the highest ROC curve that all of them can have."""
        curves = [_Curve.of(one) for one in counts]
        common = _lower_envelope(curves)
        kernels = [curve.cut_down_to(common) for curve in curves]
        positives = sum(one.masses[1].sum() for one in counts) / sum(one.mass for one in counts)
        # The curve runs from the highest score down; (levels, heights) are the sum and the difference of the shares.
        above = (1.0 - positives) * (common[0] - common[1]) / 2 + positives * (common[0] + common[1]) / 2
        levels = np.clip(1.0 - above[::-1], 0.0, 1.0)
        levels[0], levels[-1] = 0.0, 1.0
        return cls(
            tuple(curve.cuts for curve in curves),
            tuple(np.ascontiguousarray(kernel[::-1, ::-1]) for kernel in kernels),
            np.maximum.accumulate(levels),
            np.asarray(target, dtype=np.float64),
            np.asarray(map_of_group, dtype=np.int64),
        )

    def quantile(self, levels: Floats) -> Floats:
        """Return quantiles of the target."""
        size = self.target.size
        return self.target[np.clip((levels * size).astype(np.int64), 0, size - 1)]

    def draw(self, scores: Floats, groups: NDArray[Any], draws: Floats) -> Floats:
        """Return a repaired score for each row."""
        result = np.empty(scores.size)
        maps = self.map_of_group[groups]
        for number in np.unique(maps).tolist():
            rows = np.flatnonzero(maps == number)
            classes = np.searchsorted(self.cuts[number], scores[rows], side="right")
            ends = np.cumsum(self.kernels[number], axis=1)
            ends /= ends[:, -1:]
            n_classes = ends.shape[1]
            flat = (ends + np.arange(len(ends))[:, None]).ravel()  # row after row, one unit apart
            chosen = np.searchsorted(flat, draws[rows] + classes, side="right") - classes * n_classes
            chosen = np.clip(chosen, 0, n_classes - 1)
            start = np.where(chosen > 0, ends[classes, chosen - 1], 0.0)
            width = ends[classes, chosen] - start
            share = np.clip(np.divide(draws[rows] - start, width, out=np.zeros(rows.size), where=width > 0), 0.0, 1.0)
            low, high = self.levels[chosen], self.levels[chosen + 1]
            result[rows] = self.quantile(low + share * (high - low))
        return result

    def expected_map(self, number: int) -> QuantileMap:
        """Return the mean repaired score over all draws, as a map that is constant within each class of scores."""
        size = self.target.size
        areas = np.interp(self.levels, np.arange(size + 1) / size, np.append(0.0, np.cumsum(self.target) / size))
        widths = np.diff(self.levels)
        means = np.divide(np.diff(areas), widths, out=self.quantile(self.levels[1:]), where=widths > 0)
        images, cuts = np.maximum.accumulate(self.kernels[number] @ means), self.cuts[number]
        if not cuts.size:
            return QuantileMap(np.array([0.5]), images).prepare()
        knots = np.column_stack((np.nextafter(cuts, -np.inf), cuts)).ravel()
        return QuantileMap(knots, np.repeat(images, 2)[1:-1]).prepare()


@dataclass(frozen=True, eq=False)
class _Curve:
    """The concave hull of a group's ROC curve, from the highest score down.

    With the shares x of label 0 and y of label 1 above a score, ``levels`` are x + y and ``heights`` y - x at the ends
    of the hull's segments: a rotation, in which no segment is vertical. ``cuts`` are the scores between the classes of
    scores that the segments stand for, ascending.
    """

    levels: Floats
    heights: Floats
    cuts: Floats

    @classmethod
    def of(cls, counts: ScoreCounts) -> _Curve:
        slices = counts.sliced(_SLICES, _MIN_CLASS_ROWS)
        shares = np.array([np.bincount(slices, share) for share in counts.shares])[:, ::-1]
        x, y = (np.append(0.0, np.cumsum(share)) for share in shares)
        x[-1] = y[-1] = 1.0
        kept = _concave_hull(x + y, y - x)
        # Slice k ends below the score where slice k + 1 begins; hulls count slices from the highest score down.
        n_slices = slices[-1] + 1
        first = np.searchsorted(slices, np.sort(n_slices - kept[1:-1]))
        cuts = (counts.values[first - 1] + counts.values[first]) / 2
        return cls((x + y)[kept], (y - x)[kept], cuts)

    def cut_down_to(self, common: tuple[Floats, Floats]) -> Floats:
        """Return, for each segment, the share of it that becomes each segment of a lower concave curve."""
        levels, heights = self.levels, self.heights
        shares = np.eye(levels.size - 1)  # of the original segments in each present one
        for index in _middle_out(common[0].size - 1):
            (start, end), (low, high) = common[0][index : index + 2], common[1][index : index + 2]
            line = low + (levels - start) * (high - low) / (end - start)
            over = heights - line
            inside = np.flatnonzero(over > _TOLERANCE)
            if not inside.size:
                continue
            first, last = inside[0] - 1, inside[-1] + 1  # the curve meets the line on the segments at both ends
            left = np.clip(-over[first] / (over[first + 1] - over[first]), 0.0, 1.0)
            right = np.clip(over[last - 1] / (over[last - 1] - over[last]), 0.0, 1.0)
            a, b = (
                levels[first] + left * (levels[first + 1] - levels[first]),
                levels[last - 1] + right * (levels[last] - levels[last - 1]),
            )
            at = low + (np.array([a, b]) - start) * (high - low) / (end - start)
            joined = shares[first:last].sum(axis=0) - left * shares[first] - (1.0 - right) * shares[last - 1]
            shares = np.vstack(
                (shares[:first], left * shares[first], joined, (1.0 - right) * shares[last - 1], shares[last:])
            )
            levels = np.concatenate((levels[: first + 1], [a, b], levels[last:]))
            heights = np.concatenate((heights[: first + 1], at, heights[last:]))
        middles = (levels[1:] + levels[:-1]) / 2
        owner = np.clip(np.searchsorted(common[0], middles, side="right") - 1, 0, common[0].size - 2)
        kernel = np.zeros((shares.shape[1], common[0].size - 1))
        np.add.at(kernel.T, owner, np.clip(shares, 0.0, 1.0))
        return kernel / kernel.sum(axis=1, keepdims=True)


def _concave_hull(levels: Floats, heights: Floats) -> Ints:
    """Return the indices of the points on the concave hull of a curve; levels ascend, and may repeat."""
    hull: list[int] = []
    for index in range(levels.size):
        while len(hull) >= 2:
            first, middle = hull[-2], hull[-1]
            rise = (heights[index] - heights[first]) * (levels[middle] - levels[first])
            if (heights[middle] - heights[first]) * (levels[index] - levels[first]) > rise + _TOLERANCE:
                break
            hull.pop()
        if not hull or levels[index] > levels[hull[-1]]:
            hull.append(index)
    return np.array(hull)


def _lower_envelope(curves: Sequence[_Curve]) -> tuple[Floats, Floats]:
    """Return the pointwise minimum of concave curves, at the ends of its segments."""
    levels = np.unique(np.concatenate([curve.levels for curve in curves]))
    heights = np.array([np.interp(levels, curve.levels, curve.heights) for curve in curves])
    crossings = [levels]
    for index, one in enumerate(heights):
        gaps = heights[:index] - one
        before, after = gaps[:, :-1], gaps[:, 1:]
        at = np.nonzero(before * after < 0)
        share = before[at] / (before[at] - after[at])
        crossings.append(levels[at[1]] + share * np.diff(levels)[at[1]])
    levels = np.unique(np.concatenate(crossings))
    levels = levels[np.append(True, np.diff(levels) > _TOLERANCE)]
    levels[0], levels[-1] = 0.0, 2.0
    lowest = np.min([np.interp(levels, curve.levels, curve.heights) for curve in curves], axis=0)
    kept = _concave_hull(levels, lowest)
    return levels[kept], lowest[kept]


def _middle_out(size: int) -> list[int]:
    """Return the numbers below a size, the middle one first, then the middles of both halves, and so on.

    A class that is cut again passes people on to its neighbours. In this order, people are passed on only a few times.
    """
    order, spans = [], [(0, size)]
    while spans:
        low, high = spans.pop(0)
        if low < high:
            middle = (low + high) // 2
            order.append(middle)
            spans += [(low, middle), (middle + 1, high)]
    return order


def row_draws(scores: Floats, groups: NDArray[Any], random_state: int, keys: Any = None) -> Floats:
    """Return a number within [0, 1) for each row, which looks random and is always the same for the same row."""
    seed = mixed_bits(np.array([random_state], dtype=np.uint64))
    if keys is not None:
        texts = np.asarray(keys)
        check_length(texts, size=scores.size, name="keys")
        n_missing = int(np.count_nonzero(texts != texts)) + sum(key is None for key in texts.tolist())  # noqa: PLR0124
        if n_missing:
            raise ValueError(f"{n_missing} of {scores.size} keys are missing; rows without one would share a draw.")
        known, index = np.unique(texts.astype(str), return_inverse=True)
        hashed = [int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") for key in known]
        bits = mixed_bits(np.array(hashed, dtype=np.uint64) ^ seed)[index.ravel()]
        return _unit(bits)
    # Equal rows may get scores that differ in the last bits, in a batch of another size or on another machine.
    rounded = np.round(scores, 10) + 0.0
    bits = mixed_bits(rounded.view(np.uint64) ^ seed) + groups.astype(np.uint64)
    order = np.argsort(bits, kind="stable")
    starts = np.append(True, bits[order][1:] != bits[order][:-1])
    position = np.arange(scores.size)
    occurrence = np.empty(scores.size, dtype=np.uint64)
    occurrence[order] = position - np.maximum.accumulate(np.where(starts, position, 0))
    return _unit(mixed_bits(mixed_bits(bits) + occurrence))


def mixed_bits(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of SplitMix64: neighbouring numbers give unrelated bits."""
    bits = bits + SPLIT_MIX
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _unit(bits: NDArray[np.uint64]) -> Floats:
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
