r"""Optimal dual variables of regularized transport between finite samples, by Newton's method.

On samples x and y with masses p and q the dual objective

.. math:: J(c) = \sum_i p_i f(x_i) + \sum_j q_j h(y_j) - \lambda \sum_{ij} p_i q_j
          \phi^*\!\Big(\frac{f(x_i) + h(y_j) - |x_i - y_j|}{\lambda}\Big) - \frac{\mu}{2} |c|^2

is concave in the coefficients c of f and h, a few dozen numbers, so a handful of Newton steps solve it. At the optimum
its derivative with respect to a point is the partial one (envelope theorem). The ridge :math:`\mu` makes the optimum
unique, and the value differentiable also where the two samples agree, as the Huber function does for the exact
distance. The compiled twin is `fairtransport.transport.kernels.dual_newton`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fairtransport._arrays import Floats
    from fairtransport.transport.dual import DualProblem

#: Ridge of the coefficients: smooths the distance below about this value.
DUAL_RIDGE = 0.03

_TOLERANCE = 1e-9  # of the gradient's largest entry
_MAX_ITER = 60
_ARMIJO = 1e-4
_SHORTEST = 2.0**-30


@dataclass(frozen=True, eq=False)
class DualOptimum:
    """Optimal dual variables of many pairs of samples."""

    values: Floats
    coefficients: Floats
    x_slopes: Floats
    y_slopes: Floats


def maximize_dual(
    problem: DualProblem,
    x: Floats,
    y: Floats,
    *,
    x_mass: Floats | None = None,
    y_mass: Floats | None = None,
    ridge: float = DUAL_RIDGE,
    same: bool = False,
) -> DualOptimum:
    """Return the optimal dual variables of pairs of samples."""
    p = np.full(x.shape, 1.0 / x.shape[-1]) if x_mass is None else x_mass
    q = np.full(y.shape, 1.0 / y.shape[-1]) if y_mass is None else y_mass
    system = _System(problem, x, y, p, q=q, ridge=ridge, same=same)
    c = np.zeros((len(x), system.width))
    value, point = system.evaluate(c)
    for _ in range(_MAX_ITER):
        gradient = system.gradient(c, point)
        active = np.abs(gradient).max(axis=1) > _TOLERANCE
        if not active.any():
            break
        step = np.linalg.solve(system.curvature(point), gradient[..., None])[..., 0]
        step[~active] = 0.0
        gain = (gradient * step).sum(axis=1)
        size = np.ones(len(c))
        while True:
            trial = c + size[:, None] * step
            new_value, new_point = system.evaluate(trial)
            short = new_value < value + _ARMIJO * size * gain - 1e-14
            if not short.any() or size[short].max() < _SHORTEST:
                break
            size[short] *= 0.5
        c, value, point = trial, new_value, new_point
    return DualOptimum(value, c, *system.slopes(c, point))


class _System:
    """The objective of all problems at once: value, gradient and Hessian with respect to the coefficients."""

    def __init__(
        self, problem: DualProblem, x: Floats, y: Floats, p: Floats, *, q: Floats, ridge: float, same: bool
    ) -> None:
        self.problem, self.p, self.q, self.ridge = problem, p, q, ridge
        self.gap = x[:, :, None] - y[:, None, :]
        self.cost = np.abs(self.gap)
        (psi_x, self.slope_x), (psi_y, self.slope_y) = (problem.features.value_and_slope(points) for points in (x, y))
        self.sign, self.tied = 1.0 if same else -1.0, same or problem.opposite
        if self.tied:
            self.psi_x, self.psi_y = psi_x, self.sign * psi_y
        else:
            self.psi_x = np.concatenate((psi_x, np.zeros_like(psi_x)), axis=-1)
            self.psi_y = np.concatenate((np.zeros_like(psi_y), psi_y), axis=-1)
        self.mean = (p[:, None, :] @ self.psi_x + q[:, None, :] @ self.psi_y)[:, 0]
        self.width = self.psi_x.shape[-1]

    def evaluate(self, c: Floats) -> tuple[Floats, Any]:
        """Return the values, and the argument v of the conjugate with its slope alpha."""
        f, h = (self.psi_x @ c[:, :, None]), (self.psi_y @ c[:, :, None])[:, :, 0]
        v = (f + h[:, None, :] - self.cost) / self.problem.strength
        alpha, conjugate = self.problem.regularizer.alpha_and_conjugate(v)
        expected = ((self.p[:, None, :] @ conjugate)[:, 0] * self.q).sum(axis=-1)
        value = (c * self.mean).sum(-1) - self.problem.strength * expected - 0.5 * self.ridge * (c * c).sum(axis=-1)
        return value, (v, alpha)

    def gradient(self, c: Floats, point: Any) -> Floats:
        """Return the gradient with respect to the coefficients."""
        alpha = point[1]
        row, column = alpha @ self.q[:, :, None], self.p[:, None, :] @ alpha
        used_x = (self.p[:, None, :] * row[:, :, 0][:, None, :]) @ self.psi_x
        used_y = (self.q[:, None, :] * column) @ self.psi_y
        return np.asarray(self.mean - (used_x + used_y)[:, 0] - self.ridge * c)

    def curvature(self, point: Any) -> Floats:
        """Return minus the Hessian: positive definite, because of the ridge."""
        second = self.problem.regularizer.curvature(*point) / self.problem.strength
        weights = self.p[:, :, None] * second * self.q[:, None, :]
        row, column = weights.sum(axis=2), weights.sum(axis=1)
        left_x, left_y = self.psi_x.transpose(0, 2, 1), self.psi_y.transpose(0, 2, 1)
        cross = left_x @ (weights @ self.psi_y)
        total = (left_x * row[:, None, :]) @ self.psi_x + (left_y * column[:, None, :]) @ self.psi_y
        total += cross + cross.transpose(0, 2, 1)
        index = np.arange(self.width)
        total[:, index, index] += self.ridge
        return np.asarray(total)

    def slopes(self, c: Floats, point: Any) -> tuple[Floats, Floats]:
        """Return derivatives with respect to the points, for unit mass."""
        alpha, half = point[1], c.shape[1] // 2
        f, h = (c, self.sign * c) if self.tied else (c[:, :half], c[:, half:])
        signed = alpha * np.sign(self.gap)
        row, column = (alpha @ self.q[:, :, None])[:, :, 0], (self.p[:, None, :] @ alpha)[:, 0]
        x = (1.0 - row) * (self.slope_x @ f[:, :, None])[:, :, 0] + (signed @ self.q[:, :, None])[:, :, 0]
        y = (1.0 - column) * (self.slope_y @ h[:, :, None])[:, :, 0] - (self.p[:, None, :] @ signed)[:, 0]
        return x, y
