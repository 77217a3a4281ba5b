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
def newton_pairs(samples, pairs, newton, coefficients, values, slopes):
    """Solve the dual problem of each pair of samples, starting at ``coefficients``, in place.

    They are those of f and, where `FREE`, then of h. The optimum is written to ``values``; its derivatives with respect
    to the points, for unit mass and times the pair's weight, are added to ``slopes``.
    """
    # One function, and loops in place of slices: each call of another one and each slice takes seconds to compile.
    points, masses, psi, rise = samples
    strength, kind, ridge = newton.strength, newton.kind, newton.ridge
    n, width, size = points.shape[1], psi.shape[2], coefficients.shape[1]
    sign, shift = (1.0 if newton.tie == FREE else float(newton.tie)), size - width
    x, y, p, q, f, h, row, column = np.zeros((8, n))
    psi_x, psi_y, product, alpha = np.zeros((n, size)), np.zeros((n, size)), np.empty((n, size)), np.empty((n, n))
    mean, gradient, step, trial, c = np.zeros((5, size))
    matrix = np.empty((size, size))
    for pair in range(pairs.first.shape[0]):
        a, b = pairs.first[pair], pairs.second[pair]
        for k in range(size):
            c[k], mean[k], step[k] = coefficients[pair, k], 0.0, 0.0
            trial[k] = c[k]
        for i in range(n):
            x[i], y[i], p[i], q[i] = points[a, i], points[b, i], masses[a, i], masses[b, i]
            for k in range(width):
                psi_x[i, k] = psi[a, i, k]
                psi_y[i, shift + k] = sign * psi[b, i, k]
            for k in range(size):
                mean[k] += p[i] * psi_x[i, k] + q[i] * psi_y[i, k]
        accepted, least, length, iteration = -np.inf, 0.0, 1.0, 0
        while True:
            value = 0.0
            for k in range(size):
                value += trial[k] * mean[k] - 0.5 * ridge * trial[k] * trial[k]
            for i in range(n):
                at_x, at_y = 0.0, 0.0
                for k in range(size):
                    at_x += psi_x[i, k] * trial[k]
                    at_y += psi_y[i, k] * trial[k]
                f[i], h[i] = at_x, at_y
            for i in range(n):
                price = 0.0
                for j in range(n):
                    v = (f[i] + h[j] - abs(x[i] - y[j])) / strength
                    if kind == _L2:
                        slope = 0.5 * max(v, 0.0)
                        conjugate = slope * slope
                    elif v < EXPONENT_LIMIT:
                        slope = np.exp(v)
                        conjugate = slope
                    else:
                        slope = _TOP
                        conjugate = _TOP * (1.0 + v - EXPONENT_LIMIT)
                    alpha[i, j] = slope
                    price += q[j] * conjugate
                value -= strength * p[i] * price
            if not value >= accepted + length * least - 1e-14 and length >= _SHORTEST:
                length *= 0.5
                for k in range(size):
                    trial[k] = c[k] + length * step[k]
                continue
            accepted = value
            for k in range(size):
                c[k] = trial[k]
            for i in range(n):
                row[i], column[i] = 0.0, 0.0
            for i in range(n):
                for j in range(n):
                    row[i] += q[j] * alpha[i, j]
                    column[j] += p[i] * alpha[i, j]
            for k in range(size):
                gradient[k] = mean[k] - ridge * c[k]
            for i in range(n):
                for k in range(size):
                    gradient[k] -= p[i] * row[i] * psi_x[i, k] + q[i] * column[i] * psi_y[i, k]
            largest = 0.0
            for k in range(size):
                largest = max(largest, abs(gradient[k]))
            if largest <= newton.tolerance or iteration == newton.max_iter:
                break
            iteration += 1
            # Minus the Hessian: sum of w_ij (psi_x_i + psi_y_j)(psi_x_i + psi_y_j)' plus the ridge.
            for i in range(n):
                f[i], h[i] = 0.0, 0.0
                for k in range(size):
                    product[i, k] = 0.0
            for i in range(n):
                for j in range(n):
                    bend = 0.0
                    if kind == _L2:
                        if alpha[i, j] > 0.0:
                            bend = 0.5
                    elif alpha[i, j] < _TOP:
                        bend = alpha[i, j]
                    if bend > 0.0:
                        w = p[i] * q[j] * bend / strength
                        f[i] += w
                        h[j] += w
                        for k in range(size):
                            product[i, k] += w * psi_y[j, k]
            for k in range(size):
                for l in range(size):
                    matrix[k, l] = ridge if k == l else 0.0
            for i in range(n):
                for k in range(size):
                    at_x, at_y = psi_x[i, k], h[i] * psi_y[i, k]
                    both = f[i] * at_x + product[i, k]
                    for l in range(size):
                        matrix[k, l] += both * psi_x[i, l] + at_x * product[i, l] + at_y * psi_y[i, l]
            # The step, by Cholesky's factors in place of the lower half.
            for j in range(size):
                for k in range(j):
                    factor = matrix[j, k]
                    for i in range(j, size):
                        matrix[i, j] -= matrix[i, k] * factor
                root = np.sqrt(max(matrix[j, j], 1e-300))
                for i in range(j, size):
                    matrix[i, j] /= root
            for i in range(size):
                rest = gradient[i]
                for k in range(i):
                    rest -= matrix[i, k] * step[k]
                step[i] = rest / matrix[i, i]
            for i in range(size - 1, -1, -1):
                rest = step[i]
                for k in range(i + 1, size):
                    rest -= matrix[k, i] * step[k]
                step[i] = rest / matrix[i, i]
            least, length = 0.0, 1.0
            for k in range(size):
                least += _ARMIJO * gradient[k] * step[k]
                trial[k] = c[k] + step[k]
        values[pair] = accepted
        for k in range(size):
            coefficients[pair, k] = c[k]
        for i in range(n):
            rise_f, rise_h, signed_row, signed_column = 0.0, 0.0, 0.0, 0.0
            for k in range(width):
                rise_f += rise[a, i, k] * c[k]
                rise_h += sign * rise[b, i, k] * c[shift + k]
            for j in range(n):
                signed_row += q[j] * alpha[i, j] * np.sign(x[i] - y[j])
                signed_column += p[j] * alpha[j, i] * np.sign(y[i] - x[j])
            slopes[a, i] += pairs.weights[pair] * ((1.0 - row[i]) * rise_f + signed_row)
            slopes[b, i] += pairs.weights[pair] * ((1.0 - column[i]) * rise_h + signed_column)


def newton_pairs_plainly(
    samples: Samples, pairs: Pairs, newton: Newton, coefficients: Floats, values: Floats, slopes: Floats
) -> None:
    """Do what `newton_pairs` does, without anything to compile: for tables of a few thousand rows."""
    sign = 1.0 if newton.tie == FREE else float(newton.tie)
    for number, (a, b, weight) in enumerate(zip(*pairs, strict=True)):
        x, y, p, q = samples.points[a], samples.points[b], samples.masses[a], samples.masses[b]
        psi_x, psi_y, rise_x, rise_y = samples.psi[a], sign * samples.psi[b], samples.slope[a], sign * samples.slope[b]
        if newton.tie == FREE:
            none = np.zeros_like(psi_x)
            psi_x, rise_x = np.hstack((psi_x, none)), np.hstack((rise_x, none))
            psi_y, rise_y = np.hstack((none, psi_y)), np.hstack((none, rise_y))
        apart = x[:, None] - y
        cost, mean, c = np.abs(apart), p @ psi_x + q @ psi_y, coefficients[number].copy()
        fixed = psi_x, psi_y, cost, p, q, mean
        value, alpha, bend = _dual(newton, c, *fixed)
        for iteration in range(newton.max_iter + 1):
            row, column = alpha @ q, p @ alpha
            gradient = mean - newton.ridge * c - (p * row) @ psi_x - (q * column) @ psi_y
            if np.abs(gradient).max() <= newton.tolerance or iteration == newton.max_iter:
                break
            w = bend * (p[:, None] * q) / newton.strength
            cross = psi_x.T @ (w @ psi_y)
            hessian = (psi_x.T * w.sum(axis=1)) @ psi_x + (psi_y.T * w.sum(axis=0)) @ psi_y + cross + cross.T
            hessian[np.diag_indices(len(c))] += newton.ridge
            step, length = np.linalg.solve(hessian, gradient), 1.0
            least = _ARMIJO * float(gradient @ step)
            while True:
                trial = c + length * step
                higher, alpha, bend = _dual(newton, trial, *fixed)
                if higher >= value + length * least - 1e-14 or length < _SHORTEST:
                    break
                length *= 0.5
            value, c = higher, trial
        values[number], coefficients[number] = value, c
        signed = alpha * np.sign(apart)
        slopes[a] += weight * ((1.0 - row) * (rise_x @ c) + signed @ q)
        slopes[b] += weight * ((1.0 - column) * (rise_y @ c) - p @ signed)


def _dual(
    newton: Newton, c: Floats, psi_x: Floats, psi_y: Floats, cost: Floats, p: Floats, q: Floats, mean: Floats
) -> tuple[float, Floats, Floats]:
    """Return the dual objective, and the first and second derivative of the conjugate."""
    v = ((psi_x @ c)[:, None] + psi_y @ c - cost) / newton.strength
    if newton.kind == _L2:
        alpha = 0.5 * np.maximum(v, 0.0)
        conjugate, bend = alpha * alpha, np.where(alpha > 0.0, 0.5, 0.0)
    else:
        alpha = np.exp(np.minimum(v, EXPONENT_LIMIT))
        conjugate = alpha * (1.0 + np.maximum(v - EXPONENT_LIMIT, 0.0))
        bend = alpha * (v < EXPONENT_LIMIT)
    value = float(c @ mean - 0.5 * newton.ridge * c @ c - newton.strength * (p @ conjugate @ q))
    return value, alpha, bend
