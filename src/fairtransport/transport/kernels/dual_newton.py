r"""Newton's method for the dual problems of regularized transport, one pair of samples at a time.

On samples x and y with masses p and q the dual objective

.. math:: J(c) = \sum_i p_i f(x_i) + \sum_j q_j h(y_j) - \lambda \sum_{ij} p_i q_j
          \phi^*\!\Big(\frac{f(x_i) + h(y_j) - |x_i - y_j|}{\lambda}\Big) - \frac{\mu}{2} |c|^2

is concave in the coefficients c of f and h, a few dozen numbers, so a handful of Newton steps solve it. At the optimum
its derivative with respect to a point is the partial one (envelope theorem). The ridge :math:`\mu` makes the optimum
unique, and the value differentiable also where the two samples agree, as the Huber function does for the exact
distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport._columns.compilation import FAST_MATH, cached_njit
from fairtransport.transport.regularizers import EXPONENT_LIMIT, L2

#: How h depends on f: not at all, as h = -f, or as h = f.
FREE, OPPOSITE, SAME = 0, -1, 1

_L2 = L2.code
_TOP = float(np.exp(EXPONENT_LIMIT))
_SHORTEST = 2.0**-30
_ARMIJO = 1e-4


class Samples(NamedTuple):
    """Samples of equal size, with the Fourier features of their points."""

    points: Floats
    masses: Floats
    psi: Floats
    slope: Floats


class Pairs(NamedTuple):
    """Samples that are compared: ``first[k]`` with ``second[k]``, which counts ``weights[k]``."""

    first: Ints
    second: Ints
    weights: Floats


class Newton(NamedTuple):
    """The dual problem and when to stop."""

    strength: float
    kind: int
    tie: int
    ridge: float
    tolerance: float
    max_iter: int


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _evaluate(x, y, p, q, f, h, strength, kind, alpha):
    # Sum of masses times the conjugate; fills alpha.
    n, m = x.shape[0], y.shape[0]
    total = 0.0
    for i in range(n):
        part = 0.0
        for j in range(m):
            v = (f[i] + h[j] - abs(x[i] - y[j])) / strength
            if kind == _L2:
                a = 0.5 * max(v, 0.0)
                price = a * a
            elif v < EXPONENT_LIMIT:
                a = np.exp(v)
                price = a
            else:
                a = _TOP
                price = _TOP * (1.0 + v - EXPONENT_LIMIT)
            alpha[i, j] = a
            part += q[j] * price
        total += p[i] * part
    return total


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _dot(psi, c, out):
    for i in range(psi.shape[0]):
        total = 0.0
        for k in range(c.shape[0]):
            total += psi[i, k] * c[k]
        out[i] = total


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _solve(matrix, vector):
    # Cholesky in place; the solution overwrites the vector.
    n = vector.shape[0]
    for j in range(n):
        for k in range(j):
            ljk = matrix[j, k]
            for i in range(j, n):
                matrix[i, j] -= matrix[i, k] * ljk
        root = np.sqrt(max(matrix[j, j], 1e-300))
        for i in range(j, n):
            matrix[i, j] /= root
    for i in range(n):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            vector[i] -= matrix[k, i] * vector[k]
        vector[i] /= matrix[i, i]


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _newton(x, y, p, q, psi_x, psi_y, c, newton, alpha):
    strength, kind, ridge = newton.strength, newton.kind, newton.ridge
    n, m, width = x.shape[0], y.shape[0], c.shape[0]
    f, h, row, column = np.empty(n), np.empty(m), np.empty(n), np.empty(m)
    mean, gradient, step, trial = np.zeros(width), np.empty(width), np.empty(width), np.empty(width)
    matrix, product = np.empty((width, width)), np.empty((n, width))
    for i in range(n):
        for k in range(width):
            mean[k] += p[i] * psi_x[i, k]
    for j in range(m):
        for k in range(width):
            mean[k] += q[j] * psi_y[j, k]
    _dot(psi_x, c, f)
    _dot(psi_y, c, h)
    value = -strength * _evaluate(x, y, p, q, f, h, strength, kind, alpha)
    for k in range(width):
        value += c[k] * mean[k] - 0.5 * ridge * c[k] * c[k]
    for _ in range(newton.max_iter):
        row[:] = 0.0
        column[:] = 0.0
        for i in range(n):
            for j in range(m):
                row[i] += q[j] * alpha[i, j]
                column[j] += p[i] * alpha[i, j]
        for k in range(width):
            gradient[k] = mean[k] - ridge * c[k]
        for i in range(n):
            used = p[i] * row[i]
            for k in range(width):
                gradient[k] -= used * psi_x[i, k]
        for j in range(m):
            used = q[j] * column[j]
            for k in range(width):
                gradient[k] -= used * psi_y[j, k]
        largest = 0.0
        for k in range(width):
            largest = max(largest, abs(gradient[k]))
        if largest <= newton.tolerance:
            break
        # Minus the Hessian: sum of w_ij (psi_x_i + psi_y_j)(psi_x_i + psi_y_j)' plus the ridge.
        row[:] = 0.0
        column[:] = 0.0
        product[:, :] = 0.0
        for i in range(n):
            for j in range(m):
                bend = 0.0
                if kind == _L2:
                    if alpha[i, j] > 0.0:
                        bend = 0.5
                elif alpha[i, j] < _TOP:
                    bend = alpha[i, j]
                if bend > 0.0:
                    w = p[i] * q[j] * bend / strength
                    row[i] += w
                    column[j] += w
                    for k in range(width):
                        product[i, k] += w * psi_y[j, k]
        matrix[:, :] = 0.0
        for i in range(n):
            for k in range(width):
                left = psi_x[i, k]
                for l in range(width):
                    matrix[k, l] += left * (row[i] * psi_x[i, l] + product[i, l]) + product[i, k] * psi_x[i, l]
        for j in range(m):
            for k in range(width):
                left = column[j] * psi_y[j, k]
                for l in range(width):
                    matrix[k, l] += left * psi_y[j, l]
        gain = 0.0
        for k in range(width):
            matrix[k, k] += ridge
            step[k] = gradient[k]
        _solve(matrix, step)
        for k in range(width):
            gain += gradient[k] * step[k]
        size = 1.0
        while True:
            for k in range(width):
                trial[k] = c[k] + size * step[k]
            _dot(psi_x, trial, f)
            _dot(psi_y, trial, h)
            new_value = -strength * _evaluate(x, y, p, q, f, h, strength, kind, alpha)
            for k in range(width):
                new_value += trial[k] * mean[k] - 0.5 * ridge * trial[k] * trial[k]
            if new_value >= value + _ARMIJO * size * gain - 1e-14 or size < _SHORTEST:
                break
            size *= 0.5
        c[:] = trial
        value = new_value
    return value


@cached_njit(nogil=True, fastmath=FAST_MATH)
def newton_pairs(samples, pairs, newton, coefficients, values, slopes):
    """Solve the dual problem of each pair of samples, starting at ``coefficients``, in place.

    They are those of f and, where `FREE`, then of h. The optimum is written to ``values``; its derivatives with respect
    to the points, for unit mass and times the pair's weight, are added to ``slopes``.
    """
    points, masses, psi, psi_slope = samples
    first, second, weights = pairs
    tie = newton.tie
    n, width = points.shape[1], psi.shape[2]
    n_coefficients = coefficients.shape[1]
    psi_x, psi_y, alpha = np.zeros((n, n_coefficients)), np.zeros((n, n_coefficients)), np.empty((n, n))
    slope_f, slope_h = np.empty(n), np.empty(n)
    for pair in range(first.shape[0]):
        a, b = first[pair], second[pair]
        x, y, p, q, c = points[a], points[b], masses[a], masses[b], coefficients[pair]
        psi_x[:, :width] = psi[a]
        if tie == FREE:
            psi_y[:, width:] = psi[b]
        else:
            for j in range(n):
                for k in range(width):
                    psi_y[j, k] = tie * psi[b, j, k]
        values[pair] = _newton(x, y, p, q, psi_x, psi_y, c, newton, alpha)
        _dot(psi_slope[a], c[:width], slope_f)
        _dot(psi_slope[b], c[n_coefficients - width :], slope_h)
        for i in range(n):
            total, signed = 0.0, 0.0
            for j in range(n):
                total += q[j] * alpha[i, j]
                signed += q[j] * alpha[i, j] * np.sign(x[i] - y[j])
            slopes[a, i] += weights[pair] * ((1.0 - total) * slope_f[i] + signed)
        for j in range(n):
            total, signed = 0.0, 0.0
            for i in range(n):
                total += p[i] * alpha[i, j]
                signed += p[i] * alpha[i, j] * np.sign(y[j] - x[i])
            sign = 1.0 if tie == FREE else tie
            slopes[b, j] += weights[pair] * ((1.0 - total) * sign * slope_h[j] + signed)
