"""Parity of the distributions of real-valued predictions by continuous optimal transport (COT)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.linear._training_data import ContinuousDistance
from fairtransport.linear.regressor import LinearTransportRegressor

if TYPE_CHECKING:
    from fairtransport.linear.sgd_problem import SgdSettings


class ContinuousTransportRegressor(LinearTransportRegressor):
    r"""Linear regression with parity of whole distributions of predictions, by continuous optimal transport (COT).

    Minimises the squared error of a linear model, plus its ridge, plus ``parity_weight`` times the regularized
    transport distances between the groups' predictions. Predictions are rescaled inside, so that the unit of y does not
    matter: a model of ``1000 * y + 5`` predicts 1000 times as much, plus 5.

    Parameters
    ----------
    estimator : estimator, optional
        Linear regression to start from, such as ``LinearRegression`` or ``Ridge``, fitted or not. By default ridge
        regression on standardized columns, so that features need no scaling.
    criterion : {"demographic_parity", "equalized_odds"}, default="demographic_parity"
        Which rows of the groups are compared: all, or those with about the same y, which is cut at quantiles. With
        ``strata`` in ``fit``, groups are compared within strata (conditional parity).
    stratum_weight : {"equal", "share"}, optional
        Whether strata, and ranges of y, count the same or by their share of the rows, which is the default.
    parity_weight : float or "auto", default="auto"
        Weight of the penalty, where the squared error has weight 1. It has no unit: at 1 the whole disparity of the
        initial model counts as much as its whole gain in squared error over a constant; at 0 there is no penalty.
        ``"auto"`` takes the smallest weight at which the rank disparity of the training rows is at its noise floor, or
        beyond which it no longer falls, but keeps at least half of the initial model's information; ``outcome_`` says
        which. With ``solver="sgd"``, ``inf`` leaves the loss out, as the paper does, and ``"auto"`` is ``inf``.
    max_disparity : float, optional
        Take the smallest weight at which the criterion's disparity of the training rows, in units of y, is at most
        this, instead: the strong pairwise demographic disparity (SPDD) or, with strata, its weighted mean over them.
    amount : float, default=1.0
        Position between the predictions of the initial model (0) and those of the trained one (1), as their weighted
        mean. It is used at prediction only, so it can be set after ``fit``.
    spread : {"trained", "initial"}, default="trained"
        ``"initial"`` maps the trained predictions to the spread of the initial model's, by one increasing map for all
        groups. It can be set after ``fit``.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, or a distribution that is fixed by the initial model: the
        equal-weight Wasserstein-1 barycenter of the groups (as in the paper), the Wasserstein-2 barycenter weighted by
        group size, the predictions of all rows, those of one group, or predictions in an array. Each stratum that is
        compared has its own. ``solver="sgd"`` needs a fixed distribution and takes ``"each_other"`` as
        ``"barycenter"``.
    scale : {"standardized", "score"}, default="standardized"
        Compare predictions in units of their own standard deviation, so that shrinking all of them gains nothing, or
        of that of y. ``solver="sgd"`` always does the latter.
    group_specific : bool, default=False
        Whether each group has its own weights; then the group is needed at prediction.
    regularizer : {"l2", "entropy"}, default="l2"
        Regularization of the transport problem.
    strength : float, default=0.1
        Strength of the regularization, lambda in the paper.
    opposite_duals : bool, default=True
        Constrain the two dual potentials of a pair to be opposite at every score.
    n_fourier_features : int, default=50
        Number of Fourier features in which dual potentials are expanded.
    kernel_variance : float, default=0.1
        Variance of the Gaussian kernel that the features approximate.
    solver : {"lbfgs", "sgd"} or SgdSettings, default="lbfgs"
        L-BFGS on all rows, which is deterministic, or the paper's stochastic algorithm. ``"sgd"`` has default settings;
        pass a :class:`~fairtransport.linear.SgdSettings` for others, among them the seed.
    tol : float, default=3e-4
        L-BFGS has converged when no entry of the gradient, in whitened coordinates, is larger.
    max_iter : int, default=1000
        Maximum number of L-BFGS iterations; reaching it emits a ``ConvergenceWarning``.
    grouping : {"crossed", "each"}, default="crossed"
        Cross several sensitive columns, or make each value of each column a group (groups overlap).
    missing : {"error", "group"}, default="error"
        Raise for a missing sensitive value, or make missing values a group.
    small_groups : {"keep", "pool", "drop"}, default="keep"
        What is done with groups of fewer than ``min_group_size`` rows. They are kept, and count as far as their
        differences exceed chance; are pooled into one group; or are left out of the comparisons and, with
        ``group_specific``, scored by the common weights.
    min_group_size : int, default=30
        See ``small_groups``.
    half_life : float, default=1000
        For ``partial_fit``: after so many rows of its group a row counts half.
    new_groups : {"error", "adopt"}, default="error"
        For ``partial_fit``: raise for a group that was not seen before, or add it.
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
        How training ended, in words.
    information_kept_ : float
        Share of the initial model's gain in squared error over a constant that the trained model has.
    before_after_ : dict
        ``mean_squared_error``, ``r2``, ``spread`` (standard deviation of the predictions), ``disparity`` (the
        criterion's, in units of y; SPDD for demographic parity), ``standardized_disparity`` (in standard deviations of
        y) and ``rank_disparity`` of the training rows, by the initial and by the trained model.
    path_ : dict of ndarray
        The weights that were tried: ``weight``, ``disparity``, ``rank_disparity``, ``mean_squared_error``,
        ``information_kept``, ``theta`` and ``spread``. Metrics are out of fold where the model is flexible (weights
        for each group, or more than one column for 20 rows). See `at`.
    duals_ : Duals
        The dual potentials of every group.
    target_ : ndarray of shape (4096,)
        Predictions of equal mass that stand for the target; where groups are compared with each other, their
        Wasserstein-2 barycenter at the initial model. With strata, that of all rows.
    compared_with_ : {"each_other", "everyone", "target"}
        What each group is compared with. Of more than 20 groups, not all pairs are compared, but each group with
        everyone, which is zero for the same models and whose cost is linear in the number of groups.
    groups_ : Groups
        The groups seen, without their rows.
    group_sizes_ : ndarray of shape (n_groups,)
        How many rows each group had.
    strata_ : Strata or None
        The strata seen, without their rows. With equalized odds the first column is y.
    initial_estimator_ : estimator
        The initial model.
    history_ : dict of ndarray
        ``update``, ``disparity`` (the penalised sum) and ``loss``, both of standardised predictions, after each
        iteration.
    n_iter_ : int
        Number of iterations or updates.
    spread_ : ndarray of shape (2, n_points)
        The map of ``spread="initial"``; its points are means of five rows or more.
    adjusting_ : OnlineMemory
        What ``partial_fit`` continues from; it holds no rows.
    y_mean_, y_std_ : float
        Mean and standard deviation of y in ``fit``, by which it was standardised.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where they are strings.

    See Also
    --------
    DiscreteTransportRegressor : The same with the exact distance.
    fairtransport.linear.SgdSettings : Settings of the stochastic solver.
    QuantileRepairRegressor : Repairs the predictions of any regressor, with the group at prediction.
    frontier : The whole trade-off, on held-out rows.

    Notes
    -----
    With y standardised, and scores s the predictions of the linear model in units in which three standard deviations
    to both sides of the mean of y are [0, 1], the objective is

    .. math:: \tfrac12 \overline{(x\theta - y)^2} + \tfrac r2 |\theta|^2 + w u \sum_{(a,b)} \omega_{ab}\, T(S_a, S_b),

    T the regularized transport distance (paper, Equations 4 and 7) of standardized scores, each solved exactly on 32
    slice means of the two groups by Newton's method, with the frequencies of the Fourier features at the quantiles of
    their distribution. The pair weights :math:`\omega` leave out what chance shows for groups of these sizes
    (`fairtransport.criteria.weigh_by_reliability`), and :math:`u = V / \sum \omega_{ab} T(S^0_a, S^0_b)`, V the gain of
    the initial model over a constant.

    With ``group_specific=True`` the weights of a group have a Gaussian prior around those of the initial model.

    Leave the sensitive columns out of the features for predictions that do not use the group; it is used in training
    only. ``outcome_`` and a `FairnessWarning` say where such features do not allow parity.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021: Equations 4, 6 and 7, and the
    algorithm box of COT.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import ContinuousTransportRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = 1000.0 * (X @ [0.5, 1.0, 1.0] + rng.normal(size=2000))
    >>> model = ContinuousTransportRegressor().fit(X, y, sensitive_features=group)
    >>> before, after = model.before_after_["disparity"]  # in units of y
    >>> bool(after < before / 3), bool(model.information_kept_ > 0.5)
    (True, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        criterion: str = "demographic_parity",
        stratum_weight: str | None = None,
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
        self.criterion = criterion
        self.stratum_weight = stratum_weight
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

    def _distance(self) -> ContinuousDistance:
        return ContinuousDistance(
            self.regularizer, self.strength, self.opposite_duals, self.n_fourier_features, self.kernel_variance
        )
