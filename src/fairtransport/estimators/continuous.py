"""COT: parity by continuous optimal transport, the paper's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport.estimators._linear import LinearTransportClassifier
from fairtransport.penalties.pulls import Pulls
from fairtransport.transport.dual import PAIRS, DualProblem
from fairtransport.transport.fourier import FourierFeatures, draw_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.estimators.adjustment import Adjustment
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
        Coefficients of the duals of the group and of the target. Where groups are moved to each other: sums over the
        group's problems with each other group, of its own duals and of the others'.
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
        """Dual variable of the target in that group's problem, or of the other groups in its problems."""
        return self.features(points) @ self.target_weights[self.groups.index_of(label)]


class ContinuousTransportClassifier(LinearTransportClassifier):
    r"""Logistic regression with strong demographic parity by continuous optimal transport (COT).

    Parameters
    ----------
    estimator : estimator, optional
        The linear logistic model that starts theta, fitted or not; by default ``LogisticRegression``. With memory
        the default one is trained on columns in units of their own, so features need not be standardised.
    parity_weight : float, default=3.0
        Weight of the transport term against weight 1 of the logistic loss, the anchor. It has no unit and means the
        same on every data set: at 1, the whole disparity of the initial model counts as much as all that the features
        are worth (see Notes). 0 is no parity; from about 10 on little is left to gain. ``inf`` is the paper's
        algorithm, which forgets the labels after the initial model and has no memory.
    amount : float, default=1.0
        How far the scores go from those of the initial model (0) to those of the trained one (1), as in
        `QuantileRepair`: the mean of the two, weighted. It matters at prediction only, so it can be set after ``fit``.
        A smaller amount costs less error at equal disparity than a smaller ``parity_weight`` (see Notes).
    spread : {"trained", "initial"}, default="trained"
        ``"initial"`` stretches the trained scores, by one map for everyone, to the spread of the initial model's: the
        size-weighted Wasserstein-2 barycenter of its groups. Ranks and parity stay. Trained scores are nearer to the
        middle, as befits what they still know; at a threshold of one half, and with an ``amount`` below 1, the wider
        ones err less (see Notes).
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, optional
        Where the groups are moved. ``"each_other"``, the default with memory: to each other, all pairs of groups, and
        to no fixed shape. Anything else is a distribution that every group is moved to, kept fixed at the initial
        model: the equal-weight Wasserstein-1 barycenter (the paper's, and the default without memory), the
        Wasserstein-2 barycenter weighted by group size, all rows together, one group's scores, or given scores.
    regularizer : {"l2", "entropy"}, default="l2"
        Regularization of the transport problem.
    strength : float, default=0.1
        Its strength, lambda in the paper.
    opposite_duals : bool, default=True
        Keep the two duals of a problem opposite at every score; stabler.
    group_specific : bool, default=False
        Weights for each group; then the group is needed at prediction. With memory and up to 800 columns they are held
        near the shared ones, more so the fewer rows a group has (see Notes).
    n_fourier_features, kernel_variance : int, float, default=50, 0.1
        Size and width of the space of dual variables.
    dual_step : float, optional
        Update size of the duals; by default a multiple of ``strength``, because dual curvature grows like
        1 / strength.
    parameter_step : float, optional
        Update size of theta, the same for every column, as in the paper; with memory, of columns in units of their
        own. By default steps set themselves (see Notes).
    n_updates : int, optional
        The most updates there are. By default as many as 1,000 pictures take (20,000 at batch size 100, unless there
        are hundreds of columns), and without memory 20,000. With memory a run ends before that when nothing more is
        gained.
    batch_size : int, default=100
        Rows of each group drawn for each update. With memory the result hardly depends on it.
    pairs : {"matched", "all"}, default="matched"
        Without memory: pair the i-th row of a group with the i-th draw from the target (N pairs), or all N x N.
        Pictures always use all pairs.
    memory : bool, default=True
        Move the duals on pictures of all groups, which hold what more than one batch shows (see Notes). False, or
        ``parity_weight=inf``: on the pairs of each batch alone, as in the paper.
    average : bool, default=True
        Use the mean of the second half of the iterates; with memory, of each cycle's.
    grouping : {"crossed", "each"}, default="crossed"
        Cross several sensitive columns, or let each value of each column be a group (groups overlap).
    missing : {"error", "group"}, default="error"
        A missing sensitive value raises, or is a group of its own.
    min_size : int, default=2
        A group with fewer rows raises.
    warm_start : bool, default=False
        Let a second ``fit`` start where the one before ended: theta goes on, the duals begin anew. The initial model
        is kept, and so are what ``parity_weight`` is measured in and a target that comes from it, as far as the rows
        are the same. Columns and classes must be those of the first fit, and with ``group_specific`` the groups, too.
    half_life : float, default=1000
        For ``partial_fit``: after so many rows of its group a row counts half.
    new_groups : {"error", "adopt"}, default="error"
        For ``partial_fit``: a group that was not seen before raises, or is taken up. With ``group_specific`` it
        begins with the mean of the other groups' weights.
    random_state : int, RandomState or None
        Equal seeds give identical results.
    verbose : bool, default=False
        Show a progress bar with the running disparity.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        Theta, for the features as they were given; with ``group_specific=True`` one row for each group.
    duals_ : Duals
        Dual variables of every group; where groups are moved to each other, sums over a group's problems.
    target_ : ndarray of shape (4096,)
        Scores of equal mass that stand for the target distribution. Where groups are moved to each other it is
        the equal-weight Wasserstein-2 barycenter of the initial model's scores, for comparison: nobody is moved to it.
    groups_ : Groups
        The groups seen, without their rows.
    group_sizes_ : ndarray of int of shape (n_groups,)
        Training rows of each.
    initial_estimator_ : estimator
        The model that started theta.
    history_ : dict of ndarray
        ``update``, ``disparity`` (sum of Wasserstein-1 distances, of all pairs of groups or to the target) and
        ``loss`` (log-loss) on a fixed part of the training rows, up to 1,000 of each group.
    outcome_ : str
        What happened, in words (see Notes).
    n_iter_ : int
        Updates done.
    spread_ : ndarray of shape (2, n_points)
        Knots and images of the map of ``spread="initial"``: means of five rows or more.
    adjusting_ : Adjustment
        What ``partial_fit`` goes on from: no rows, and of a size that does not grow with the stream.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Objective.** Minimises over theta, and maximises over the duals f and h of each problem (a, b),

    .. math:: \mathrm{loss}(\theta) + w u \sum_{(a, b)} \Big( E[f(s)] + E[h(t)]
              - \lambda E\,\phi^*\big((f(s) + h(t) - |s-t|)/\lambda\big)\Big),

    s a score of group a, t of group b or of the target (paper, Eq. 7 and the COT algorithm; :math:`w=\infty` leaves
    the loss out, and :math:`u=1`). The anchor keeps theta from drifting along the set of fair models. With w the
    ``parity_weight``,

    .. math:: u = \frac{V}{D} \Big(1 - \frac{c}{D}\Big)_+,

    V what the features are worth (the log-loss of a constant less that of the initial model, at least 1% of the
    former), D the disparity of the initial model, the sum of Wasserstein-1 distances over the same problems, and c
    about the most that D would be by chance in groups of these sizes. Without this unit the same weight would be
    strict where labels are hard to tell and void where they are easy. Where D is below c, nothing is moved.

    **Pictures.** The pairs of a small batch teach mostly noise. With memory, every few updates each group is looked at:
    64 quantiles of the scores of up to 2,048 rows. The duals climb on these pictures and leave a table of slopes, the
    derivative of the transport term at each score. The regularized distance of a group to itself is not zero; its
    slope is taken away. Updates of theta follow the table until the next picture, so that only the noise of the
    logistic loss depends on the batch. The time for a picture grows with the number of problems: with the square
    of the number of groups, where they are moved to each other.

    **Steps.** Columns that are mostly non-zero are centred and divided by their standard deviation, others divided by
    their largest absolute value. The gradient is multiplied by the inverse of the columns' second moments, every group
    counting alike because an update draws as many rows of each, plus 0.01 (a rare column may not leap) and the ridge.
    Then no direction is steeper than the weight of the objective, :math:`W = 1 + w u k` with k problems for each group,
    and drawing batches of N rows adds a share :math:`r = \mathrm{trace} / N`. A full step is half of
    :math:`1 / (W (1 + r))`, a quarter of what is stable. Slopes may lag behind theta by six steps without noise, so a
    picture is taken every :math:`6 (1 + r)` updates; or, if that is later, when 2,000 rows of each group have been
    drawn, and then steps are shorter in proportion. A run begins with a tenth of the step, and within a cycle steps
    fall to a twentieth. So neither the units of the features, nor their correlation, nor the batch size matters. Above
    800 columns, and without memory, each column is divided by its mean square (in the group where that is largest,
    plus a hundredth of its largest square) instead, and the largest eigenvalue bounds the step.

    **When it is done.** With memory a run of 700 updates or more is up to three cycles, of 1/7, 2/7 and 4/7 of
    ``n_updates``; each begins at the mean of the one before. It ends when a cycle gains less than the noise of the
    comparison on the watched rows, or less than 0.2% of what the features are worth. ``outcome_`` then says
    "converged after ..."; "ran all ..." when the updates were spent first; "interrupted after ..." after Ctrl-C. A run
    that gets worse than it began by more than the features are worth (or, if that is more, a twentieth of W), or is
    not finite, goes back to its best state with an eighth of the steps, warns, and says "diverged near update ...,
    went back and on with smaller steps". One that gets a little worse goes back with half the steps of theta,
    silently, up to six times. After a fifth divergence, or when the end is worse than the beginning, the best model
    is kept, with a warning. Where the initial model's groups differ no more than by chance, that is said first.

    **Less than full parity.** Two dials lead from the initial model to full parity. A small ``parity_weight`` trains
    one linear model that gives up disparity for log-loss. ``amount`` mixes the scores of two, as partial repair and
    mixtures of classifiers do, and was the better one between the ends wherever we measured (docs/tradeoff.md).

    Trained scores are calibrated for what the model still knows, so they lie nearer to the middle than the initial
    ones. Mixed with these they pass one half too rarely where groups lie far apart. ``spread="initial"`` stretches
    them, by one map for everyone, which changes neither ranks nor parity. On validation rows of Communities (8 groups,
    weights for each) an amount of .7 erred on .1609 instead of .1698, at equal disparity, and quantile repair on .1640;
    on Adult and German it made no difference. It costs log-loss.

    **Weights for each group** may shift and stretch the logits of the initial model freely, which is what repair does.
    For any other change it is as if 100 rows for each column said that the shared weights are right. A large group is
    hardly held; a small one cannot learn its rows by heart.

    **Two situations.** *Blind*: the group is not known at prediction. The groups are used in training only; leave
    the sensitive columns out of the features. *Aware*: it is known. With the sensitive columns among the features
    the groups share all weights but the intercept; ``group_specific=True`` gives each its own, which costs less error
    at equal disparity, and `QuantileRepairClassifier` is open, too. `fairtransport.frontier` says which one it is.

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
        amount: float = 1.0,
        spread: str = "trained",
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
        half_life: float = 1000.0,
        new_groups: str = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.parity_weight = parity_weight
        self.amount = amount
        self.spread = spread
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
        self.half_life = half_life
        self.new_groups = new_groups
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

    def _dual_in_use(self) -> DualProblem:
        regularizer, opposite = get_regularizer(self.regularizer), bool(self.opposite_duals)
        return DualProblem(self.duals_.features, regularizer, float(self.strength), opposite, self.pairs)

    def _draw_duals(self, n_groups: int) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        nothing = np.zeros((n_groups, self.n_fourier_features))
        self.duals_ = Duals(self._dual_problem(rng).features, nothing, nothing, self.groups_)

    def _keep_duals(self, state: Adjustment) -> None:
        pulls = Pulls(len(self.groups_), None, each_other=self._each_other)
        pulls.f, pulls.h, pulls.selves = state.f, state.h, state.selves
        self.duals_ = Duals(self.duals_.features, pulls.sum_of_duals(0), pulls.sum_of_duals(1), self.groups_)
