"""The transport penalty as a custom objective of XGBoost and LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_choice, check_count, check_flag, check_length, check_real, check_weights
from fairtransport.boosting._binned_rows import GroupedRows
from fairtransport.boosting._compared_rows import ComparedRows, check_target, compare_rows
from fairtransport.boosting._group_probabilities import check_group_probabilities, check_probabilities_within
from fairtransport.criteria import CRITERIA, EACH_OTHER, STRATUM_WEIGHTS, needs_labels, weigh_by_reliability
from fairtransport.groups import make_groups
from fairtransport.penalties import Comparisons, ContinuousPenalty, DiscretePenalty, TransportPenalty
from fairtransport.penalties.binned import BinnedPenalty
from fairtransport.penalties.unit import information_of_features
from fairtransport.strata import make_strata
from fairtransport.transport.binned import CELLS
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import quadrature_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["KINDS", "ObjectiveTerms", "TransportObjective", "make_distance", "measure_unit"]

KINDS = ("continuous", "discrete")
# Share of the curvature of the parabola that bounds the penalty from above. Both sides of a transport problem move, and
# the rows of a leaf move together, so that the full curvature would make the steps too short.
_CURVATURE_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class ObjectiveTerms:
    """The objective and its derivatives at some margins.

    Attributes
    ----------
    value : float
        Sum over rows of log-loss plus penalty.
    gradient, curvature : ndarray of shape (n_rows,)
        First derivative with respect to each margin, and a positive approximation of the second.
    """

    value: float
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]


def make_distance(
    kind: str,
    *,
    regularizer: str,
    strength: float,
    opposite_duals: bool,
    n_fourier_features: int,
    kernel_variance: float,
) -> TransportPenalty:
    """Return the penalty of a kind, on scores that are not standardized."""
    if kind == "discrete":
        return DiscretePenalty(scale="score")
    problem = DualProblem(
        quadrature_features(n_fourier_features, kernel_variance),
        get_regularizer(regularizer),
        check_real(strength, name="strength", strict=True),
        check_flag(opposite_duals, name="opposite_duals"),
        "all",
    )
    return ContinuousPenalty(problem, scale="score")


def measure_unit(
    distance: TransportPenalty, labels: NDArray[Any], scores: NDArray[np.float64], comparisons: Comparisons
) -> tuple[float, Comparisons]:
    """Return the factor of the penalty at ``parity_weight`` 1, and the comparisons weighed by reliability."""
    comparisons = weigh_by_reliability(comparisons, scores)
    value = distance.value_and_gradient(scores, comparisons).value if comparisons.active.size else 0.0
    information = information_of_features(labels, scores, comparisons.row_weights)
    return information / value if value > 0.0 else 0.0, comparisons


class TransportObjective:
    r"""Custom objective of XGBoost and LightGBM: log-loss plus transport distances between the groups' scores.

    Parameters
    ----------
    sensitive_features : column, table or Groups
        The groups of the training rows, in their order. Several columns are crossed.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with label 1.
    strata : column, table or Strata, optional
        Columns of the training rows. Groups are compared only within strata (conditional parity), see
        `fairtransport.strata.make_strata`.
    stratum_weight : {"equal", "share"}, optional
        Whether labels and strata count the same or by their share of the rows. By default labels count the same and
        strata by share.
    parity_weight : float, default=3.0
        Weight of the penalty against weight 1 of the log-loss. It has no unit: at 1 the whole disparity of the model
        after ``warmup`` counts as much as its whole gain in log-loss over a constant. 0 is no parity.
    kind : {"continuous", "discrete"}, default="continuous"
        Regularized transport through dual potentials (continuous optimal transport, COT), or the Wasserstein-1
        distance between sorted scores (discrete optimal transport, DOT); see `TransportBoostingClassifier`.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, or a distribution that is fixed at the model after ``warmup``: the
        equal-weight Wasserstein-1 barycenter (the paper's), the Wasserstein-2 barycenter weighted by group size,
        everyone, one group's scores, or given scores.
    warmup : int, default=20
        Rounds that minimise the log-loss alone, after which the unit of ``parity_weight`` is measured.
    ramp : int, default=130
        Rounds over which the weight of the penalty increases linearly to ``parity_weight``. With the full weight from
        the first round on, trees learn little from the labels.
    group_probabilities : array-like of shape (n_rows, n_groups), optional
        Probability of each group for each row, for instance given the features; by default 1 for the row's group. If
        groups are compared within labels or strata, it must be given these, too: the probability of the group among
        rows with these features and this label. See Notes.
    unit : float, optional
        Factor of the penalty at ``parity_weight`` 1, in log-loss per unit of distance; then nothing is measured and
        there is no ``warmup``. Requires ``comparisons``.
    comparisons : Comparisons, optional
        The pairs that are compared, with their weights; by default those of ``criterion`` and ``strata``, weighed by
        reliability after ``warmup``. Requires ``unit``; ``target`` is then ignored.
    regularizer, strength, opposite_duals, n_fourier_features, kernel_variance
        Of ``kind="continuous"``, as in `ContinuousTransportClassifier`. The defaults of ``strength``, 0.4, and
        ``kernel_variance``, 0.02, differ because boosted trees reach a lower error at equal disparity with them.
    grouping : {"crossed", "each"}, default="crossed"
        Cross several sensitive columns, or let each value of each column be a group (groups overlap).
    missing : {"error", "group"}, default="error"
        A missing sensitive value raises, or is a group of its own.

    Attributes
    ----------
    round_ : int
        Number of rounds so far.
    parity_ : float
        Current factor of the penalty: ``parity_weight`` times ``unit_`` times the completed part of the ramp.
    unit_ : float
        Factor of the penalty at ``parity_weight`` 1; NaN before it is measured.

    See Also
    --------
    TransportBoostingClassifier : A scikit-learn estimator that is trained with this objective.

    Notes
    -----
    **Objective.** With margins z, scores :math:`s = \sigma(z)`, labels y and row weights :math:`\omega`,

    .. math:: \sum_i \omega_i\,\mathrm{logloss}(z_i, y_i) + \Omega\, w u \sum_{(a,b)} T(S_a, S_b),
              \qquad \Omega = \sum_i \omega_i,

    T a transport distance ([1]_, Eq. 4) of scores that are counted in 1,024 cells (`fairtransport.penalties.binned`),
    over all pairs of groups, within each label or stratum if the criterion says so: then :math:`S_a` are the scores of
    a group's rows with that label, and each pair has the weight of the label. u is the unit of the linear estimators
    (`ContinuousTransportClassifier`).

    **Gradient.** With :math:`r_a(s)` the derivative of the penalty in the score's cell and :math:`m_a` the
    total weight of the group, or of its rows in the row's stratum,

    .. math:: g_i = \omega_i \Big[s_i - y_i + \frac{\Omega w u}{m_a}\, r_a(s_i)\, s_i (1 - s_i)\Big].

    **Curvature.** A positive approximation: :math:`\omega_i [v_i + 0.2\,\Omega w u\, b_a(s_i) v_i^2 / m_a]` with
    :math:`v = s(1-s)` and :math:`b_a` the curvature of the parabola that bounds the penalty from above
    (`fairtransport.penalties.binned.BinnedPenalty`). The factor :math:`1/m_a` makes the gradient of a row of a small
    group large; the same factor in the curvature bounds the step of its leaf.

    **Group probabilities.** If the group is not among the features, trees that follow each row's group overfit to the
    training rows. With probabilities given the features the gradient has the same expectation, without that noise.
    Within labels that holds for probabilities given features and label.

    **Rounds.** An objective counts its rounds, and starts again when all margins are equal, as they are at the start of
    training; `reset` does the same. LightGBM trains with a copy.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import lightgbm as lgb
    >>> from fairtransport.boosting import TransportObjective
    >>> from fairtransport.metrics import strong_pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> objective = TransportObjective(group, warmup=10, ramp=30)
    >>> settings = {"objective": objective, "num_leaves": 8, "verbose": -1}
    >>> booster = lgb.train(settings, lgb.Dataset(X, y), num_boost_round=60)
    >>> scores = 1 / (1 + np.exp(-booster.predict(X, raw_score=True)))
    >>> bool(strong_pairwise_disparity(scores, sensitive_features=group) < 0.1)
    True
    """

    def __init__(
        self,
        sensitive_features: Any,
        *,
        criterion: str = "demographic_parity",
        strata: Any = None,
        stratum_weight: str | None = None,
        parity_weight: float = 3.0,
        kind: str = "continuous",
        target: Any = EACH_OTHER,
        warmup: int = 20,
        ramp: int = 130,
        group_probabilities: ArrayLike | None = None,
        unit: float | None = None,
        comparisons: Comparisons | None = None,
        regularizer: str = "l2",
        strength: float = 0.4,
        opposite_duals: bool = True,
        n_fourier_features: int = 50,
        kernel_variance: float = 0.02,
        grouping: str = "crossed",
        missing: str = "error",
    ) -> None:
        self.parity_weight = check_real(parity_weight, name="parity_weight")
        self.kind = check_choice(kind, KINDS, name="kind")
        self.warmup, self.ramp = check_count(warmup, name="warmup", least=0), check_count(ramp, name="ramp", least=0)
        self.unit = None if unit is None else check_real(unit, name="unit")
        self.target = target
        if sensitive_features is None:
            raise ValueError("TransportObjective needs sensitive_features: the columns that define groups.")
        self.groups = make_groups(sensitive_features, grouping=grouping, missing=missing)
        self.groups.require(min_size=1, at_least=2)
        self.criterion = check_choice(criterion, CRITERIA, name="criterion")
        self.stratum_weight = stratum_weight
        if stratum_weight is not None:
            check_choice(stratum_weight, STRATUM_WEIGHTS, name="stratum_weight")
        self.strata = None if strata is None else make_strata(strata, n_groups=len(self.groups))
        if self.strata is not None:
            check_length(range(self.strata.n_rows), size=self.groups.n_rows, name="strata")
        self.comparisons = comparisons
        if (comparisons is None) != (unit is None):
            raise ValueError("unit and comparisons must be passed together: both are measured with one model.")
        if comparisons is None:
            check_target(target, self.groups)
        self._distance = make_distance(
            kind,
            regularizer=regularizer,
            strength=strength,
            opposite_duals=opposite_duals,
            n_fourier_features=n_fourier_features,
            kernel_variance=kernel_variance,
        )
        self._probabilities = None
        if group_probabilities is not None:
            self._probabilities = check_group_probabilities(group_probabilities, self.groups)
        self.reset()
        if not needs_labels(criterion):  # strata without two groups raise before training
            self._compare_rows(None, None)

    def reset(self) -> None:
        """Discard all rounds, for a new training."""
        self.round_, self.parity_ = 0, 0.0
        self.unit_ = float("nan") if self.unit is None else self.unit
        self._penalty: BinnedPenalty | None = None
        self._rows: GroupedRows | None = None

    # ---------------------------------------------------------------- interface of the libraries

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Advance one round and return gradient and curvature.

        Parameters
        ----------
        first, second : arrays, or margins and a training set
            Labels and margins, as the scikit-learn interfaces of the libraries pass them; or margins and a ``Dataset``
            of LightGBM or ``DMatrix`` of XGBoost.
        sample_weight : array-like, optional
            Weights of the rows; those of a training set are used in its place.

        Returns
        -------
        gradient, curvature : ndarray of shape (n_rows,) of float32
        """
        if hasattr(second, "get_label"):
            labels, margins, sample_weight = second.get_label(), first, second.get_weight()
        else:
            labels, margins = first, second
        margins, labels, weights = self._check(margins, labels, sample_weight)
        if self.round_ and margins[0] == margins[-1] and (margins == margins[0]).all():
            self.reset()
        scores, masses = self._grouped_rows(labels, weights).scores_and_masses(margins, weights)
        self._advance(scores, labels, weights)
        return self._penalty_and_derivatives(scores, masses, labels, weights, np.float32)[1:]

    def value_and_gradient(
        self, margins: ArrayLike, labels: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> ObjectiveTerms:
        """Return the objective at the current weight and dual potentials, and its derivatives, without a new round.

        Parameters
        ----------
        margins, labels : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        ObjectiveTerms
        """
        z, y, weights = self._check(margins, labels, sample_weight)
        scores, masses = self._grouped_rows(y, weights).scores_and_masses(z, weights)
        value, gradient, curvature = self._penalty_and_derivatives(scores, masses, y, weights, np.float64)
        losses = np.logaddexp(0.0, z) - y * z
        return ObjectiveTerms(value + float(losses @ weights if weights.size else losses.sum()), gradient, curvature)

    # ---------------------------------------------------------------- a round

    def _advance(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float32],
        weights: NDArray[np.float64],
    ) -> None:
        """Count a round, and update the weight of the penalty."""
        start = self.warmup if self.unit is None else 0
        if self._penalty is None and self.round_ >= start and np.ptp(scores) > 0.0:
            self._start_penalty(scores, labels, weights if weights.size else None)
        self.round_ += 1
        if self._penalty is None:
            return
        self.parity_ = self.parity_weight * self.unit_ * min(1.0, (self.round_ - start) / max(1, self.ramp))

    def _start_penalty(
        self, scores: NDArray[np.float64], labels: NDArray[np.float32], weights: NDArray[np.float64] | None
    ) -> None:
        """Measure the unit if it was not passed, and resolve the comparisons."""
        comparisons = self.comparisons
        if comparisons is None:
            compared = self._compare_rows(labels, weights)
            targets = compared.fixed_targets(self.target, scores)
            self.unit_, comparisons = measure_unit(self._distance, labels, scores, compared.comparisons(targets))
        self._penalty = BinnedPenalty(self._distance, comparisons, len(self.groups), CELLS)

    def _compare_rows(self, labels: NDArray[np.float32] | None, weights: NDArray[np.float64] | None) -> ComparedRows:
        return compare_rows(
            self.criterion,
            self.groups,
            labels=labels,
            strata=self.strata,
            row_weights=weights,
            stratum_weight=self.stratum_weight,
        )

    def _grouped_rows(self, labels: NDArray[np.float32], weights: NDArray[np.float64]) -> GroupedRows:
        """Return the rows with the cells that they are counted in, which may depend on the labels."""
        if self._rows is None:
            compared = self._compare_rows(labels, weights if weights.size else None)
            if self._probabilities is not None:
                check_probabilities_within(self._probabilities, compared)
            self._rows = GroupedRows(
                self.groups, self._probabilities, strata=compared.stratum, n_strata=compared.n_strata
            )
        return self._rows

    def _penalty_and_derivatives(
        self,
        scores: NDArray[np.float64],
        masses: NDArray[np.float64],
        labels: NDArray[np.float32],
        weights: NDArray[np.float64],
        dtype: Any,
    ) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """Return the value of the penalty, and the derivatives of log-loss plus penalty."""
        rows = self._grouped_rows(labels, weights)
        if self._penalty is None or self.parity_ == 0.0:
            zeros = np.zeros((rows.n_cells_of_rows, CELLS))
            return 0.0, *rows.derivatives(scores, labels, weights, zeros, zeros, dtype=dtype)
        tables = self._penalty.read(masses)
        total = self.parity_ * (weights.sum() if weights.size else float(len(scores)))
        factor = (total / np.maximum(masses.sum(axis=1), 1e-300))[:, None]  # the slopes of empty cells are 0
        slopes, bends = factor * tables.slopes, _CURVATURE_SHARE * factor * tables.curvatures
        return total * tables.value, *rows.derivatives(scores, labels, weights, slopes, bends, dtype=dtype)

    # ---------------------------------------------------------------- checks

    def _check(
        self, margins: Any, labels: Any, sample_weight: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.float64]]:
        z = np.ascontiguousarray(margins, dtype=np.float64)
        if z.ndim == 2 and z.shape[1] == 1:
            z = z[:, 0]
        if z.ndim != 1:
            raise ValueError(f"TransportObjective is for two classes, with one margin per row; it got shape {z.shape}.")
        if len(z) != self.groups.n_rows:
            raise ValueError(
                f"The objective was made with sensitive features of {self.groups.n_rows} rows, but the training set "
                f"has {len(z)}. Pass those of the training rows, in their order; TransportBoostingClassifier does that."
            )
        if not np.isfinite(z.sum()) and not np.isfinite(z).all():
            raise ValueError("Margins are NaN or infinite: training diverged. Try a smaller learning_rate.")
        y = np.ascontiguousarray(labels, dtype=np.float32)
        check_length(y, size=len(z), name="labels")
        if self.round_ == 0 and not ((y == 0) | (y == 1)).all():
            raise ValueError("labels must be 0 and 1; TransportBoostingClassifier takes any two labels.")
        if sample_weight is None or np.size(sample_weight) == 0:
            return z, y, np.zeros(0)
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
        if self.round_ == 0:
            check_weights(weights, size=len(z))
            if not all(weights[rows].any() for rows in self.groups.rows):
                raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
        return z, y, weights
