"""What every penalty answers, and the cells (stratum x group) it works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairtransport._validation import check_length, check_scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["Cell", "Penalty", "PenaltyTerms", "cells", "check_targets"]


@dataclass(frozen=True, eq=False)
class PenaltyTerms:
    """A penalty's answer.

    Attributes
    ----------
    value : float
        Sum over groups of the distance to the target (strata: weighted by their share of rows).
    gradient : ndarray of shape (n_rows,)
        Derivative of ``value`` with respect to each score.
    by_group : ndarray of shape (n_strata, n_groups)
        The distances that were summed; NaN where a cell has no rows.
    """

    value: float
    gradient: NDArray[np.float64]
    by_group: NDArray[np.float64]


class Penalty(Protocol):
    """The one interface that learners know."""

    def value_and_gradient(self, scores: ArrayLike, groups: Groups, *, strata: ArrayLike | None = None) -> PenaltyTerms:
        """Value, gradient with respect to the scores, and the parts of the sum."""
        ...


@dataclass(frozen=True, eq=False)
class Cell:
    """The rows of one group within one stratum, and the stratum's share of all rows."""

    stratum: int
    group: int
    rows: NDArray[np.int64]
    share: float


def check_targets(targets: Any) -> tuple[NDArray[np.float64], ...]:
    """Return one vector of target scores for each stratum; one plain vector means one stratum."""
    nested = isinstance(targets, (list, tuple)) and len(targets) > 0 and np.ndim(targets[0]) == 1
    return tuple(check_scores(t, name="target") for t in (targets if nested else [targets]))


def cells(scores: NDArray[np.float64], groups: Groups, strata: ArrayLike | None, n_strata: int) -> Iterator[Cell]:
    """Walk over the non-empty cells.

    Parameters
    ----------
    scores : ndarray
        Used for its length only.
    groups : Groups
        Row lists.
    strata : array-like of int, optional
        Codes from 0 to ``n_strata - 1``, one for each row.
    n_strata : int
        How many strata the penalty was made for.
    """
    if groups.n_rows != len(scores):
        raise ValueError(f"sensitive features have {groups.n_rows} rows, but there are {len(scores)} scores.")
    if strata is None:
        if n_strata != 1:
            raise ValueError(f"this penalty was made for {n_strata} strata; strata= is needed.")
        codes = np.zeros(len(scores), dtype=np.int64)
    else:
        codes = np.asarray(strata)
        check_length(codes, size=len(scores), name="strata")
        if codes.dtype.kind not in "iub" or (len(codes) and (codes.min() < 0 or codes.max() >= n_strata)):
            raise ValueError(f"strata must be whole numbers from 0 to {n_strata - 1}, one for each row.")
    shares = np.bincount(codes.astype(np.int64), minlength=n_strata) / max(len(codes), 1)
    for stratum in range(n_strata):
        for group, rows in enumerate(groups.rows):
            inside = rows if n_strata == 1 else rows[codes[rows] == stratum]
            if len(inside):
                yield Cell(stratum, group, inside, float(shares[stratum]))
