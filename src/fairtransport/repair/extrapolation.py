"""Scores moved by quantile maps, also beyond the scores that the maps were computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.many_maps import move_by_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.transport.line import QuantileMap

__all__ = ["move_scores"]


def move_scores(
    scores: NDArray[np.float64],
    codes: NDArray[Any],
    maps: Sequence[QuantileMap],
    amount: float,
    *,
    extrapolate: bool,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    r"""Return each score moved towards its image under the map of its code.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    codes : ndarray of shape (n,)
        Unsigned integers.
    maps : sequence of QuantileMap
    amount : float
    extrapolate : bool
        Whether scores beyond the first and the last knot are shifted as far as the score at that knot. Otherwise they
        have its image.
    n_threads : int, default 1

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    With the knot k nearest to a score s beyond it and the map T,

    .. math:: T(s) = T(k) + (s - k),

    which is continuous, keeps the order, and commutes with increasing affine maps of all scores.

    Examples
    --------
    >>> from fairtransport.transport.line import QuantileMap
    >>> carry = QuantileMap(np.array([10.0, 20.0]), np.array([15.0, 20.0]))
    >>> move_scores(np.array([8.0, 20.0, 30.0]), np.zeros(3, dtype=np.uint8), [carry], 1.0, extrapolate=True)
    array([13., 20., 30.])
    """
    if not extrapolate:
        return move_by_code(scores, codes, maps, amount, n_threads=n_threads)
    lowest, highest = (np.array([carry.knots[end] for carry in maps])[codes] for end in (0, -1))
    inside = np.clip(scores, lowest, highest)
    return move_by_code(inside, codes, maps, amount, n_threads=n_threads) + (scores - inside)
