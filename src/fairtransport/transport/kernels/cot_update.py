r"""Continuous optimal transport (COT) between two batches: one step of the dual variables, then the scores' gradient.

For pairs of a score s and a target score t, with the group's dual variable f and the target's h,

.. math:: \alpha = (\phi^*)'\Big(\frac{f(s) + h(t) - |s - t|}{\lambda}\Big), \qquad
          \frac{\partial}{\partial s} = (1 - \alpha)\,f'(s) + \alpha\,\mathrm{sign}(s - t).

As in the paper's algorithm box, :math:`\alpha` is computed before the step of the dual variables and f' after it. The
plain twin is `fairtransport.transport.reference.continuous_step`.

References
----------
S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, section "COT Method".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels._options import FAST_MATH
from fairtransport.transport.kernels.chebyshev import chebyshev, combine, project
from fairtransport.transport.kernels.exponential import exponential
from fairtransport.transport.regularizers import EXPONENT_LIMIT, L2

if TYPE_CHECKING:
    from fairtransport.transport.fourier import FeatureTable

__all__ = ["Transport", "step_duals"]

_L2 = L2.code
_LIMIT = EXPONENT_LIMIT
_LOWEST = -80.0  # its exponential is negligible beside 1, and in float32 it is not subnormal


class Transport(NamedTuple):
    """The regularized distance.

    Attributes
    ----------
    kind : int
        The regularizer's ``code``, or `fairtransport.transport.kernels.dot_update.DISCRETE`.
    strength : float
        The factor of the regularizer.
    opposite : bool
        Whether h = -f.
    all_pairs : bool
        Whether every score is paired with every target score, or the i-th with the i-th.
    table : FeatureTable
        Fourier features as polynomials.
    """

    kind: int
    strength: float
    opposite: bool
    all_pairs: bool
    table: FeatureTable


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _exponents(scale, low, high, scores, targets, f, h, v):
    # Within the bounds alpha is v itself (L2; the scale has the factor 1/2) or exp(v).
    for i in range(scores.shape[0]):
        v[i] = max(min((f[i] + h[i] - abs(scores[i] - targets[i])) * scale, high), low)


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _weigh_matched(scores, targets, alpha, surplus, signed):
    # surplus = 1 - alpha, signed = alpha * sign(s - t)
    real = scores.dtype.type
    zero, one = real(0), real(1)
    for i in range(scores.shape[0]):
        gap = scores[i] - targets[i]
        surplus[i] = one - alpha[i]
        signed[i] = alpha[i] if gap > zero else (-alpha[i] if gap < zero else zero)


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _weigh_all(kind, scale, low, high, batch, work):
    # The same for all pairs (i, j): means over j for the scores and over i for the target scores.
    scores, targets, alpha = work.scores, work.target_scores, work.alpha
    surplus, target_surplus, signed = work.surplus, work.target_surplus, work.score_gradient
    real = scores.dtype.type
    zero, one, share = real(0), real(1), real(1) / real(batch)
    target_surplus[:batch] = one
    for i in range(batch):
        score, value = scores[i], work.f[i]
        for j in range(targets.shape[0]):
            alpha[j] = max(min((value + work.h[j] - abs(score - targets[j])) * scale, high), low)
        if kind != _L2:
            exponential(alpha)
        total = total_signed = zero
        for j in range(batch):
            gap = score - targets[j]
            part = share * alpha[j]
            total += part
            total_signed += part if gap > zero else (-part if gap < zero else zero)
            target_surplus[j] -= part
        surplus[i] = one - total
        signed[i] = total_signed


@cached_njit(nogil=True, inline="always")
def step_duals(transport, step, batch, group, duals, target_duals, work):
    """Move a group's dual variables by ``step`` times their gradient and write ``work.score_gradient``.

    The Chebyshev polynomials of the target scores are in ``work.target_table`` already.
    """
    basis, slopes = transport.table
    real = work.scores.dtype.type
    zero = real(0)
    scale, low, high = real(1.0 / transport.strength), real(_LOWEST), real(_LIMIT)
    if transport.kind == _L2:
        scale, low, high = real(0.5 / transport.strength), zero, real(np.inf)

    # f at the scores and h at the target scores.
    chebyshev(work.scores, work.table)
    for d in range(work.dual.shape[0]):
        work.dual[d] = duals[group, d]
        work.target_dual[d] = target_duals[group, d]
    project(work.dual, basis, work.coefficients)
    combine(work.coefficients, work.table, work.f)
    if transport.opposite:
        for k in range(work.coefficients.shape[0]):
            work.coefficients[k] = -work.coefficients[k]
    else:
        project(work.target_dual, basis, work.coefficients)
    combine(work.coefficients, work.target_table, work.h)

    # alpha; score_gradient receives its second term.
    if transport.all_pairs:
        _weigh_all(transport.kind, scale, low, high, batch, work)
    else:
        _exponents(scale, low, high, work.scores, work.target_scores, work.f, work.h, work.alpha)
        if transport.kind != _L2:
            exponential(work.alpha)
        _weigh_matched(work.scores, work.target_scores, work.alpha, work.surplus, work.score_gradient)
    for i in range(batch, work.surplus.shape[0]):
        work.surplus[i] = zero  # the padding has no weight

    # The dual variables' gradient and their step.
    project(work.surplus, work.table, work.moments)
    if transport.all_pairs:
        project(work.target_surplus, work.target_table, work.target_moments)
    else:
        project(work.surplus, work.target_table, work.target_moments)
    if transport.opposite:
        for k in range(work.moments.shape[0]):
            work.moments[k] -= work.target_moments[k]
    else:
        combine(work.target_moments, basis, work.target_dual)
        for d in range(work.dual.shape[0]):
            target_duals[group, d] += step * work.target_dual[d]
    combine(work.moments, basis, work.dual)
    for d in range(work.dual.shape[0]):
        duals[group, d] += step * work.dual[d]
        work.dual[d] = duals[group, d]

    # The slope of f after the step: the first term of score_gradient.
    project(work.dual, slopes, work.coefficients)
    combine(work.coefficients, work.table, work.f)
    for i in range(work.scores.shape[0]):
        work.score_gradient[i] += work.surplus[i] * work.f[i]
