"""Pooled ranks, which do not depend on the scale of the scores, and sorted scores by group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._columns.compilation import FEW_ROWS, read_only
from fairtransport._validation import check_choice, check_length, check_real, check_vector, check_weights
from fairtransport.groups import Groups
from fairtransport.strata import Strata, make_strata
from fairtransport.transport.kernels.line import areas_between_groups, group_areas, pack_keys, rank_area
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import resolve_target


def pooled_ranks(scores: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    r"""Return the mid-rank of each score among all rows, as a share of the rows.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers.
    weights : array-like of shape (n,), optional
        A weight of k is equivalent to k copies of a row; equal when omitted.

    Returns
    -------
    ndarray of shape (n,)
        Within (0, 1) for every row of positive weight; tied scores have the same rank.

    Notes
    -----
    With F the distribution function of all scores, :math:`r(s) = \bigl(F(s^-) + F(s)\bigr) / 2`. Without weights this
    is ``(scipy.stats.rankdata(scores) - 0.5) / n``.

    Examples
    --------
    >>> pooled_ranks([3.0, -1.0, 3.0, 20.0])
    array([0.5  , 0.125, 0.5  , 0.875])
    """
    values = check_vector(scores, name="scores")
    masses = check_weights(weights, size=values.size, name="weights")
    order = np.argsort(values)
    ascending = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1], [True])))
    del ascending, values  # tables may be large
    cumulative = starts.astype(np.float64) if masses is None else np.append(0.0, np.cumsum(masses[order]))[starts]
    mid_ranks = cumulative[:-1] + cumulative[1:]
    mid_ranks /= 2.0 * cumulative[-1]
    del cumulative
    if mid_ranks.size < order.size:
        mid_ranks = np.repeat(mid_ranks, np.diff(starts))
    del starts
    ranks = np.empty(order.size)
    ranks[order] = mid_ranks
    return ranks


# Scores of several groups in one common order, from which all distances between groups are computed.

_MAX_OPERATIONS = 1 << 23  # of NumPy in place of compiled loops
_KEY_BITS = 63  # of the integers that encode a score and its group, without the sign


class DistanceSums(NamedTuple):
    """Sums of Wasserstein-1 distances: of the groups to their barycenter, to all rows, and between pairs of groups."""

    to_barycenter: float
    to_everyone: float
    between_pairs: float


@dataclass(frozen=True, eq=False, repr=False)
class SortedScores:
    """The scores of all groups in one common order."""

    groups: Groups
    values: Floats
    codes: NDArray[Any]
    masses: Floats | None
    totals: Floats
    separate: bool

    def __repr__(self) -> str:
        return f"SortedScores({self.groups.n_rows} rows in {len(self.groups)} groups)"

    @property
    def sizes(self) -> Floats:
        """Total weight of each group; the number of rows where there are no weights."""
        return self.totals[:-1]

    def samples(self) -> list[Sample]:
        """Return the distribution of each group's scores."""
        n_groups = len(self.groups)
        short = self.codes.astype(np.min_scalar_type(n_groups))  # NumPy uses a radix sort for short integers
        order = np.argsort(short, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=n_groups + 1))[:-1]
        return [self._sample(entries) for entries in np.split(order, ends)[:n_groups]]

    def everyone(self) -> Sample:
        """Return the distribution of all rows, each counted once even where groups overlap."""
        return self._sample(self.codes == len(self.groups) if self.separate else slice(None))

    def distances(self) -> Floats:
        """Return the Wasserstein-1 distance between every two groups: the area between their distribution functions."""
        if not self._is_small:
            return areas_between_groups(self.values, self.codes, self.masses, self.totals)
        areas = np.zeros((len(self.groups), len(self.groups)))
        for one, other in combinations(range(len(self.groups)), 2):
            at = np.flatnonzero((self.codes == one) | (self.codes == other))  # so that no other group decides rounding
            gaps = np.abs(self._functions[one, at[:-1]] - self._functions[other, at[:-1]])
            areas[one, other] = areas[other, one] = (gaps * np.diff(self.values[at])).sum()
        return areas

    @cached_property
    def distance_sums(self) -> DistanceSums:
        r"""Return three sums of distances, computed in one pass over the scores.

        With :math:`F_{(1)} \le \dots \le F_{(G)}` the groups' distribution functions, sorted at each v, the sum over
        pairs is :math:`\sum_{a < b} |F_a - F_b| = \sum_k (2k - G - 1) \, F_{(k)}`. The distribution function of the
        barycenter is a median of theirs: :math:`\sum_a |F_a - \bar F| = \sum_k \mathrm{sign}(2k - G - 1) F_{(k)}`.
        """
        if self._is_small:
            above, gaps = self._functions[:-1] - self._functions[-1], np.diff(self.values)
            ranked, to_everyone = (np.sort(above, axis=0) * gaps).sum(axis=1), (np.abs(above) * gaps).sum()
        else:
            ranked, to_everyone = group_areas(self.values, self.codes, self.masses, self.totals, self.separate)
        half = ranked.size // 2
        # Differences of the k-th highest and the k-th lowest; rounding errors must not make them negative.
        spread = np.maximum(ranked[::-1][:half] - ranked[:half], 0.0)
        coefficients = ranked.size - 1 - 2 * np.arange(half)
        return DistanceSums(float(spread.sum()), float(to_everyone), float(coefficients @ spread))

    def disparities(self, target: Any, score_range: tuple[float, float] | None) -> dict[str, float]:
        """Return the three disparities of the paper, the first one with respect to a target."""
        sums = self.distance_sums
        return {
            "wasserstein_disparity": self.to_target(target, score_range),
            "strong_demographic_disparity": sums.to_everyone,
            "strong_pairwise_disparity": sums.between_pairs,
        }

    def to_target(self, target: Any, score_range: tuple[float, float] | None) -> float:
        """Return the sum of the groups' distances to a target."""
        if isinstance(target, str) and target in {"barycenter", "pooled"}:
            sums = self.distance_sums
            return sums.to_barycenter if target == "barycenter" else sums.to_everyone
        samples, groups = self.samples(), self.groups
        resolved = resolve_target(
            target, samples, self.sizes, labels=groups.labels, names=groups.names, score_range=score_range
        )
        return sum(wasserstein(sample, resolved) for sample in samples)

    @property
    def _is_small(self) -> bool:
        n, n_groups = self.values.size, len(self.groups)
        return n <= FEW_ROWS and n * n_groups**2 <= _MAX_OPERATIONS

    @cached_property
    def _functions(self) -> Floats:
        """Each group's distribution function after every entry but the last, and everyone's."""
        steps = np.zeros((self.totals.size, self.values.size))
        masses = 1.0 if self.masses is None else self.masses
        steps[self.codes, np.arange(self.values.size)] = masses
        if not self.separate:
            steps[-1] = masses
        return np.cumsum(steps, axis=1)[:, :-1] / self.totals[:, None]

    def ranked(self) -> SortedScores:
        """Return the same entries with their mid-ranks among all rows in place of scores, as in `pooled_ranks`."""
        ends = np.append(np.flatnonzero(self.values[1:] != self.values[:-1]) + 1, self.values.size)  # of ties
        below: Floats = ends.astype(np.float64)
        if self.separate or self.masses is not None:
            masses = np.ones(self.values.size) if self.masses is None else self.masses
            below = np.cumsum(masses * (self.codes == len(self.groups)) if self.separate else masses)[ends - 1]
        ranks = np.append(0.0, below[:-1])
        ranks += below
        ranks /= 2.0 * below[-1]
        return replace(
            self, values=ranks if ends.size == self.values.size else np.repeat(ranks, np.diff(ends, prepend=0))
        )

    def _sample(self, entries: Any) -> Sample:
        return Sample.from_sorted(self.values[entries], None if self.masses is None else self.masses[entries])


def sort_scores(scores: ArrayLike, groups: Groups, sample_weight: ArrayLike | None = None) -> SortedScores:
    """Validate scores and weights, and sort the scores."""
    values = _of_groups(scores, groups)
    weights = check_weights(sample_weight, size=values.size)

    codes, rows = _entries(groups)
    separate = rows is not None
    if rows is not None:
        values = values[rows]
        weights = None if weights is None else weights[rows]
    if weights is None:
        totals = np.append(groups.counts, groups.n_rows).astype(np.float64)
        ascending, ordered_codes = _sort_with_codes(values, codes, int(codes.max()))
        return SortedScores(groups, ascending, ordered_codes, None, totals, separate)

    order = np.argsort(values)
    ordered_codes, masses = codes[order], weights[order]
    totals = np.bincount(ordered_codes, weights=masses, minlength=len(groups) + 1).astype(np.float64)
    if not separate:
        totals[-1] = masses.sum()
    n_empty = int(np.count_nonzero(~(totals[:-1] > 0)))
    if n_empty:
        raise ValueError(f"sample_weight is zero in all rows of {n_empty} of {len(groups)} groups.")
    return SortedScores(groups, values[order], ordered_codes, masses, totals, separate)


def _of_groups(scores: ArrayLike, groups: Groups) -> Floats:
    values = check_vector(scores, name="scores")
    if values.size != groups.n_rows:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {groups.n_rows}.")
    return values


def kept_strata(strata: Any, groups: Groups, every_row: Ints, kept: Ints, *, name: str = "strata") -> Strata:
    """Return the strata of the rows that a policy kept, from a column of every row."""
    made = make_strata(strata, n_groups=len(groups))
    check_length(range(made.n_rows), size=every_row.size, name=name)
    return made.select(kept)


def _entries(groups: Groups) -> tuple[NDArray[Any], Ints | None]:
    """Return the code and the row of each entry; None for the rows where every row belongs to exactly one group."""
    n_groups, counts = len(groups), groups.counts
    if len(groups.memberships) == 1 and counts.sum() == groups.n_rows:
        return read_only(groups.memberships[0]), None
    codes = np.arange(n_groups + 1, dtype=groups.memberships[0].dtype)
    return np.repeat(codes, np.append(counts, groups.n_rows)), np.concatenate([*groups.rows, np.arange(groups.n_rows)])


class _Keys(NamedTuple):
    """Ascending integers of scores and, in their last bits, groups; and what scores are computed from them with."""

    keys: Ints
    shift: int
    base: np.int64
    has_zeros: bool
    is_signed: bool


def _sorted_keys(values: Floats, codes: NDArray[Any], highest_code: int) -> _Keys | None:
    """Return the keys of scores and codes; None for few rows, or where 63 bits do not suffice for both."""
    if values.size <= FEW_ROWS:
        return None
    shift, is_signed = highest_code.bit_length(), bool(values.min() < 0.0)
    # The bits of positive numbers ascend with them.
    if not is_signed and int(values.max().view(np.int64)).bit_length() + shift <= _KEY_BITS:  # as of probabilities
        keys = np.empty(values.size, np.int64)
        pack_keys(np.ascontiguousarray(values).view(np.int64), codes, shift, keys)
        keys.sort()
        return _Keys(keys, shift, np.int64(0), has_zeros=False, is_signed=False)
    keys = np.abs(values).view(np.int64)
    low, high = int(keys.min()), int(keys.max())
    has_zeros = low == 0
    low = int(keys.min(where=keys > 0, initial=high)) if has_zeros else low
    if (high - low + 1).bit_length() + is_signed + shift > _KEY_BITS:
        return None
    base = np.int64(low - 1)
    np.subtract(keys, base, out=keys, where=keys > 0 if has_zeros else True)  # from 1 for the lowest one; 0 for 0
    if is_signed:
        np.negative(keys, out=keys, where=values < 0.0)
    keys <<= shift
    keys |= codes
    keys.sort()
    return _Keys(keys, shift, base, has_zeros, is_signed)


def _sort_with_codes(values: Floats, codes: NDArray[Any], highest_code: int) -> tuple[Floats, NDArray[Any]]:
    """Sort scores with their codes: in one sort of integers, where these suffice for both."""
    packed = _sorted_keys(values, codes, highest_code)
    if packed is None:
        order = np.argsort(values)
        return values[order], codes[order]
    keys = packed.keys
    ordered_codes = keys.astype(codes.dtype) & codes.dtype.type((1 << packed.shift) - 1)
    keys >>= packed.shift
    bits = np.abs(keys) if packed.is_signed else keys
    np.add(bits, packed.base, out=bits, where=bits > 0 if packed.has_zeros else True)
    if packed.is_signed:
        bits |= keys & np.iinfo(np.int64).min
    return bits.view(np.float64), ordered_codes


def mean_rank_distance(scores: ArrayLike, groups: Groups, sample_weight: ArrayLike | None = None) -> float:
    """Return the mean over pairs of groups of the distance between their pooled ranks."""
    codes, rows = _entries(groups)
    if sample_weight is None and rows is None and len(groups) == 2:
        packed = _sorted_keys(_of_groups(scores, groups), codes, 1)
        if packed is not None:
            return float(rank_area(packed.keys, int(groups.counts[1])))
    ordered = sort_scores(scores, groups, sample_weight).ranked()
    return ordered.distance_sums.between_pairs / comb(len(groups), 2)


# The unit in which distances between scores are measured.

#: What a distance between scores is measured in, unless it is a number.
SCALES = ("probability", "score", "standardized", "ranks")


class ScaledScores(NamedTuple):
    """Scores to compute distances from, the unit to divide these by, and the range of a target among such scores."""

    values: Floats
    unit: float
    score_range: tuple[float, float] | None


def scale_scores(scores: ArrayLike, scale: Any, sample_weight: ArrayLike | None = None) -> ScaledScores:
    """Validate scores for a scale."""
    values = check_vector(scores, name="scores")
    if not isinstance(scale, str):
        return ScaledScores(values, check_real(scale, name="scale", strict=True), None)
    check_choice(scale, SCALES, name="scale")
    if scale == "score":
        return ScaledScores(values, 1.0, None)
    weights = check_weights(sample_weight, size=values.size)
    if scale == "ranks":
        return ScaledScores(pooled_ranks(values, weights), 1.0, (0.0, 1.0))
    if scale == "standardized":
        deviation = float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))
        return ScaledScores(values, deviation or 1.0, None)
    n_outside = int(np.count_nonzero((values < 0) | (values > 1)))
    if n_outside:
        raise ValueError(
            f"scores has {n_outside} of {values.size} values outside [0, 1]; probabilities are needed. For other "
            "scores say in which unit they are measured: scale='score', 'standardized', 'ranks' or a number."
        )
    return ScaledScores(values, 1.0, (0.0, 1.0))
