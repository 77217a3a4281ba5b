r"""The exponential function as arithmetic that becomes vector instructions.

With :math:`n = \mathrm{round}(x / \ln 2)` and :math:`r = x - n \ln 2`,

.. math:: e^x = 2^n e^r, \qquad |r| \le \tfrac{1}{2} \ln 2,

and :math:`e^r` is its Taylor polynomial. Adding 1.5 * 2^52 (float32: 1.5 * 2^23) rounds: the integer n then occupies
the last bits, from where a shift moves it into the exponent of 2^n. There is no branch and no call, and the order of
operations matters, so nothing may be reordered here. The plain twin is `numpy.exp`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

from fairtransport._columns.compilation import FAST_MATH, cached_njit

_F = np.float32
_S_LOG2E, _S_SHIFT, _S_HIGH, _S_LOW = _F(1.44269504), _F(12582912.0), _F(0.693359375), _F(-2.12194440e-4)
_S_BIAS, _S_MANTISSA = np.int32(127), np.int32(23)
# Taylor's coefficients, the highest first.
_D11, _D10_TO_0 = 1.0 / math.factorial(11), tuple(1.0 / math.factorial(m) for m in range(10, -1, -1))
_S7, _S6_TO_0 = _F(1.0 / math.factorial(7)), tuple(_F(1.0 / math.factorial(m)) for m in range(6, -1, -1))


def _exp_double(x):
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = _D11
    for coefficient in _D10_TO_0:
        p = p * r + coefficient
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


def _exp_single(x):
    shifted = x * _S_LOG2E + _S_SHIFT
    n = shifted - _S_SHIFT
    r = (x - n * _S_HIGH) - n * _S_LOW
    p = _S7
    for coefficient in _S6_TO_0:
        p = p * r + coefficient
    return p * np.int32((np.float32(shifted).view(np.int32) + _S_BIAS) << _S_MANTISSA).view(np.float32)


def exp(x):
    """Return the exponential of one number, in its dtype; for compiled code only."""
    raise NotImplementedError


@overload(exp, jit_options={"fastmath": {"contract"}, "nogil": True})
def _exp_by_type(x):
    return _exp_single if x == types.float32 else _exp_double


@cached_njit(nogil=True)
def exponential(values):
    """Replace each value by its exponential; values from -87 to 87 (float32) or from -700 to 700 (float64)."""
    for i in range(values.shape[0]):
        values[i] = exp(values[i])


# The logistic function, whose plain twin is in `fairtransport.transport.regularizers`, and the logistic loss.

_FACTORS = 512  # of at most 2 each, so that their product is within double precision
_LOG = math.log(1.5)


@cached_njit(nogil=True, fastmath={"contract"}, error_model="numpy")
def logistic(logits, scores):
    """Write the logistic function of the logits into ``scores``."""
    real = scores.dtype.type
    one, limit = real(1), real(87 if scores.itemsize == 4 else 700)
    for i in range(scores.shape[0]):
        scores[i] = one / (one + exp(max(min(-logits[i], limit), -limit)))


@cached_njit(nogil=True, fastmath=FAST_MATH, error_model="numpy")
def logistic_loss(logits, labels, shares, equal, scores, slopes):
    """Return the loss; write the scores, and the derivative with respect to each logit.

    ``equal`` says that all shares are equal: then logarithms of products take the place of sums of logarithms.
    """
    n = logits.shape[0]
    for i in range(n):
        slopes[i] = max(-abs(logits[i]), -700.0)
    exponential(slopes)
    total, logarithms, product = 0.0, 0.0, 1.0
    if not equal:
        # log(1 + x) = log 1.5 + 2 artanh((x - .5) / (x + 2.5)), as Taylor's polynomial of an argument of at most .2:
        # vector instructions have no logarithm.
        for i in range(n):
            part = (slopes[i] - 0.5) / (slopes[i] + 2.5)
            q = part * part
            tail = 1.0 / 11.0 + q * (1.0 / 13.0 + q * (1.0 / 15.0 + q * (1.0 / 17.0 + q * (1.0 / 19.0 + q / 21.0))))
            series = 1.0 + q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q * (1.0 / 9.0 + q * tail))))
            logarithms += shares[i] * (_LOG + 2.0 * part * series)
    for i in range(n):
        z, small = logits[i], slopes[i]
        if equal:
            product *= 1.0 + small
            if i % _FACTORS == 0:
                logarithms += np.log(product)
                product = 1.0
        total += shares[i] * (max(z, 0.0) - labels[i] * z)
        score = 1.0 / (1.0 + small)
        if z < 0.0:
            score *= small
        scores[i] = score
        slopes[i] = shares[i] * (score - labels[i])
    if equal:
        logarithms = (logarithms + np.log(product)) * shares[0]
    return total + logarithms


# Dual variables as Chebyshev polynomials.


@cached_njit(nogil=True, fastmath=FAST_MATH)
def chebyshev(points, table):
    """Write T_k(2 x - 1) of each point x into ``table``: one row for each degree k, two at least."""
    one = table.dtype.type(1)
    for i in range(table.shape[1]):
        table[0, i] = one
        table[1, i] = points[i] + points[i] - one
    for k in range(2, table.shape[0]):
        for i in range(table.shape[1]):
            table[k, i] = (table[1, i] + table[1, i]) * table[k - 1, i] - table[k - 2, i]


@cached_njit(nogil=True, fastmath=FAST_MATH)
def combine(coefficients, table, out):
    """Write the sum of the rows of ``table``, each times its coefficient; a multiple of four rows."""
    out[:] = 0
    for k in range(0, table.shape[0], 4):
        a, b, c, d = coefficients[k], coefficients[k + 1], coefficients[k + 2], coefficients[k + 3]
        for i in range(table.shape[1]):
            out[i] += a * table[k, i] + b * table[k + 1, i] + c * table[k + 2, i] + d * table[k + 3, i]


@cached_njit(nogil=True, fastmath=FAST_MATH)
def project(weights, table, out):
    """Write the inner product of ``weights`` with each row of ``table``; a multiple of four rows."""
    zero = table.dtype.type(0)
    for k in range(0, table.shape[0], 4):
        a = b = c = d = zero
        for i in range(table.shape[1]):
            a += weights[i] * table[k, i]
            b += weights[i] * table[k + 1, i]
            c += weights[i] * table[k + 2, i]
            d += weights[i] * table[k + 3, i]
        out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d
