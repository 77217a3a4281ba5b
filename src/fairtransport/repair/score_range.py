"""The range of scores that a repair takes: given, or learned from the scores of fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_vector
from fairtransport.histograms import Grid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LEARNED", "UNIT", "check_in_range", "resolve_range"]

LEARNED = "learned"
UNIT = (0.0, 1.0)


def resolve_range(score_range: Any) -> tuple[float, float] | None:
    """Return the lowest and the highest score, or None where the range is learned.

    Examples
    --------
    >>> resolve_range((300, 850)), resolve_range("learned")
    ((300.0, 850.0), None)
    """
    if isinstance(score_range, str):
        if score_range == LEARNED:
            return None
        raise ValueError("range must be 'learned' or two numbers, such as (0, 1).")
    if score_range is None:
        raise TypeError("range must be 'learned' or two numbers, such as (0, 1); got None.")
    grid = Grid.over(score_range, 1)
    return grid.low, grid.high


def check_in_range(scores: ArrayLike, score_range: Any) -> NDArray[np.float64]:
    """Return scores as a finite vector; raise ValueError for those outside of a range that is given."""
    values, ends = check_vector(scores, name="scores"), resolve_range(score_range)
    low, high = (-np.inf, np.inf) if ends is None else ends
    n_outside = int(np.count_nonzero((values < low) | (values > high)))
    if n_outside:
        raise ValueError(
            f"scores has {n_outside} of {values.size} values outside [{low:g}, {high:g}]. Give the range of possible "
            "scores with range=(low, high), such as (1, 10) for deciles, or set range='learned' for scores without "
            "bounds, such as the predictions of a regression or logits."
        )
    return values
