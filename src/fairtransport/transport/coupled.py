r"""What the optimal coupling on the line does to single points, without making the coupling.

A point s that holds the levels from ``low`` to ``high`` of its own distribution is coupled with the same levels of the
other one, whose quantile function is Q and whose distribution function is F. Q(u) lies below s for u < F(s-) and above
it for u > F(s), so sums over the coupling are differences of levels:

.. math:: \int_{low}^{high} \mathrm{sign}(s - Q(u))\,du, \qquad \int_{low}^{high} |s - Q(u)|\,du.

The formulas take NumPy arrays and torch tensors alike; shapes are broadcast.
"""

from __future__ import annotations

from typing import Any

from fairtransport.transport._namespace import namespace, whole

__all__ = ["area_below", "coupled_distance", "coupled_pull", "place_of", "running_area"]


def coupled_pull(low: Any, high: Any, below: Any, upto: Any) -> Any:
    """Sum of mass times sign(s - t) over what a point is coupled with.

    Parameters
    ----------
    low, high : array or tensor
        Levels that the point holds in its own distribution.
    below, upto : array or tensor
        Mass of the other distribution strictly below the point, and at or below it.

    Examples
    --------
    >>> import numpy as np
    >>> pull = coupled_pull(np.array([0.0, 0.5]), np.array([0.5, 1.0]), np.array([0.25, 0.5]), np.array([0.25, 0.5]))
    >>> pull.tolist()  # the first point has half of its partners on either side, the second all above
    [0.0, -0.5]
    """
    xp = namespace(low)
    return xp.clip(below, low, high) - low - (high - xp.clip(upto, low, high))


def coupled_distance(point: Any, low: Any, high: Any, upto: Any, areas: Any) -> Any:
    """Sum of mass times abs(s - t) over what a point is coupled with; parameters as in `coupled_pull`.

    ``areas`` are those below the other's quantile function up to ``low``, up to ``high`` and up to the level where it
    passes the point: ``upto`` clipped to the two.
    """
    middle = namespace(low).clip(upto, low, high)
    return point * (2.0 * middle - low - high) + areas[0] + areas[1] - 2.0 * areas[2]


def running_area(ascending: Any) -> Any:
    """Area below the quantile function of equally weighted values, up to the lower end of each value's levels."""
    return (namespace(ascending).cumsum(ascending, axis=-1) - ascending) / ascending.shape[-1]


def place_of(levels: Any, size: int) -> Any:
    """Place of the value that holds each level, among ``size`` equally weighted ones."""
    xp = namespace(levels)
    return whole(xp.clip(xp.floor(levels * size), 0, size - 1))


def area_below(levels: Any, places: Any, size: int, *, values: Any, running: Any) -> Any:
    """Area below the quantile function from 0 to each level.

    Parameters
    ----------
    levels : array or tensor
    places : array or tensor
        From `place_of`.
    size : int
        Number of values.
    values, running : array or tensor
        The values there, and what `running_area` says there.

    Examples
    --------
    >>> import numpy as np
    >>> ascending, levels = np.array([0.2, 0.6]), np.array([0.0, 0.5, 0.75, 1.0])
    >>> at = place_of(levels, 2)
    >>> area_below(levels, at, 2, values=ascending[at], running=running_area(ascending)[at]).round(3).tolist()
    [0.0, 0.1, 0.25, 0.4]
    """
    return running + (levels * size - places) / size * values
