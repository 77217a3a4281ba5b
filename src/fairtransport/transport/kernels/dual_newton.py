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
    # One function, and loops in place of slices: each call of another one and each slice takes seconds to compile. The
    # inner loops run over the points, of which there are enough for vector instructions; coefficients are too few.
    points, masses, psi, rise = samples
    strength, kind, ridge, inverse = newton.strength, newton.kind, newton.ridge, 1.0 / newton.strength
    n, width, size = points.shape[1], psi.shape[2], coefficients.shape[1]
    sign, shift = (1.0 if newton.tie == FREE else float(newton.tie)), size - width
    x, y, p, q, f, h, row, column, bends = np.zeros((9, n))
    psi_x, psi_y, product, alpha = np.zeros((size, n)), np.zeros((size, n)), np.empty((size, n)), np.empty((n, n))
    mean, gradient, step, trial, c = np.zeros((5, size))
    matrix = np.empty((size, size))
    for pair in range(pairs.first.shape[0]):
        a, b = pairs.first[pair], pairs.second[pair]
        for i in range(n):
            x[i], y[i], p[i], q[i] = points[a, i], points[b, i], masses[a, i], masses[b, i]
            for k in range(width):
                psi_x[k, i] = psi[a, i, k]
                psi_y[shift + k, i] = sign * psi[b, i, k]
        for k in range(size):
            total = 0.0
            for i in range(n):
                total += p[i] * psi_x[k, i] + q[i] * psi_y[k, i]
            c[k], mean[k], step[k] = coefficients[pair, k], total, 0.0
            trial[k] = c[k]
        accepted, least, length, iteration = -np.inf, 0.0, 1.0, 0
        while True:
            value = 0.0
            for i in range(n):
                f[i], h[i] = 0.0, 0.0
            for k in range(size):
                at = trial[k]
                value += at * mean[k] - 0.5 * ridge * at * at
                for i in range(n):
                    f[i] += at * psi_x[k, i]
                    h[i] += at * psi_y[k, i]
            for i in range(n):
                price, at_x, of_i = 0.0, x[i], f[i]
                if kind == _L2:
                    for j in range(n):
                        v = (of_i + h[j] - abs(at_x - y[j])) * inverse
                        slope = 0.5 * v if v > 0.0 else 0.0
                        alpha[i, j] = slope
                        price += q[j] * slope * slope
                else:
                    for j in range(n):
                        v = (of_i + h[j] - abs(at_x - y[j])) * inverse
                        if v < EXPONENT_LIMIT:
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
                column[i] = 0.0
            for i in range(n):
                total, mass = 0.0, p[i]
                for j in range(n):
                    total += q[j] * alpha[i, j]
                    column[j] += mass * alpha[i, j]
                row[i] = total
            largest = 0.0
            for k in range(size):
                total = mean[k] - ridge * c[k]
                for i in range(n):
                    total -= p[i] * row[i] * psi_x[k, i] + q[i] * column[i] * psi_y[k, i]
                gradient[k] = total
                largest = max(largest, abs(total))
            if largest <= newton.tolerance or iteration == newton.max_iter:
                break
            iteration += 1
            # Minus the Hessian: sum of w_ij (psi_x_i + psi_y_j)(psi_x_i + psi_y_j)' plus the ridge, its lower half.
            for i in range(n):
                h[i] = 0.0
            for i in range(n):
                total, mass = 0.0, p[i] * inverse
                for j in range(n):
                    slope = alpha[i, j]
                    if kind == _L2:
                        slope = 0.5 if slope > 0.0 else 0.0
                    elif slope >= _TOP:
                        slope = 0.0
                    w = mass * q[j] * slope
                    bends[j] = w
                    total += w
                    h[j] += w
                for k in range(size):
                    at = 0.0
                    for j in range(n):
                        at += bends[j] * psi_y[k, j]
                    product[k, i] = at + 0.5 * total * psi_x[k, i]
            for k in range(size):
                for l in range(k + 1):
                    total = ridge if k == l else 0.0
                    for i in range(n):
                        total += psi_x[k, i] * product[l, i] + product[k, i] * psi_x[l, i]
                        total += h[i] * psi_y[k, i] * psi_y[l, i]
                    matrix[k, l] = total
            # The step, by Cholesky's factors in place of the lower half, whose diagonal is inverted.
            for i in range(size):
                for j in range(i + 1):
                    rest = matrix[i, j]
                    for k in range(j):
                        rest -= matrix[i, k] * matrix[j, k]
                    matrix[i, j] = 1.0 / np.sqrt(max(rest, 1e-300)) if i == j else rest * matrix[j, j]
                rest = gradient[i]
                for k in range(i):
                    rest -= matrix[i, k] * step[k]
                step[i] = rest * matrix[i, i]
            for i in range(size - 1, -1, -1):
                step[i] *= matrix[i, i]
                for k in range(i):
                    step[k] -= matrix[i, k] * step[i]
            least, length = 0.0, 1.0
            for k in range(size):
                least += _ARMIJO * gradient[k] * step[k]
                trial[k] = c[k] + step[k]
        values[pair] = accepted
        for k in range(size):
            coefficients[pair, k] = c[k]
        for i in range(n):
            h[i] = 0.0
        for i in range(n):
            total, mass, at_x = 0.0, p[i], x[i]
            for j in range(n):
                apart = at_x - y[j]
                signed = alpha[i, j] if apart > 0.0 else (-alpha[i, j] if apart < 0.0 else 0.0)
                total += q[j] * signed
                h[j] -= mass * signed
            f[i] = total
        weight = pairs.weights[pair]
        for i in range(n):
            rise_f, rise_h = 0.0, 0.0
            for k in range(width):
                rise_f += rise[a, i, k] * c[k]
                rise_h += sign * rise[b, i, k] * c[shift + k]
            slopes[a, i] += weight * ((1.0 - row[i]) * rise_f + f[i])
            slopes[b, i] += weight * ((1.0 - column[i]) * rise_h + h[i])


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
