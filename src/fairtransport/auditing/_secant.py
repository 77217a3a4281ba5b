"""The largest roots of convex functions, for many functions at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["largest_roots"]

_MAX_ITER = 12
_TOL = 1e-3  # relative to the observed norm; far below the spread of the replicates


def largest_roots(
    measure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    observed: float,
    start: NDArray[np.float64],
    slope: float,
) -> NDArray[np.float64]:
    """Return where convex functions take a value for the last time, on the positive half-line; 0 where they do not.

    Parameters
    ----------
    measure : callable
        Evaluates each function at its own point.
    observed : float
        The value to reach.
    start : array of shape (n,)
        Points to the right of the roots.
    slope : float
        A bound on the slopes of the functions.

    Returns
    -------
    array of shape (n,)

    Notes
    -----
    A secant through two points to the right of the last root of a convex function crosses 0 between that root and those
    points, so the iterates decrease and never pass the root.

    Examples
    --------
    >>> largest_roots(lambda at: np.abs(at - np.array([1.0, 3.0])), 2.0, np.array([9.0, 9.0]), 1.0)
    array([3., 5.])
    """
    at, excess = start, measure(start) - observed
    slopes = np.full_like(at, slope)
    for _ in range(_MAX_ITER):
        new = np.maximum(at - excess / slopes, 0.0)
        new_excess = measure(new) - observed
        step = at - new
        moved = step > 1e-12 * (1 + at)
        secant = np.divide(excess - new_excess, step, out=np.zeros_like(at), where=moved)
        slopes = np.where(secant > 0, np.minimum(secant, slopes), np.where(moved, 1e-6 * slope, slopes))
        at, excess = new, new_excess
        if not np.any((at > 0) & (np.abs(excess) > _TOL * observed)):
            break
    return at
