r"""Sums over the optimal coupling on the line, point by point, without forming the coupling.

A point s that covers the levels from ``low`` to ``high`` of its distribution is coupled with the same levels of the
other distribution, whose quantile function is Q and whose distribution function is F. Q(u) lies below s for u < F(s-)
and above it for u > F(s), so sums over the coupling are differences of levels:

.. math:: \int_{low}^{high} \mathrm{sign}(s - Q(u))\,du, \qquad \int_{low}^{high} |s - Q(u)|\,du.

The formulas take NumPy arrays and torch tensors alike; shapes are broadcast.
"""

from __future__ import annotations

from typing import Any

from fairtransport.transport._namespace import as_index, namespace

__all__ = ["area_below", "coupled_distance", "coupled_gradient", "level_index", "running_area"]


def coupled_gradient(low: Any, high: Any, below: Any, upto: Any) -> Any:
    """Return the sum of mass times sign(s - t) over the points t that a point s is coupled with.

    It is the derivative of the Wasserstein-1 distance with respect to s.

    Parameters
    ----------
    low, high : array or tensor
        Levels that the point covers in its distribution.
    below, upto : array or tensor
        Mass of the other distribution strictly below the point, and at or below it.

    Examples
    --------
    >>> import numpy as np
    >>> below = np.array([0.25, 0.5])
    >>> slope = coupled_gradient(np.array([0.0, 0.5]), np.array([0.5, 1.0]), below, below)
    >>> slope.tolist()  # the first point has half of its partners on either side, the second all above
    [0.0, -0.5]
    """
    xp = namespace(low)
    return xp.clip(below, low, high) - low - (high - xp.clip(upto, low, high))


def coupled_distance(point: Any, low: Any, high: Any, upto: Any, areas: Any) -> Any:
    """Return the sum of mass times abs(s - t) over the points t that a point s is coupled with.

    The parameters are those of `coupled_gradient`.

    ``areas`` are those below the other's quantile function up to ``low``, up to ``high`` and up to the level where it
    passes the point: ``upto`` clipped to the two.
    """
    middle = namespace(low).clip(upto, low, high)
    return point * (2.0 * middle - low - high) + areas[0] + areas[1] - 2.0 * areas[2]


def running_area(ascending: Any) -> Any:
    """Return the area below the quantile function of equally weighted values, up to where each value begins."""
    return (namespace(ascending).cumsum(ascending, axis=-1) - ascending) / ascending.shape[-1]


def level_index(levels: Any, size: int) -> Any:
    """Return the index of the value that covers each level, among ``size`` equally weighted ones."""
    xp = namespace(levels)
    return as_index(xp.clip(xp.floor(levels * size), 0, size - 1))


def area_below(levels: Any, index: Any, size: int, *, values: Any, running: Any) -> Any:
    """Return the area below the quantile function from 0 to each level.

    Parameters
    ----------
    levels : array or tensor
    index : array or tensor
        From `level_index`.
    size : int
        Number of values.
    values, running : array or tensor
        The values, and the result of `running_area`, at these indices.

    Examples
    --------
    >>> import numpy as np
    >>> ascending, levels = np.array([0.2, 0.6]), np.array([0.0, 0.5, 0.75, 1.0])
    >>> index = level_index(levels, 2)
    >>> area_below(
    ...     levels, index, 2, values=ascending[index], running=running_area(ascending)[index]
    ... ).round(3).tolist()
    [0.0, 0.1, 0.25, 0.4]
    """
    return running + (levels * size - index) / size * values
