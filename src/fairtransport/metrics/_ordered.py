"""Scores of several groups, sorted once; all distances between the groups come from that one order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_scores, check_weights
from fairtransport.groups import make_groups
from fairtransport.transport.kernels.areas import areas_between_groups, group_areas
from fairtransport.transport.kernels.read_only import read_only
from fairtransport.transport.kernels.sort_keys import lowest_positive, pack_keys, unpack_keys
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["OrderedScores", "Totals", "order_scores"]

_KEY_BITS = 64  # of the number that holds a score and its group


@dataclass(frozen=True)
class Totals:
    """Sums of Wasserstein-1 distances: of the groups to their barycenter, to everyone, and to one another."""

    to_barycenter: float
    to_everyone: float
    between_pairs: float


@dataclass(frozen=True, eq=False, repr=False)
class OrderedScores:
    """The groups' scores along one common order.

    Parameters
    ----------
    groups : Groups
    values : array of shape (n_entries,)
        Scores, ascending: one entry for each row, or, where groups overlap or leave rows out, one for each
        group of each row and one more for everyone.
    codes : array of shape (n_entries,)
        The group of each entry; the number of groups for everyone's.
    masses : array of shape (n_entries,), or None
        The weight of each entry; None where all are equal.
    totals : array of shape (n_groups + 1,)
        Each group's number of rows, or their total weight, and everyone's.
    separate : bool
        Whether everyone has entries apart from the groups'.
    """

    groups: Groups
    values: NDArray[np.float64]
    codes: NDArray[Any]
    masses: NDArray[np.float64] | None
    totals: NDArray[np.float64]
    separate: bool

    def __repr__(self) -> str:
        return f"OrderedScores({self.groups.n_rows} rows in {len(self.groups)} groups)"

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Each group's number of rows, or their total weight."""
        return self.totals[:-1]

    def samples(self) -> list[Sample]:
        """Return the distribution of each group's scores."""
        n_groups = len(self.groups)
        short = self.codes.astype(np.min_scalar_type(n_groups))  # NumPy sorts short integers by radix
        order = np.argsort(short, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=n_groups + 1))[:-1]
        return [self._sample(places) for places in np.split(order, ends)[:n_groups]]

    def everyone(self) -> Sample:
        """Return the distribution of all rows, each counted once even where groups overlap."""
        return self._sample(self.codes == len(self.groups) if self.separate else slice(None))

    def distances(self) -> NDArray[np.float64]:
        r"""Return W1 between any two of the groups.

        Notes
        -----
        The distance is the area between two distribution functions, which are constant between neighbouring
        scores v:

        .. math:: W_1(S_a, S_b) = \sum_i |F_a(v_i) - F_b(v_i)| \, (v_{i+1} - v_i).
        """
        return areas_between_groups(self.values, self.codes, self.masses, self.totals)

    def sums(self) -> Totals:
        r"""Return three sums of distances from one pass over the scores.

        Notes
        -----
        With :math:`F_{(1)} \le \dots \le F_{(G)}` the groups' distribution functions in order, at each v anew,
        and F everyone's, the sum over pairs needs no pair:

        .. math:: \sum_{a < b} |F_a - F_b| = \sum_k (2k - G - 1) \, F_{(k)}.

        Nor does the distance to the barycenter need the barycenter. Its quantile function is the median of the
        groups', so its distribution function is a median of theirs; where G is even and it lies between the two
        middle ones, the sum of the distances to it is the same wherever it lies:

        .. math:: \sum_a |F_a - \operatorname{median} F| = \sum_k \operatorname{sign}(2k - G - 1) \, F_{(k)}.
        """
        ranked, to_everyone = group_areas(self.values, self.codes, self.masses, self.totals, self.separate)
        half = ranked.size // 2
        # The k-th highest less the k-th lowest: rounding may not turn a distance negative.
        spread = np.maximum(ranked[::-1][:half] - ranked[:half], 0.0)
        times = ranked.size - 1 - 2 * np.arange(half)
        return Totals(float(spread.sum()), float(to_everyone), float(times @ spread))

    def _sample(self, places: Any) -> Sample:
        return Sample.from_sorted(self.values[places], None if self.masses is None else self.masses[places])


def order_scores(
    scores: ArrayLike,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    *,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> OrderedScores:
    """Check scores, groups and weights, and sort the scores once for all groups.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups.
    sample_weight : array-like of shape (n,), optional
        Weights; equal when omitted.
    grouping, missing, min_size
        As `fairtransport.make_groups` has them.

    Returns
    -------
    OrderedScores

    Examples
    --------
    >>> ordered = order_scores([0.75, 0.25, 0.25], ["a", "b", "a"])
    >>> ordered.values
    array([0.25, 0.25, 0.75])
    >>> float(ordered.distances()[0, 1])  # half of group a lies 0.5 above group b
    0.25
    """
    values = check_scores(scores)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    if values.size != groups.n_rows:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {groups.n_rows}.")
    weights = check_weights(sample_weight, size=values.size)

    codes, rows = _entries(groups)
    separate = rows is not None
    if rows is not None:
        values = values[rows]
        weights = None if weights is None else weights[rows]
    if weights is None:
        totals = np.append(groups.counts, groups.n_rows).astype(np.float64)
        ascending, ordered_codes = _sort_with_codes(values, codes, int(codes.max()))
        return OrderedScores(groups, ascending, ordered_codes, None, totals, separate)

    order = np.argsort(values)
    ordered_codes, masses = codes[order], weights[order]
    totals = np.bincount(ordered_codes, weights=masses, minlength=len(groups) + 1).astype(np.float64)
    if not separate:
        totals[-1] = masses.sum()
    without = int(np.count_nonzero(~(totals[:-1] > 0)))
    if without:
        raise ValueError(f"sample_weight is zero in all rows of {without} of {len(groups)} groups.")
    return OrderedScores(groups, values[order], ordered_codes, masses, totals, separate)


def _entries(groups: Groups) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Each entry's code and row; None for the rows where every row is in one group, and so is its own entry."""
    n_groups, counts = len(groups), groups.counts
    if len(groups.memberships) == 1 and counts.sum() == groups.n_rows:
        return read_only(groups.memberships[0]), None
    codes = np.arange(n_groups + 1, dtype=groups.memberships[0].dtype)
    return np.repeat(codes, np.append(counts, groups.n_rows)), np.concatenate([*groups.rows, np.arange(groups.n_rows)])


def _sort_with_codes(
    values: NDArray[np.float64], codes: NDArray[Any], highest_code: int
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Sort scores and their codes along with them, by one sort of numbers where a number can hold both."""
    highest = values.max()
    lowest = values.min() or min(lowest_positive(read_only(values)), highest)
    low, high = np.array([lowest, highest]).view(np.uint64).tolist()
    shift = highest_code.bit_length()
    if (high - low + 1).bit_length() + shift > _KEY_BITS:
        order = np.argsort(values)
        return values[order], codes[order]
    keys = np.empty(values.size, dtype=np.uint64)
    pack_keys(read_only(values).view(np.uint64), codes, np.uint64(low), np.uint64(shift), keys)
    keys.sort()
    ordered_codes = np.empty_like(codes)
    unpack_keys(keys, ordered_codes, np.uint64(low), np.uint64(shift))
    return keys.view(np.float64), ordered_codes
