"""The default solver, L-BFGS on all rows, of loss + ridge + weight * penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from fairtransport.linear.solvers._linear_problem import unwhiten, whiten_gradient

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.linear.solvers._linear_problem import LinearProblem
    from fairtransport.penalties import ChanceTerm, Comparisons, TransportPenalty

__all__ = ["LbfgsResult", "LbfgsSolver", "penalty_net_of_chance"]

_CORRECTIONS = 20
_LINE_SEARCHES = 40


@dataclass(frozen=True, eq=False)
class LbfgsResult:
    """Result of one run of the solver.

    Attributes
    ----------
    parameters : ndarray of shape (1 + n_blocks, n_columns + 1)
    converged : bool
    message : str
        Why the solver stopped.
    n_iter : int
        Iterations.
    records : list of (penalty, loss)
        After each iteration.
    """

    parameters: NDArray[np.float64]
    converged: bool
    message: str
    n_iter: int
    records: list[tuple[float, float]]


class LbfgsSolver:
    r"""Minimises loss + ridge + :math:`w u \sum_k w_k\, d_k(s)` over the parameters of a linear model.

    Parameters
    ----------
    problem : LinearProblem
    penalty : TransportPenalty
    comparisons : Comparisons
    chance : ChanceTerm or None
        Subtracted from the penalty.
    initial : ndarray
        Parameters of the initial model, at whose Hessian the coordinates are whitened.
    unit : float
        The factor u.
    tol : float
        A run has converged when no entry of the gradient, in whitened coordinates, is larger.
    max_iter : int
    factors : list of ndarray, optional
        The whitening of another solver of the same model.
    """

    def __init__(
        self,
        problem: LinearProblem,
        penalty: TransportPenalty,
        comparisons: Comparisons,
        *,
        chance: ChanceTerm | None = None,
        initial: NDArray[np.float64],
        unit: float,
        tol: float,
        max_iter: int,
        factors: list[NDArray[np.float64]] | None = None,
    ) -> None:
        self.problem, self.penalty, self.comparisons, self.unit = problem, penalty, comparisons, unit
        self.chance, self.tol, self.max_iter = chance, tol, max_iter
        self.initial = initial
        self.factors = problem.whitening(initial) if factors is None else factors
        self._last: tuple[float, float] = (0.0, 0.0)

    def run(
        self,
        weight: float,
        start: NDArray[np.float64],
        on_iteration: Callable[[int, float, float], None] | None = None,
    ) -> LbfgsResult:
        """Return the minimum for one weight of the penalty, from a starting point."""
        records: list[tuple[float, float]] = []

        def objective(coordinates: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            parameters = start + unwhiten(self.factors, coordinates.reshape(self.problem.shape))
            value, gradient = self.value_and_gradient(parameters, weight)
            return value, whiten_gradient(self.factors, gradient).ravel()

        def after(_: Any) -> None:
            records.append(self._last)
            if on_iteration is not None:
                on_iteration(len(records), *self._last)

        solution = minimize(
            objective,
            np.zeros(int(np.prod(self.problem.shape))),
            jac=True,
            method="L-BFGS-B",
            callback=after,
            options={
                "maxiter": self.max_iter, "maxfun": 2 * self.max_iter + 10, "maxcor": _CORRECTIONS,
                "gtol": self.tol, "ftol": 1e-4 * self.tol, "maxls": _LINE_SEARCHES,
            },
        )  # fmt: skip
        parameters = start + unwhiten(self.factors, solution.x.reshape(self.problem.shape))
        # A line search that ends at rounding errors (status 2) has converged where the gradient is small.
        converged = solution.status == 0 or (
            solution.status == 2 and float(np.abs(solution.jac).max()) <= 100.0 * self.tol
        )
        return LbfgsResult(parameters, converged, str(solution.message), int(solution.nit), records)

    def value_and_gradient(self, parameters: NDArray[np.float64], weight: float) -> tuple[float, NDArray[np.float64]]:
        """Return the objective and its gradient with respect to the parameters."""
        problem = self.problem
        loss, scores, slopes = problem.loss_terms(parameters)
        ridge, gradient = problem.ridge_terms(parameters)
        penalty = 0.0
        if weight > 0.0 and self.unit > 0.0:
            penalty, score_gradient = penalty_net_of_chance(self.penalty, self.comparisons, self.chance, scores)
            slopes += weight * self.unit * score_gradient * problem.loss.score_slopes(scores)
        self._last = penalty, loss
        return loss + ridge + weight * self.unit * penalty, gradient + problem.gradient(slopes)


def penalty_net_of_chance(
    penalty: TransportPenalty, comparisons: Comparisons, chance: ChanceTerm | None, scores: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the penalty without what chance adds to it, and its derivative with respect to each score."""
    terms = penalty.value_and_gradient(scores, comparisons)
    if chance is None:
        return terms.value, terms.gradient
    return chance.subtracted(terms.value, terms.gradient, scores)
