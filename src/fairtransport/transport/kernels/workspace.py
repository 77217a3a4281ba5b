"""Arrays that the stochastic solver writes to on the way, allocated once so that its loop allocates nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Workspace", "make_workspace"]

_CACHE_LINE = 64  # bytes


class Workspace(NamedTuple):
    """Scratch arrays of one run.

    Attributes
    ----------
    weights, gradient : ndarray of shape (n_models, n_columns + 2)
        Parameters and their gradient, with one more column for slots that a packed row does not need.
    drawn : ndarray of shape (batch,)
        Rows of the current group's batch.
    logits, scores, target_scores : ndarray of shape (padded,)
        The batch of the group, and the scores drawn from the target.
    table, target_table : ndarray of shape (n_degrees, padded)
        Chebyshev polynomials at the scores.
    coefficients, moments, target_moments : ndarray of shape (n_degrees,)
        A dual variable, and its gradient, in terms of these polynomials.
    dual, target_dual : ndarray of shape (width,)
        Coefficients of the Fourier features, and their gradient.
    f, h, alpha : ndarray of shape (padded,)
        Values of the dual variables, and the slope of the conjugate.
    surplus, target_surplus : ndarray of shape (padded,)
        1 - alpha of each score and of each target score.
    score_gradient, logit_gradient : ndarray of shape (padded,)
        Derivative of the objective with respect to each score and to each logit.
    order, target_order, spare_order, digits : ndarray of shape (batch,)
        For sorting.
    counts : ndarray of shape (256,)
        For sorting.
    """

    weights: NDArray[Any]
    gradient: NDArray[Any]
    drawn: NDArray[np.int64]
    logits: NDArray[Any]
    scores: NDArray[Any]
    target_scores: NDArray[Any]
    table: NDArray[Any]
    target_table: NDArray[Any]
    coefficients: NDArray[Any]
    moments: NDArray[Any]
    target_moments: NDArray[Any]
    dual: NDArray[Any]
    target_dual: NDArray[Any]
    f: NDArray[Any]
    h: NDArray[Any]
    alpha: NDArray[Any]
    surplus: NDArray[Any]
    target_surplus: NDArray[Any]
    score_gradient: NDArray[Any]
    logit_gradient: NDArray[Any]
    order: NDArray[np.int64]
    target_order: NDArray[np.int64]
    spare_order: NDArray[np.int64]
    digits: NDArray[np.int64]
    counts: NDArray[np.int64]


def make_workspace(
    theta_shape: tuple[int, ...], table_shape: tuple[int, ...], *, batch: int, dtype: np.dtype[Any]
) -> Workspace:
    """Allocate the scratch arrays, each of which begins at a cache line.

    Parameters
    ----------
    theta_shape : tuple of (n_models, n_columns + 1)
    table_shape : tuple of (n_degrees, width)
        Shape of the arrays of a `fairtransport.transport.fourier.FeatureTable`.
    batch : int
        Rows drawn of each group; padded to whole vectors of 64 bytes, so that vector loops leave no remainder.
    dtype : dtype
        That of the rows.

    Returns
    -------
    Workspace
    """
    n_degrees, width = table_shape
    padded = -(-batch * dtype.itemsize // _CACHE_LINE) * _CACHE_LINE // dtype.itemsize

    def aligned(*shape: int) -> NDArray[Any]:
        n_bytes = math.prod(shape) * dtype.itemsize
        buffer = np.zeros(n_bytes + _CACHE_LINE, np.uint8)
        return buffer[-buffer.ctypes.data % _CACHE_LINE :][:n_bytes].view(dtype).reshape(shape)

    def indices(size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    columns = theta_shape[0], theta_shape[1] + 1
    return Workspace(
        weights=aligned(*columns),
        gradient=aligned(*columns),
        drawn=indices(batch),
        **{name: aligned(padded) for name in ("logits", "scores", "target_scores")},
        **{name: aligned(n_degrees, padded) for name in ("table", "target_table")},
        **{name: aligned(n_degrees) for name in ("coefficients", "moments", "target_moments")},
        **{name: aligned(width) for name in ("dual", "target_dual")},
        **{name: aligned(padded) for name in ("f", "h", "alpha", "surplus", "target_surplus")},
        **{name: aligned(padded) for name in ("score_gradient", "logit_gradient")},
        **{name: indices(batch) for name in ("order", "target_order", "spare_order", "digits")},
        counts=indices(256),
    )
