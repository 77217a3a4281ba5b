"""The same with exact transport between samples (DOT), the paper's discrete counterpart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.linear.base import LinearTransportClassifier
from fairtransport.penalties import DiscretePenalty

if TYPE_CHECKING:
    import numpy as np

    from fairtransport.linear.solvers.settings import SgdSettings
    from fairtransport.transport.dual import DualProblem

__all__ = ["DiscreteTransportClassifier"]

_SLICES = 200


class DiscreteTransportClassifier(LinearTransportClassifier):
    r"""Logistic regression with strong demographic parity by discrete optimal transport (DOT).

    Minimises the log-loss of a linear model, plus its ridge, plus ``parity_weight`` times the exact Wasserstein-1
    distances between the groups' scores.

    Parameters
    ----------
    estimator : estimator, optional
        The linear logistic model to begin with, fitted or not; by default logistic regression on standardized columns.
    parity_weight, max_disparity, amount, spread, target, scale, group_specific
        As in :class:`ContinuousTransportClassifier`.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        All rows at once by L-BFGS, which is deterministic; or the paper's stochastic algorithm.
    tol, max_iter, n_updates, parameter_step, average
        As in :class:`ContinuousTransportClassifier`.
    batch_size : int, optional
        With ``"sgd"``: rows of each group for each update (200). Small batches bias the coupling (see Notes).
    grouping, missing, small_groups, min_group_size, warm_start, half_life, new_groups, random_state, verbose
        As in :class:`ContinuousTransportClassifier`.

    Attributes
    ----------
    coef_, intercept_, parity_weight_, outcome_, information_kept_, before_after_, path_, target_, groups_
        As in :class:`ContinuousTransportClassifier`, and so are the others; there are no dual variables.

    See Also
    --------
    ContinuousTransportClassifier : The same with the regularized distance of the paper.

    Notes
    -----
    The distance is that of `fairtransport.penalties.DiscretePenalty` on 200 slice means of each group; the objective is
    the one of :class:`ContinuousTransportClassifier` otherwise.

    With ``solver="sgd"``, each update draws N scores of a group and N of the target, joins the i-th smallest with the
    i-th smallest (the optimal coupling on the line) and follows the gradient of the mean distance (paper, Eq. 9 and the
    update below it). The expected distance between two batches is larger than the distance of the distributions and is
    least for a group that is too concentrated, which is why batches of 10 fail.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, Eq. 9.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import DiscreteTransportClassifier
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = DiscreteTransportClassifier().fit(X, y, sensitive_features=group)
    >>> before, after = model.before_after_["disparity"]
    >>> bool(after < before / 3)
    True
    """

    _short = "DOT"
    _batch_size = 200

    def __init__(
        self,
        estimator: Any = None,
        *,
        parity_weight: float | str = "auto",
        max_disparity: float | None = None,
        amount: float = 1.0,
        spread: str = "trained",
        target: Any = "each_other",
        scale: str = "standardized",
        group_specific: bool = False,
        solver: str | SgdSettings = "lbfgs",
        tol: float = 3e-4,
        max_iter: int = 1000,
        grouping: str = "crossed",
        missing: str = "error",
        small_groups: str = "keep",
        min_group_size: int = 30,
        half_life: float = 1000.0,
        new_groups: str = "error",
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.parity_weight = parity_weight
        self.max_disparity = max_disparity
        self.amount = amount
        self.spread = spread
        self.target = target
        self.scale = scale
        self.group_specific = group_specific
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.grouping = grouping
        self.missing = missing
        self.small_groups = small_groups
        self.min_group_size = min_group_size
        self.half_life = half_life
        self.new_groups = new_groups
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        settings = self._sgd
        if settings is not None and (settings.dual_step is not None or settings.pairs != "matched"):
            raise ValueError(
                "Discrete transport has no dual potentials: leave dual_step at None and pairs at 'matched' in its "
                "SgdSettings."
            )

    def _penalty(self, *, n_slices: int | None = None) -> DiscretePenalty:
        return DiscretePenalty(n_slices=n_slices or _SLICES, scale=self._resolved_scale)

    def _dual_problem(self, settings: SgdSettings, rng: np.random.Generator) -> DualProblem | None:  # noqa: ARG002
        return None

    def _resolved_dual_step(self, settings: SgdSettings, problem: DualProblem | None) -> float:  # noqa: ARG002
        return 0.0
