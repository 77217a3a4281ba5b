r"""Dual variables as Chebyshev polynomials.

A dual variable :math:`f = \sum_d \lambda_d \psi_d` is a short sum of slow cosines, and scores lie in [0, 1], where f is
a polynomial of low degree to within 1e-8 (`fairtransport.transport.fourier.FeatureTable`). Its coefficients with
respect to the polynomials :math:`T_k` are ``basis @ lambda``. So the features are summed once for each batch, and a
score costs one multiplication for each degree, whatever the number of features. The gradient with respect to
:math:`\lambda` is the transpose: the moments :math:`\sum_i w_i T_k(s_i)`, then ``basis.T @ moments``. The plain twin is
`fairtransport.transport.fourier.FourierFeatures`.
"""

from __future__ import annotations

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels._options import FAST_MATH

__all__ = ["chebyshev", "combine", "project"]


@cached_njit(nogil=True, fastmath=FAST_MATH)
def chebyshev(points, table):
    """Write T_k(2 x - 1) of each point x into ``table``: one row for each degree k, a multiple of four rows."""
    one = table.dtype.type(1)
    for i in range(table.shape[1]):
        u = points[i] + points[i] - one
        square = (u + u) * u - one
        table[0, i] = one
        table[1, i] = u
        table[2, i] = square
        table[3, i] = (u + u) * square - u
    for k in range(4, table.shape[0], 4):
        for i in range(table.shape[1]):
            u = points[i] + points[i] - one
            twice = u + u
            d = table[k - 1, i]
            a = twice * d - table[k - 2, i]
            b = twice * a - d
            c = twice * b - a
            table[k, i] = a
            table[k + 1, i] = b
            table[k + 2, i] = c
            table[k + 3, i] = twice * c - b


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
