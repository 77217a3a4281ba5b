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

from fairtransport._columns.compilation import cached_njit

__all__ = ["exp", "exponential"]

_F = np.float32
_S_LOG2E, _S_SHIFT, _S_HIGH, _S_LOW = _F(1.44269504), _F(12582912.0), _F(0.693359375), _F(-2.12194440e-4)
_S7, _S6, _S5, _S4, _S3, _S2, _S1 = (_F(1.0 / math.factorial(m)) for m in (7, 6, 5, 4, 3, 2, 1))
_S_BIAS, _S_MANTISSA = np.int32(127), np.int32(23)


def _exp_double(x):
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


def _exp_single(x):
    shifted = x * _S_LOG2E + _S_SHIFT
    n = shifted - _S_SHIFT
    r = (x - n * _S_HIGH) - n * _S_LOW
    p = _S7
    p = p * r + _S6
    p = p * r + _S5
    p = p * r + _S4
    p = p * r + _S3
    p = p * r + _S2
    p = p * r + _S1
    p = p * r + _S1
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
