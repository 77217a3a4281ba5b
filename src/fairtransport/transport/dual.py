r"""The dual problem of regularized transport, solved by stochastic gradients: state, step, and the whole solution.

For samples s of one distribution and t of the other, with f = duals of s and h = duals of t,

.. math:: E[f(s)] + E[h(t)] - \lambda\,E\!\left[\phi^*\!\left(\frac{f(s)+h(t)-|s-t|}{\lambda}\right)\right]

is maximised over f and h, both expansions in random Fourier features (paper, Eq. 4 and "Optimal Dual
Variables"). The expectation runs over matched pairs (i = j, N terms; unbiased because the samples are
independent) or over all N x N pairs.

The formulas take NumPy arrays and torch tensors alike, and any number of leading axes: many problems at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport._validation import check_choice, check_count, check_real, check_vector
from fairtransport.transport._namespace import namespace
from fairtransport.transport.fourier import FourierFeatures, draw_features
from fairtransport.transport.regularizers import Regularizer, get_regularizer

PAIRS = ("matched", "all")
Sampler = Callable[[int, np.random.Generator], "ArrayLike"]

#: Dual curvature grows like 1 / strength, so a stable step is proportional to the strength.
STEP_PER_STRENGTH = {"l2": 1.0, "entropy": 0.5}


@dataclass(frozen=True, eq=False)
class DualProblem:
    """The dual problem of two distributions."""

    features: FourierFeatures
    regularizer: Regularizer
    strength: float
    opposite: bool
    pairs: str = "matched"

    @property
    def default_step(self) -> float:
        """The default step size, which is proportional to the strength."""
        return STEP_PER_STRENGTH[self.regularizer.name] * self.strength


@dataclass(frozen=True, eq=False)
class DualState:
    """Coefficients of f (``x``) and of h (``y``), of shape (..., n_features); opposite duals have ``y = -x``."""

    x: Any
    y: Any

    @classmethod
    def zeros(cls, problem: DualProblem) -> DualState:
        """Return the initial state of the paper."""
        return cls(np.zeros(len(problem.features)), np.zeros(len(problem.features)))


@dataclass(frozen=True, eq=False)
class DualTerms:
    """The objective on one pair of batches and its derivatives; alpha, and alpha sign(x - y), of each x on average."""

    value: Any
    x_gradient: Any
    y_gradient: Any
    point_gradient: Any
    alpha: Any
    signed: Any


def dual_values(psi: Any, coefficients: Any) -> Any:
    """Return f at points whose features are ``psi`` (..., n, n_features)."""
    return (psi @ coefficients[..., None])[..., 0]


def conjugate_argument(strength: float, cost: Any, f: Any, h: Any) -> Any:
    """Return v = (f(x) + h(y) - cost) / strength, the argument of the conjugate; shapes are broadcast."""
    return (f + (h - cost)) / strength


def point_slope(alpha: Any, slope: Any, signed: Any) -> Any:
    """Return (1 - alpha) f'(x) + alpha sign(x - y), the derivative with respect to x; its second term is ``signed``."""
    return (1.0 - alpha) * slope + signed


def dual_gradients(problem: DualProblem, psi_x: Any, psi_y: Any, alpha_x: Any, alpha_y: Any) -> tuple[Any, Any]:
    """Return the derivatives with respect to the coefficients, from alpha averaged over each point's pairs."""
    x = ((1.0 - alpha_x)[..., None, :] @ psi_x)[..., 0, :] / psi_x.shape[-2]
    y = ((1.0 - alpha_y)[..., None, :] @ psi_y)[..., 0, :] / psi_y.shape[-2]
    return (x - y, y - x) if problem.opposite else (x, y)


def evaluate(problem: DualProblem, state: DualState, x: Any, y: Any) -> DualTerms:
    """Return value and gradients on one batch of each distribution, or on many: x is (..., n), y is (..., m)."""
    xp, regularizer, matched = namespace(x), problem.regularizer, problem.pairs == "matched"
    if matched and x.shape != y.shape:
        raise ValueError(f"pairs='matched' needs batches of equal size; got {x.shape[-1]} and {y.shape[-1]}.")
    (psi_x, slope_x), psi_y = problem.features.value_and_slope(x), problem.features.value(y)
    f, h, slope = dual_values(psi_x, state.x), dual_values(psi_y, state.y), dual_values(slope_x, state.x)
    # Each x with its y, or every x (one but last axis) with every y (last axis).
    f_pairs, h_pairs = (f, h) if matched else (f[..., None], h[..., None, :])
    gap = x - y if matched else x[..., None] - y[..., None, :]
    v = conjugate_argument(problem.strength, xp.abs(gap), f_pairs, h_pairs)
    alpha, conjugate = regularizer.alpha_and_conjugate(v)
    alpha_x, alpha_y, signed = alpha, alpha, alpha * xp.sign(gap)
    if not matched:
        conjugate, signed = conjugate.mean(-1), signed.mean(-1)
        alpha_x, alpha_y = alpha.mean(-1), alpha.mean(-2)
    value = f.mean(-1) + h.mean(-1) - problem.strength * conjugate.mean(-1)
    gradients = dual_gradients(problem, psi_x, psi_y, alpha_x, alpha_y)
    return DualTerms(value, *gradients, point_slope(alpha_x, slope, signed) / x.shape[-1], alpha_x, signed)


def ascend(problem: DualProblem, state: DualState, terms: DualTerms, step: Any) -> DualState:
    """Return the state after a step of gradient ascent, which keeps opposite dual variables opposite."""
    x = state.x + step * terms.x_gradient
    return replace(state, x=x, y=-x if problem.opposite else state.y + step * terms.y_gradient)


def ascend_all_pairs(
    problem: DualProblem, state: DualState, cost: Any, psi_x: Any, psi_y: Any, *, step: Any
) -> DualState:
    """Return what `evaluate` and `ascend` do for every x with every y, from the costs (..., n, m) and the features."""
    f, h = dual_values(psi_x, state.x)[..., None], dual_values(psi_y, state.y)[..., None, :]
    alpha = problem.regularizer.alpha(conjugate_argument(problem.strength, cost, f, h))
    x_gradient, y_gradient = dual_gradients(problem, psi_x, psi_y, alpha.mean(-1), alpha.mean(-2))
    x = state.x + step * x_gradient
    return DualState(x, -x if problem.opposite else state.y + step * y_gradient)


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Dual variables of two distributions.

    Attributes
    ----------
    value : float
        Dual objective at the returned duals, mean over fresh batches: the regularized distance.
    state, problem : DualState, DualProblem
        The coefficients, and what was solved.
    history : ndarray of shape (n_records, 2)
        Update number and the mean objective since the last record.
    outcome : str
        How the run ended, in words.
    """

    value: float
    state: DualState
    problem: DualProblem
    history: Floats
    outcome: str

    def x_dual(self, points: ArrayLike) -> Floats:
        """Return the values of the first distribution's dual variable."""
        return self.problem.features(points) @ self.state.x

    def y_dual(self, points: ArrayLike) -> Floats:
        """Return the values of the second distribution's dual variable."""
        return self.problem.features(points) @ self.state.y


def _sampler(source: Any, name: str) -> Callable[[int, np.random.Generator], Floats]:
    if callable(source):
        return lambda n, rng: check_vector(source(n, rng), name=f"a draw of {name}")
    values = check_vector(source, name=name)
    return lambda n, rng: values[rng.integers(len(values), size=n)]


def solve_dual(
    x: ArrayLike | Sampler,
    y: ArrayLike | Sampler,
    *,
    strength: float = 0.1,
    regularizer: str = "l2",
    opposite_duals: bool = False,
    n_fourier_features: int = 50,
    kernel_variance: float = 1.0,
    dual_step: float | None = None,
    n_updates: int = 20_000,
    batch_size: int = 100,
    pairs: str = "matched",
    average: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> DualSolution:
    r"""Return the optimal dual variables of two distributions on the line, as in Figure 1 of the paper.

    Parameters
    ----------
    x, y : array-like of shape (n_samples,) or callable
        Samples, or samplers called as ``x(n, rng)`` that return ``n`` fresh values.
    strength : float, default=0.1
        Regularization strength; a very small one needs very many updates.
    regularizer : {"l2", "entropy"}, default="l2"
        The divergence.
    opposite_duals : bool, default=False
        Keep the two dual variables opposite: more stable, and exact as the strength goes to zero.
    n_fourier_features, kernel_variance : int, float
        Number of random Fourier features and variance of the Gaussian kernel, which should match the scale of the data.
    dual_step : float, optional
        Step size; by default ``strength`` (l2) or half of it (entropy).
    n_updates, batch_size : int
        Number of steps, and of samples that each step draws of each distribution.
    pairs : {"matched", "all"}, default="matched"
        N pairs a batch, or all N x N.
    average : bool, default=True
        Return the mean of the second half of the iterates.
    random_state : int or Generator, optional
        Seed.

    Returns
    -------
    DualSolution

    See Also
    --------
    fairtransport.transport.wasserstein : The exact distance, without regularization.

    Notes
    -----
    The dual objective is

    .. math:: E[f(x)] + E[h(y)] - \lambda\,E\!\left[\phi^*\!\left(\frac{f(x)+h(y)-|x-y|}{\lambda}\right)\right].

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, Eq. 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(-1, 1, 2000), rng.normal(1, 1, 2000)
    >>> solution = solve_dual(x, y, opposite_duals=True, n_updates=3000, random_state=0)
    >>> bool(solution.x_dual(-2.0) > solution.x_dual(2.0))
    True
    """
    draw_x, draw_y = _sampler(x, "x"), _sampler(y, "y")
    check_real(strength, name="strength", strict=True)
    check_count(n_updates, name="n_updates")
    check_count(batch_size, name="batch_size")
    rng = np.random.default_rng(random_state)
    problem = DualProblem(
        draw_features(n_fourier_features, kernel_variance, rng),
        get_regularizer(regularizer),
        float(strength),
        bool(opposite_duals),
        check_choice(pairs, PAIRS, name="pairs"),
    )
    step = problem.default_step if dual_step is None else check_real(dual_step, name="dual_step", strict=True)

    state = good = DualState.zeros(problem)
    mean_x, mean_y, averaged = np.zeros_like(state.x), np.zeros_like(state.y), 0
    history, running, outcome = [], [], f"ran all {n_updates} updates"
    record_every = max(1, n_updates // 100)
    for update in range(1, n_updates + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # a divergence is reported below
            terms = evaluate(problem, state, draw_x(batch_size, rng), draw_y(batch_size, rng))
            new = ascend(problem, state, terms, step)
        good = state if np.isfinite(terms.value) else good
        if not (np.isfinite(terms.value) and np.isfinite(new.x).all() and np.isfinite(new.y).all()):
            state, averaged = good, 0
            outcome = f"diverged at update {update}; the last finite duals are returned: use a smaller dual_step"
            break
        state = new
        running.append(terms.value)
        if average and 2 * update > n_updates:
            averaged += 1
            mean_x += (state.x - mean_x) / averaged
            mean_y += (state.y - mean_y) / averaged
        if update % record_every == 0:
            history.append((update, float(np.mean(running))))
            running.clear()
    if averaged:
        state = DualState(mean_x, mean_y)
    fresh = [evaluate(problem, state, draw_x(batch_size, rng), draw_y(batch_size, rng)).value for _ in range(100)]
    return DualSolution(float(np.mean(fresh)), state, problem, np.array(history).reshape(-1, 2), outcome)
