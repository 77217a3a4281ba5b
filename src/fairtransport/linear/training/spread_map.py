"""One increasing map for all rows, which gives trained scores the spread of the initial model's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.transport.line import Sample
from fairtransport.transport.targets import w2_barycenter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["spread_logits", "spread_points", "spread_scores"]

_MAX_POINTS = 256
_ROWS_FOR_EACH_POINT = 5  # so that no point is one person's score


def spread_points(
    trained: NDArray[np.float64],
    initial: NDArray[np.float64],
    rows: Sequence[NDArray[np.intp]],
    weights: NDArray[np.float64] | None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> NDArray[np.float64]:
    """Return the knots of the map and their images.

    Parameters
    ----------
    trained, initial : ndarray of shape (n_rows,)
        Scores of the training rows by the two models.
    rows : sequence of ndarray
        Rows of each group.
    weights : ndarray of shape (n_rows,), optional
    bounds : (float, float) or None, default=(0.0, 1.0)
        Lowest and highest score, which are mapped to themselves; None where there are none.

    Returns
    -------
    ndarray of shape (2, n_points)
        Both rows ascend, between the bounds if there are any.

    Notes
    -----
    The map takes quantiles of all trained scores to quantiles of the Wasserstein-2 barycenter, weighted by group size,
    of the initial model's scores. It is the same for all groups, so groups with equal distributions keep them, ranks
    do not change, and no group is needed to use it.
    """
    n_points = int(np.clip(len(trained) // _ROWS_FOR_EACH_POINT, 2, _MAX_POINTS))

    def sample(scores: NDArray[np.float64], part: NDArray[np.intp] | slice) -> Sample:
        return Sample.from_values(scores[part], None if weights is None else weights[part])

    sizes = [len(part) if weights is None else weights[part].sum() for part in rows]
    target = _means(w2_barycenter([sample(initial, part) for part in rows], sizes), n_points)
    knots = _means(sample(trained, slice(None)), n_points)
    knots, first = np.unique(knots, return_index=True)
    images = np.add.reduceat(target, first) / np.diff([*first, n_points])  # a tie goes to the mean of its images
    points = np.vstack((knots, np.maximum.accumulate(images)))  # which rounding may let fall
    if bounds is None:
        return points if points.shape[1] > 1 else np.column_stack((points, points + 1.0))
    low, high = bounds
    return np.column_stack(((low, low), points[:, (knots > low) & (knots < high)], (high, high)))


def _means(sample: Sample, n_points: int) -> NDArray[np.float64]:
    """Return means of neighbouring scores."""
    return np.asarray(sample.equal_mass(8 * n_points).reshape(n_points, 8).mean(axis=1))


def spread_scores(scores: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mapped scores; beyond the first and the last point they keep their distance to it.

    Examples
    --------
    >>> spread_scores(np.array([0.0, 1.5, 5.0]), np.array([[1.0, 2.0], [10.0, 20.0]])).tolist()
    [9.0, 15.0, 23.0]
    """
    knots = points[0]
    return np.asarray(np.interp(scores, *points) + scores - np.clip(scores, knots[0], knots[-1]))


def spread_logits(logits: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logits of the mapped scores; logits of scores that round to 0 or 1 are unchanged."""
    scores = np.exp(-np.logaddexp(0.0, -logits))
    moved = spread_scores(scores, points)
    with np.errstate(divide="ignore"):
        mapped = np.log(moved) - np.log1p(-moved)
    return np.where(np.isfinite(mapped), mapped, logits)
