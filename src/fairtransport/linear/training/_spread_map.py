"""One rising map for everyone, which gives trained scores the spread that the initial model's scores had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.transport.line import Sample
from fairtransport.transport.targets import w2_barycenter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["spread_logits", "spread_points"]

_MOST_POINTS = 256
_ROWS_FOR_EACH_POINT = 5  # no point is one person's score


def spread_points(
    trained: NDArray[np.float64],
    initial: NDArray[np.float64],
    rows: Sequence[NDArray[np.intp]],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return the knots of the map and their images.

    Parameters
    ----------
    trained, initial : ndarray of shape (n_rows,)
        Scores of the training rows by the two models.
    rows : sequence of ndarray
        Those of each group.
    weights : ndarray of shape (n_rows,), optional

    Returns
    -------
    ndarray of shape (2, n_points)
        Both rows ascend from 0 to 1.

    Notes
    -----
    The map carries the trained scores of everybody onto the Wasserstein-2 barycenter, by size of the groups, of the
    initial model's scores: quantile to quantile. It is the same for all groups, so groups that are distributed alike
    stay so, nobody changes places, and no group is needed to use it.
    """
    n_points = int(np.clip(len(trained) // _ROWS_FOR_EACH_POINT, 2, _MOST_POINTS))

    def sample(scores: NDArray[np.float64], part: NDArray[np.intp] | slice) -> Sample:
        return Sample.from_values(scores[part], None if weights is None else weights[part])

    sizes = [len(part) if weights is None else weights[part].sum() for part in rows]
    goal = _means(w2_barycenter([sample(initial, part) for part in rows], sizes), n_points)
    knots = _means(sample(trained, slice(None)), n_points)
    knots, first = np.unique(knots, return_index=True)
    images = np.add.reduceat(goal, first) / np.diff([*first, n_points])  # a tie goes to the mean of its images
    ends = np.array([[0.0, 1.0], [0.0, 1.0]])
    inner = (knots > 0.0) & (knots < 1.0)
    return np.column_stack((ends[:, :1], np.vstack((knots, images))[:, inner], ends[:, 1:]))


def _means(sample: Sample, n_points: int) -> NDArray[np.float64]:
    """Return means of neighbouring scores; a mean is nobody's."""
    return np.asarray(sample.equal_mass(8 * n_points).reshape(n_points, 8).mean(axis=1))


def spread_logits(logits: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logits of the scores' images; those of scores that round to 0 or 1 stay as they are."""
    scores = np.exp(-np.logaddexp(0.0, -logits))
    moved = np.interp(scores, *points)
    with np.errstate(divide="ignore"):
        found = np.log(moved) - np.log1p(-moved)
    return np.where(np.isfinite(found), found, logits)
