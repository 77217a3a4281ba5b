"""COT: parity by continuous optimal transport, the paper's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport.estimators._linear import LinearTransportClassifier
from fairtransport.transport.dual import PAIRS, DualProblem
from fairtransport.transport.fourier import FourierFeatures, draw_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.estimators.course import Result
    from fairtransport.groups import Groups

__all__ = ["ContinuousTransportClassifier", "Duals"]


@dataclass(frozen=True, eq=False)
class Duals:
    """The dual variables of every group, as functions on [0, 1].

    Attributes
    ----------
    features : FourierFeatures
        The basis.
    group_weights, target_weights : ndarray of shape (n_groups, n_fourier_features)
        Coefficients of the duals of the group and of the target.
    groups : Groups
        Names the rows of the two arrays.
    """

    features: FourierFeatures
    group_weights: NDArray[np.float64]
    target_weights: NDArray[np.float64]
    groups: Groups

    def of_group(self, label: Any, points: ArrayLike) -> NDArray[np.float64]:
        """Dual variable of the group's scores: large where it has too much mass."""
        return self.features(points) @ self.group_weights[self.groups.index_of(label)]

    def of_target(self, label: Any, points: ArrayLike) -> NDArray[np.float64]:
        """Dual variable of the target in that group's problem."""
        return self.features(points) @ self.target_weights[self.groups.index_of(label)]


class ContinuousTransportClassifier(LinearTransportClassifier):
    r"""Logistic regression with strong demographic parity by continuous optimal transport (COT).

    Parameters
    ----------
    estimator : estimator, optional
        The linear logistic model that starts theta, fitted or not; by default ``LogisticRegression``.
    parity_weight : float, default=2.0
        Weight of the transport term against weight 1 of the logistic loss, the anchor. ``inf`` is the
        paper's algorithm, which forgets the labels after the initial model.
    target : {"barycenter", "barycenter_w2", "pooled"}, group label or array, default="barycenter"
        The distribution every group is moved to, kept fixed at the initial model: the equal-weight
        Wasserstein-1 barycenter (the paper's), the Wasserstein-2 barycenter weighted by group size, all
        rows together, one group's scores, or given scores.
    regularizer : {"l2", "entropy"}, default="l2"
        Regularization of the transport problem.
    strength : float, default=0.1
        Its strength, lambda in the paper.
    opposite_duals : bool, default=True
        Keep the two duals of a group opposite at every score; stabler.
    group_specific : bool, default=False
        Weights for each group; then the group is needed at prediction.
    n_fourier_features, kernel_variance : int, float, default=50, 0.1
        Size and width of the space of dual variables.
    dual_step : float, optional
        Update size of the duals; by default a multiple of ``strength``, because dual curvature grows like
        1 / strength.
    parameter_step : float, optional
        Update size of theta, the same for every column, as in the paper. By default it is derived from
        the features' scale, the batch size and the parity weight (see Notes).
    n_updates, batch_size : int, default=20000, 100
        Number of updates and rows of each group drawn for each.
    pairs : {"matched", "all"}, default="matched"
        Pair the i-th row of a group with the i-th draw from the target (N pairs), or all N x N.
    average : bool, default=True
        Use the mean of the second half of the iterates.
    grouping : {"crossed", "each"}, default="crossed"
        Cross several sensitive columns, or let each value of each column be a group (groups overlap).
    missing : {"error", "group"}, default="error"
        A missing sensitive value raises, or is a group of its own.
    min_size : int, default=2
        A group with fewer rows raises.
    random_state : int, RandomState or None
        Equal seeds give identical results.
    verbose : bool, default=False
        Show a progress bar with the running disparity.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        Theta; with ``group_specific=True`` one row for each group.
    duals_ : Duals
        Dual variables of every group.
    target_ : ndarray of shape (4096,)
        Scores of equal mass that stand for the target distribution.
    groups_ : Groups
        The groups seen, without their rows.
    initial_estimator_ : estimator
        The model that started theta.
    history_ : dict of ndarray
        ``update``, ``disparity`` (sum of Wasserstein-1 distances to the target) and ``loss`` on a fixed
        part of the training rows.
    outcome_ : str
        What happened, in words.
    n_iter_ : int
        Updates done.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Minimises over theta, and maximises over the duals f and h of each group a,

    .. math:: \mathrm{loss}(\theta) + w \sum_a \Big( E[f_a(s)] + E[h_a(t)]
              - \lambda E\,\phi^*\big((f_a(s) + h_a(t) - |s-t|)/\lambda\big)\Big),

    s a score of group a, t of the target (paper, Eq. 7 and the COT algorithm; :math:`w=\infty` leaves the
    loss out). The anchor keeps theta from drifting along the set of fair models.

    Without ``parameter_step``, each column's step is divided by its mean square (in the group where that is
    largest, plus a hundredth of its largest square) and the common size is a fixed fraction of the largest stable
    one, so the scale of the features does not matter. It falls to a twentieth over the run.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import ContinuousTransportClassifier
    >>> from fairtransport.metrics import strong_pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = ContinuousTransportClassifier(n_updates=2000, random_state=0)
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> before = strong_pairwise_disparity(model.initial_estimator_.predict_proba(X)[:, 1], sensitive_features=group)
    >>> after = strong_pairwise_disparity(model.predict_proba(X)[:, 1], sensitive_features=group)
    >>> bool(after < before / 3)
    True
    """

    _short = "COT"

    def __init__(
        self,
        estimator: Any = None,
        *,
        parity_weight: float = 3.0,
        target: Any = None,
        regularizer: str = "l2",
        strength: float = 0.1,
        opposite_duals: bool = True,
        group_specific: bool = False,
        n_fourier_features: int = 50,
        kernel_variance: float = 0.1,
        dual_step: float | None = None,
        parameter_step: float | None = None,
        n_updates: int | None = None,
        batch_size: int = 100,
        pairs: str = "matched",
        memory: bool = True,
        average: bool = True,
        grouping: str = "crossed",
        missing: str = "error",
        min_size: int = 2,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.parity_weight = parity_weight
        self.target = target
        self.regularizer = regularizer
        self.strength = strength
        self.opposite_duals = opposite_duals
        self.group_specific = group_specific
        self.n_fourier_features = n_fourier_features
        self.kernel_variance = kernel_variance
        self.dual_step = dual_step
        self.parameter_step = parameter_step
        self.n_updates = n_updates
        self.batch_size = batch_size
        self.pairs = pairs
        self.memory = memory
        self.average = average
        self.grouping = grouping
        self.missing = missing
        self.min_size = min_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        get_regularizer(self.regularizer)
        check_choice(self.pairs, PAIRS, name="pairs")
        check_real(self.strength, name="strength", strict=True)
        check_flag(self.opposite_duals, name="opposite_duals")
        check_count(self.n_fourier_features, name="n_fourier_features")
        check_real(self.kernel_variance, name="kernel_variance", strict=True)
        if self.dual_step is not None:
            check_real(self.dual_step, name="dual_step", strict=True)

    def _dual_problem(self, rng: np.random.Generator) -> DualProblem:
        return DualProblem(
            draw_features(self.n_fourier_features, self.kernel_variance, rng),
            get_regularizer(self.regularizer),
            float(self.strength),
            bool(self.opposite_duals),
            self.pairs,
        )

    def _resolved_dual_step(self, problem: DualProblem | None) -> float:
        if self.dual_step is not None:
            return float(self.dual_step)
        return problem.default_step if problem else 0.0

    def _keep(self, result: Result) -> None:
        self.duals_ = Duals(result.features, result.duals, result.target_duals, self.groups_)
