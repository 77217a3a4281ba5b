"""Parity by continuous optimal transport (COT), the paper's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_count, check_flag, check_real
from fairtransport.linear.base import LinearTransportClassifier
from fairtransport.penalties import ContinuousPenalty
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import FourierFeatures, draw_features, quadrature_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear._training import LinearFit
    from fairtransport.linear.solvers._sgd import Result
    from fairtransport.linear.solvers.settings import SgdSettings
    from fairtransport.penalties import Comparisons, TransportPenalty

__all__ = ["ContinuousTransportClassifier", "Duals"]

_SLICES = 32


@dataclass(frozen=True, eq=False)
class Duals:
    """The dual variables of every group, as functions on [0, 1].

    Attributes
    ----------
    features : FourierFeatures
        The basis.
    group_weights, target_weights : ndarray of shape (n_groups, n_fourier_features)
        Coefficients of the dual potentials of the group and of what it is compared with; summed over the pairs that the
        group is in.
    groups : Groups
        Names the rows of the two arrays.
    center, unit : float
        Scores are taken less ``center`` and divided by ``unit`` before they enter the features.
    """

    features: FourierFeatures
    group_weights: NDArray[np.float64]
    target_weights: NDArray[np.float64]
    groups: Groups
    center: float = 0.0
    unit: float = 1.0

    def __call__(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the dual potential of every group at these scores: shape (n_groups, n_points)."""
        return np.asarray(self._psi(points) @ self.group_weights.T).T

    def of_group(self, label: Any, points: ArrayLike) -> NDArray[np.float64]:
        """Return the dual potential of a group's scores: large where it has too much mass."""
        return self._psi(points) @ self.group_weights[self.groups.index_of(label)]

    def of_target(self, label: Any, points: ArrayLike) -> NDArray[np.float64]:
        """Return the dual potential of what the group is compared with: the target, or the other groups."""
        return self._psi(points) @ self.target_weights[self.groups.index_of(label)]

    def _psi(self, points: ArrayLike) -> Any:
        return self.features((np.asarray(points, dtype=np.float64) - self.center) / self.unit)


class ContinuousTransportClassifier(LinearTransportClassifier):
    r"""Logistic regression with strong demographic parity by continuous optimal transport (COT).

    Minimises the log-loss of a linear model, plus its ridge, plus ``parity_weight`` times the regularized transport
    distances between the groups' scores.

    Parameters
    ----------
    estimator : estimator, optional
        The linear logistic model to begin with, fitted or not; by default logistic regression on standardized columns,
        so that features need no scaling.
    parity_weight : float or "auto", default="auto"
        Weight of the penalty against weight 1 of the log-loss. It has no unit: at 1 the whole disparity of the initial
        model counts as much as its whole gain in log-loss over a constant. 0 is no parity. ``"auto"`` takes the
        smallest weight at which the rank disparity of the training rows is at its noise floor, or beyond which it no
        longer falls, but keeps at least half of the initial model's information; ``outcome_`` says which. With
        ``solver="sgd"``, ``inf`` leaves the loss out, as the paper does, and ``"auto"`` is ``inf``.
    max_disparity : float, optional
        Take the smallest weight at which the disparity (SPDD) of the training rows is at most this, instead.
    amount : float, default=1.0
        How far scores go from those of the initial model (0) to those of the trained one (1): their weighted mean. It
        matters at prediction only, so it can be set after ``fit``.
    spread : {"trained", "initial"}, default="trained"
        ``"initial"`` gives the trained scores the spread of the initial model's, by one increasing map for everyone;
        can be set after ``fit``.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, optional
        What groups are compared with: each other (the default), or a distribution that is fixed at the initial model:
        the equal-weight Wasserstein-1 barycenter (the paper's, and the default of ``solver="sgd"``), the
        Wasserstein-2 barycenter weighted by group size, everyone, one group's scores, or given scores.
    scale : {"standardized", "score"}, optional
        Compare scores in units of their standard deviation, so that shrinking all of them gains nothing (the default),
        or as they are (the paper's, and the default of ``solver="sgd"``).
    group_specific : bool, default=False
        Weights for each group; then the group is needed at prediction.
    regularizer : {"l2", "entropy"}, default="l2"
        Regularization of the transport problem.
    strength : float, default=0.1
        Its strength, lambda in the paper.
    opposite_duals : bool, default=True
        Keep the two dual potentials of a pair opposite at every score.
    n_fourier_features, kernel_variance : int, float, default=50, 0.1
        Size and width of the space of dual potentials.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        All rows at once by L-BFGS, which is deterministic; or the paper's stochastic algorithm.
    tol : float, default=3e-4
        With ``"lbfgs"``: converged when no entry of the gradient, in whitened coordinates, is larger.
    max_iter : int, default=1000
        With ``"lbfgs"``: the most iterations; more are refused with a ``ConvergenceWarning``.
    n_updates, batch_size : int, optional
        With ``"sgd"``: how many updates (20,000), and rows of each group for each (100).
    parameter_step, dual_step : float, optional
        With ``"sgd"``: step sizes of the weights and of the dual potentials; chosen from the data by default.
    pairs : {"matched", "all"}, optional
        With ``"sgd"``: pair the i-th row of a batch with the i-th draw from the target (default), or all with all.
    average : bool, optional
        With ``"sgd"``: return the mean of the second half of the iterates (default) or the last one.
    grouping : {"crossed", "each"}, default="crossed"
        Cross several sensitive columns, or let each value of each column be a group (groups overlap).
    missing : {"error", "group"}, default="error"
        A missing sensitive value raises, or is a group of its own.
    small_groups : {"keep", "pool", "drop"}, default="keep"
        What becomes of groups with fewer than ``min_group_size`` rows. They are kept, and count as far as their
        differences exceed chance; are pooled into one group; or are left out of the comparisons and, with
        ``group_specific``, scored by the common weights.
    min_group_size : int, default=30
        See ``small_groups``.
    warm_start : bool, default=False
        Let a second ``fit`` begin at the weights of the one before, with the same initial model.
    half_life : float, default=1000
        For ``partial_fit``: after so many rows of its group a row counts half.
    new_groups : {"error", "adopt"}, default="error"
        For ``partial_fit``: a group that was not seen before raises, or is taken up.
    random_state : int, RandomState or None
        Seed of ``solver="sgd"``; ``"lbfgs"`` draws nothing.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The trained weights; with ``group_specific=True`` one row for each group.
    common_coef_, common_intercept_ : ndarray of shape (n_features,), float
        Weights of rows that are in no group.
    parity_weight_ : float
        The weight that was used.
    outcome_ : str
        What happened, in words.
    information_kept_ : float
        Share of the initial model's gain in log-loss over a constant that is left.
    before_after_ : dict
        ``log_loss``, ``auc``, ``spread`` (standard deviation of the scores), ``disparity`` (SPDD) and
        ``rank_disparity`` of the training rows, by the initial and by the trained model.
    path_ : dict of ndarray
        The weights that were tried: ``weight``, ``disparity``, ``rank_disparity``, ``log_loss``,
        ``information_kept``, ``theta`` and ``spread``. Measured out of fold where the model is flexible (own weights,
        or more than one column for 20 rows). See `at`.
    duals_ : Duals
        The dual potentials of every group.
    target_ : ndarray of shape (4096,)
        Scores of equal mass that stand for the target; where groups are compared with each other, their
        Wasserstein-2 barycenter at the initial model.
    groups_, group_sizes_ : Groups, ndarray
        The groups seen, without their rows, and how many rows each had.
    initial_estimator_ : estimator
        The model that training began with.
    history_ : dict of ndarray
        ``update``, ``disparity`` (what is penalised) and ``loss`` after each iteration.
    n_iter_ : int
        Iterations, or updates.
    spread_ : ndarray of shape (2, n_points)
        The map of ``spread="initial"``; its points are means of five rows or more.
    adjusting_ : Adjustment
        What ``partial_fit`` goes on from; no rows.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    DiscreteTransportClassifier : The same with the exact distance.
    QuantileRepairClassifier : Repairs the scores of any classifier, with the group at hand.
    frontier : The whole trade-off, on held-out rows.

    Notes
    -----
    With scores s of the linear model, the objective is

    .. math:: \mathrm{loss}(\theta) + \tfrac{r}{2}|\theta|^2 + w\,u \sum_{(a,b)} \omega_{ab}\, T(S_a, S_b),

    T the regularized transport distance (paper, Eq. 4 and 7) of standardized scores, each solved exactly on 32 slice
    means of the two groups by Newton's method (`fairtransport.transport.dual_optimum`), with the frequencies of the
    Fourier features at the quantiles of their distribution. The pair weights :math:`\omega` leave out what chance shows
    for groups of these sizes (`fairtransport.criteria.weigh_by_reliability`), and
    :math:`u = V / \sum \omega_{ab} T(S^0_a, S^0_b)`, V the gain of the initial model over a constant.

    With ``group_specific=True`` a group's weights are the shared ones plus 0.7 times a deviation of its own, both with
    the ridge of the initial model.

    Blind prediction: leave the sensitive columns out of the features; the groups are used in training only. What blind
    features do not allow is said by ``outcome_`` and a `FairnessWarning`.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import ContinuousTransportClassifier
    >>> from fairtransport.metrics import strong_pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = ContinuousTransportClassifier().fit(X, y, sensitive_features=group)
    >>> before = strong_pairwise_disparity(model.initial_estimator_.predict_proba(X)[:, 1], sensitive_features=group)
    >>> after = strong_pairwise_disparity(model.predict_proba(X)[:, 1], sensitive_features=group)
    >>> bool(after < before / 3), bool(model.information_kept_ > 0.5)
    (True, True)
    """

    _short = "COT"

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
        regularizer: str = "l2",
        strength: float = 0.1,
        opposite_duals: bool = True,
        n_fourier_features: int = 50,
        kernel_variance: float = 0.1,
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
        self.regularizer = regularizer
        self.strength = strength
        self.opposite_duals = opposite_duals
        self.n_fourier_features = n_fourier_features
        self.kernel_variance = kernel_variance
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
        get_regularizer(self.regularizer)
        check_real(self.strength, name="strength", strict=True)
        check_flag(self.opposite_duals, name="opposite_duals")
        check_count(self.n_fourier_features, name="n_fourier_features")
        check_real(self.kernel_variance, name="kernel_variance", strict=True)

    def _penalty(self, *, n_slices: int | None = None) -> ContinuousPenalty:
        features = quadrature_features(self.n_fourier_features, self.kernel_variance)
        problem = DualProblem(
            features, get_regularizer(self.regularizer), float(self.strength), bool(self.opposite_duals), "all"
        )
        return ContinuousPenalty(problem, n_slices=n_slices or _SLICES, scale=self._resolved_scale)

    def _dual_problem(self, settings: SgdSettings, rng: np.random.Generator) -> DualProblem:
        return DualProblem(
            draw_features(self.n_fourier_features, self.kernel_variance, rng),
            get_regularizer(self.regularizer),
            float(self.strength),
            bool(self.opposite_duals),
            settings.pairs,
        )

    def _resolved_dual_step(self, settings: SgdSettings, problem: DualProblem | None) -> float:
        if settings.dual_step is not None:
            return float(settings.dual_step)
        return problem.default_step if problem else 0.0

    def _keep(self, result: Result) -> None:
        self.duals_ = Duals(result.features, result.duals, result.target_duals, self.groups_)

    def _keep_penalty(self, found: LinearFit) -> None:
        found.penalty.value_and_gradient(found.scores_in_order, found.comparisons)  # at the final model
        self._show_duals(found.penalty, found.comparisons)

    def _show_duals(self, penalty: TransportPenalty, comparisons: Comparisons) -> None:
        if not isinstance(penalty, ContinuousPenalty):
            return
        f, h = penalty.dual_coefficients()
        n_groups, width = len(self.groups_), len(penalty.problem.features)
        own, other = np.zeros((n_groups, width)), np.zeros((n_groups, width))
        names = comparisons.names or tuple(range(n_groups))
        for (a, b), first, second in zip(penalty.pairs, f, h, strict=True):
            for one, mine, theirs in ((a, first, second), (b, second, first)):
                group = names[one] if one < len(names) else None
                if group is not None:
                    own[group] += mine
                    other[group] += theirs
        self.duals_ = Duals(penalty.problem.features, own, other, self.groups_, penalty.center, penalty.unit)
