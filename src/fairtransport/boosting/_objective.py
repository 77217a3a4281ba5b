"""The transport penalty as a custom objective of XGBoost and LightGBM, with losses and distances."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Floats
from fairtransport._validation import check_choice, check_count, check_length, check_real, check_weights
from fairtransport.boosting import _constants as const
from fairtransport.boosting._training_data import ComparedRows, GroupedRows, check_target, compare_rows
from fairtransport.criteria import Criterion
from fairtransport.criteria.binned import BinnedPenalty
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import EACH_OTHER, as_criterion, needs_labels, weigh_by_reliability
from fairtransport.criteria.distance import ContinuousDistance, DiscreteDistance, Distance, as_distance
from fairtransport.criteria.penalty import SCALES, UNIT_DEVIATION, TransportPenalty
from fairtransport.groups import GroupPolicy, Groups, make_groups
from fairtransport.strata import make_strata
from fairtransport.transport.kernels.functions import logistic
from fairtransport.transport.line import CELLS

# The interval of predictions whose cells are counted, and where predictions lie in it.


def moments(values: Floats, weights: Floats | None) -> tuple[float, float]:
    """Return the mean and the standard deviation."""
    mean = float(np.average(values, weights=weights))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


@dataclass(frozen=True, eq=False)
class PredictionGrid:
    """Equal cells between the lowest and the highest prediction, or of [0, 1] for probabilities."""

    loss: Loss
    scale: float
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, loss: Loss, margins: Floats, scale: float, weights: Floats | None) -> PredictionGrid:
        """Return the grid of the predictions at these margins."""
        if loss.is_logistic:
            return cls(loss, scale)
        predictions = loss.predictions(margins) / scale
        if weights is not None:
            predictions, weights = predictions[weights > 0], weights[weights > 0]
        center, deviation = moments(predictions, weights)
        reach = const.PREDICTION_REACH * deviation
        low, high = max(float(predictions.min()), center - reach), min(float(predictions.max()), center + reach)
        return cls(loss, scale, low, high if high > low else low + 1.0)

    def position(self, margins: Floats) -> Floats:
        """Return where the predictions lie between the ends, from 0 to 1."""
        predictions = self.loss.predictions(margins)
        if self.loss.is_logistic:
            return predictions
        return np.clip((predictions / self.scale - self.low) / (self.high - self.low), 0.0, 1.0)


# Losses of boosted trees: values, derivatives with respect to the margins, and the link to the predictions.


class Loss(ABC):
    """The loss of a row with margin z, prediction p(z) and label or number y."""

    is_logistic = False
    link = "identity"

    def predictions(self, margins: Floats) -> Floats:
        """Return the predictions at these margins."""
        return margins

    def margins(self, predictions: Floats) -> Floats:
        """Return the margins of these predictions."""
        return predictions

    def prediction_slopes(self, predictions: Floats) -> Floats:
        """Return the derivative of each prediction with respect to its margin."""
        return np.ones_like(predictions)

    @abstractmethod
    def values(self, margins: Floats, y: NDArray[np.floating]) -> Floats:
        """Return the loss of each row, zero or more."""

    @abstractmethod
    def derivatives(self, margins: Floats, y: NDArray[np.floating]) -> tuple[Floats, Floats]:
        """Return the first derivative of each row's loss with respect to its margin, and a positive curvature."""

    def objective(
        self, labels: NDArray[np.floating], margins: NDArray[np.floating], weights: Floats | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the derivatives as a custom objective of the libraries does."""
        gradient, curvature = self.derivatives(np.asarray(margins, dtype=np.float64), labels)
        if weights is not None:
            gradient, curvature = weights * gradient, weights * curvature
        return gradient.astype(np.float32), np.maximum(curvature, 1e-16).astype(np.float32)

    def constant(self, y: NDArray[np.floating], weights: Floats | None) -> float:
        """Return the margin of the best constant prediction."""
        return float(np.average(y, weights=weights))

    def information(self, margins: Floats, y: NDArray[np.floating], weights: Floats | None) -> float:
        """Return the mean loss of the best constant minus that of the margins, at least 1 % of the former."""
        best = np.full(len(y), self.constant(y, weights))
        constant, own = (float(np.average(self.values(z, y), weights=weights)) for z in (best, margins))
        return max(constant - own, 0.01 * constant)


class LogLoss(Loss):
    """Log-loss of labels 0 and 1."""

    is_logistic = True

    def predictions(self, margins: Floats) -> Floats:
        scores = np.empty_like(margins)
        logistic(margins, scores)
        return scores

    def margins(self, predictions: Floats) -> Floats:
        inside = np.clip(predictions, 1e-15, 1.0 - 1e-15)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def prediction_slopes(self, predictions: Floats) -> Floats:
        return predictions * (1.0 - predictions)

    def values(self, margins: Floats, y: NDArray[np.floating]) -> Floats:
        return np.asarray(np.logaddexp(0.0, margins) - y * margins)

    def derivatives(self, margins: Floats, y: NDArray[np.floating]) -> tuple[Floats, Floats]:
        scores = self.predictions(margins)
        return scores - y, self.prediction_slopes(scores)

    def constant(self, y: NDArray[np.floating], weights: Floats | None) -> float:
        rate = float(np.average(y, weights=weights))
        return math.log(rate / (1.0 - rate))


class SquaredError(Loss):
    """Half of the squared error."""

    def values(self, margins: Floats, y: NDArray[np.floating]) -> Floats:
        return np.asarray(0.5 * (margins - y) ** 2)

    def derivatives(self, margins: Floats, y: NDArray[np.floating]) -> tuple[Floats, Floats]:
        return margins - y, np.ones_like(margins)


class AbsoluteError(Loss):
    """Absolute error: |r'| <= r'^2 / 2|r| + |r| / 2 for residuals r and r', so 1/|r| is a curvature that bounds it."""

    def values(self, margins: Floats, y: NDArray[np.floating]) -> Floats:
        return np.abs(margins - y)

    def derivatives(self, margins: Floats, y: NDArray[np.floating]) -> tuple[Floats, Floats]:
        residuals = margins - y
        return np.sign(residuals), 1.0 / np.maximum(np.abs(residuals), const.SMALLEST_RESIDUAL)

    def constant(self, y: NDArray[np.floating], weights: Floats | None) -> float:
        order = np.argsort(y)
        masses = np.cumsum(np.ones(len(y)) if weights is None else weights[order])
        return float(y[order][np.searchsorted(masses, 0.5 * masses[-1])])


class _LogLink(Loss):
    """A loss of positive predictions exp(z)."""

    link = "log"

    def predictions(self, margins: Floats) -> Floats:
        return np.exp(margins)

    def margins(self, predictions: Floats) -> Floats:
        return np.log(np.maximum(predictions, 1e-300))

    def prediction_slopes(self, predictions: Floats) -> Floats:
        return predictions

    def constant(self, y: NDArray[np.floating], weights: Floats | None) -> float:
        return math.log(float(np.average(y, weights=weights)))


class PoissonLoss(_LogLink):
    """Half of the Poisson deviance."""

    def values(self, margins: Floats, y: NDArray[np.floating]) -> Floats:
        return np.asarray(np.exp(margins) - y * margins - y + y * np.log(np.where(y > 0, y, 1.0)))

    def derivatives(self, margins: Floats, y: NDArray[np.floating]) -> tuple[Floats, Floats]:
        predictions = np.exp(margins)
        return predictions - y, const.LOG_LINK_CURVATURE * predictions


class TweedieLoss(_LogLink):
    """Half of the Tweedie deviance."""

    def __init__(self, power: float) -> None:
        self.power = power

    def values(self, margins: Floats, y: NDArray[np.floating]) -> Floats:
        power = self.power
        own = np.exp((2.0 - power) * margins) / (2.0 - power) - y * np.exp((1.0 - power) * margins) / (1.0 - power)
        return np.asarray(own + y ** (2.0 - power) / ((1.0 - power) * (2.0 - power)))

    def derivatives(self, margins: Floats, y: NDArray[np.floating]) -> tuple[Floats, Floats]:
        power = self.power
        rising, falling = np.exp((2.0 - power) * margins), y * np.exp((1.0 - power) * margins)
        return rising - falling, (2.0 - power) * rising + (power - 1.0) * falling


_LOSSES: dict[str, type[Loss]] = {
    "log_loss": LogLoss,
    "squared_error": SquaredError,
    "absolute_error": AbsoluteError,
    "poisson": PoissonLoss,
    "tweedie": TweedieLoss,
}
LOSSES = tuple(_LOSSES)


def make_loss(name: str, tweedie_variance_power: float = 1.5) -> Loss:
    """Return the loss of a name among `LOSSES`."""
    return TweedieLoss(tweedie_variance_power) if name == "tweedie" else _LOSSES[name]()


# The distance between samples of predictions, and the unit in which its weight is measured.


def learner_distance(distance: Any, *, within: bool, is_logistic: bool) -> Distance:
    """Return the distance of a parameter; ``within`` says whether groups are compared within labels or strata."""
    if isinstance(distance, str) and distance == "auto":
        distance = "discrete" if within else "continuous"
    made = as_distance(distance)
    if isinstance(made, DiscreteDistance):
        return made
    return made.with_defaults(*(const.PROBABILITY_DUALS if is_logistic else const.REAL_DUALS))


def make_penalty(distance: Distance, scale: str, *, n_groups: int, is_logistic: bool) -> TransportPenalty:
    """Return the penalty of a distance; ``scale`` says whether predictions are standardized in each round."""
    if isinstance(distance, DiscreteDistance):
        return distance.penalty(scale)
    options = {} if is_logistic or n_groups > const.FEW_GROUPS else {"n_slices": const.NUMBER_SLICES}
    return distance.penalty(scale, tolerance=const.DUAL_TOLERANCE, **options)


def prediction_divisor(loss: Loss, predictions: Floats, weights: Floats | None) -> float:
    """Return what predictions are divided by, such that a distance means the same for probabilities and for prices."""
    if loss.is_logistic:
        return 1.0
    deviation = moments(predictions, weights)[1]
    return deviation / UNIT_DEVIATION if deviation > 0.0 else 1.0


def measure_unit(
    distance: TransportPenalty,
    loss: Loss,
    labels: NDArray[Any],
    margins: Floats,
    comparisons: Comparisons,
    *,
    divisor: float,
) -> tuple[float, Comparisons]:
    """Return the factor of the penalty at weight 1, and the weighed pairs, by a plain model's margins."""
    scores = loss.predictions(margins) / divisor
    weighed = weigh_by_reliability(comparisons, scores)
    value = distance.value(scores, weighed) if weighed.active.size else 0.0
    information = loss.information(margins, labels, comparisons.row_weights)
    return information / value if value > 0.0 else 0.0, weighed


@dataclass(frozen=True, eq=False)
class ObjectiveTerms:
    """The objective and its derivatives at some margins."""

    value: float
    gradient: Floats
    curvature: Floats


class TransportObjective:
    r"""Custom objective of XGBoost and LightGBM: a loss plus transport distances between the groups' predictions.

    Parameters
    ----------
    sensitive_features : column, table or Groups
        The groups of the training rows, in their order. Several columns are crossed.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with label 1. For equalized odds
        of a regression pass y as ``strata``.
    strata : column, table or Strata, optional
        Columns of the training rows. Groups are compared only within strata (conditional parity), see
        `fairtransport.strata.make_strata`.
    parity_weight : float, default=4.0
        Weight of the penalty against weight 1 of the loss. It has no unit: at 1 the whole disparity of the model after
        ``warmup`` counts as much as its whole gain in loss over a constant. 0 is no parity.
    loss : {"log_loss", "squared_error", "absolute_error", "poisson", "tweedie"}, default="log_loss"
        Loss of labels 0 and 1, or of real numbers. Predictions are probabilities, the margins themselves or, for the
        last two, their exponentials.
    tweedie_variance_power : float, default=1.5
        Of the Tweedie loss, between 1 and 2.
    distance, target, scale
        As in `TransportBoostingClassifier`; a ``target`` is fixed at the model after ``warmup``.
    warmup : int, default=20
        Rounds that minimise the loss alone, after which the unit of ``parity_weight`` is measured if it was not passed.
    ramp : int, default=130
        Rounds over which the weight of the penalty increases to ``parity_weight``: linearly for the continuous distance
        between probabilities, with the square of their number otherwise, so that trees learn from the labels first.
    group_probabilities : array-like of shape (n_rows, n_groups), optional
        Probability of each group for each row, by default 1 for the row's group; those given the features (and label
        and stratum, where these are compared) keep trees from overfitting to the groups of the training rows.
    unit, divisor, comparisons : float, float, Comparisons, optional
        Factor of the penalty at ``parity_weight`` 1, in loss per unit of distance; divisor of the predictions before
        they are compared; and the weighted pairs. By default they are measured after ``warmup``: 1 is the divisor of
        probabilities, four standard deviations of the predictions that of real numbers. ``unit`` and ``comparisons``
        require each other; ``target`` is then ignored.
    groups : GroupPolicy, optional
        How sensitive columns become groups.

    Attributes
    ----------
    round_, parity_, unit_ : int, float, float
        Number of rounds so far; current factor of the penalty, and the one at ``parity_weight`` 1 (NaN before it is
        measured).

    See Also
    --------
    TransportBoostingClassifier : A scikit-learn estimator that is trained with this objective.

    Notes
    -----
    **Objective.** With margins z, scores :math:`s = \sigma(z)`, labels y and row weights :math:`\omega`,

    .. math:: \sum_i \omega_i\,\mathrm{logloss}(z_i, y_i) + \Omega\, w u \sum_{(a,b)} T(S_a, S_b),
              \qquad \Omega = \sum_i \omega_i,

    T a transport distance ([1]_, Eq. 4) of scores that are counted in 1,024 cells (512 of up to 10,000 rows),
    over all pairs of groups, within each label or stratum if the criterion says so: then :math:`S_a` are the scores of
    a group's rows with that label, and each pair has the weight of the label. u is the unit of the linear estimators
    (`TransportClassifier`).

    **Gradient.** With :math:`r_a(s)` the derivative of the penalty in the score's cell and :math:`m_a` the
    total weight of the group, or of its rows in the row's stratum,

    .. math:: g_i = \omega_i \Big[s_i - y_i + \frac{\Omega w u}{m_a}\, r_a(s_i)\, s_i (1 - s_i)\Big].

    **Curvature.** :math:`\omega_i [v_i + 0.2\,\Omega w u\, b_a(s_i) v_i^2 / m_a]` with :math:`v = s(1-s)` and
    :math:`b_a` the curvature of the parabola that bounds the penalty from above.

    An objective counts its rounds, and starts again when all margins are equal, as they are at the start of training;
    `reset` does the same. LightGBM trains with a copy.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import lightgbm as lgb
    >>> from fairtransport.boosting import TransportObjective
    >>> from fairtransport.metrics import pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> objective = TransportObjective(group, warmup=10, ramp=30)
    >>> settings = {"objective": objective, "num_leaves": 8, "verbose": -1}
    >>> booster = lgb.train(settings, lgb.Dataset(X, y), num_boost_round=60)
    >>> scores = 1 / (1 + np.exp(-booster.predict(X, raw_score=True)))
    >>> bool(pairwise_disparity(scores, sensitive_features=group) < 0.1)
    True
    """

    def __init__(
        self,
        sensitive_features: Any,
        *,
        criterion: str | Criterion = "demographic_parity",
        strata: Any = None,
        parity_weight: float = 4.0,
        loss: str = "log_loss",
        tweedie_variance_power: float = 1.5,
        distance: str | Distance = "auto",
        target: Any = EACH_OTHER,
        scale: str = "standardized",
        warmup: int = 20,
        ramp: int = 130,
        group_probabilities: ArrayLike | None = None,
        unit: float | None = None,
        divisor: float = 1.0,
        comparisons: Comparisons | None = None,
        groups: GroupPolicy | None = None,
    ) -> None:
        self.parity_weight = check_real(parity_weight, name="parity_weight")
        self.warmup, self.ramp = check_count(warmup, name="warmup", least=0), check_count(ramp, name="ramp", least=0)
        power = check_real(tweedie_variance_power, name="tweedie_variance_power", least=1.0, most=2.0, strict=True)
        self.loss = make_loss(check_choice(loss, LOSSES, name="loss"), power)
        self.unit = None if unit is None else check_real(unit, name="unit")
        self.scale = check_choice(scale, SCALES, name="scale")
        self.divisor = check_real(divisor, name="divisor", strict=True)
        self.target = target
        if sensitive_features is None:
            raise ValueError("TransportObjective needs sensitive_features: the columns that define groups.")
        self.groups = make_groups(sensitive_features, groups)
        self.groups.require()
        self.criterion = as_criterion(criterion)
        if needs_labels(self.criterion) and not self.loss.is_logistic:
            raise ValueError(
                f"criterion={self.criterion.name!r} compares rows with the same label of two. For a regression, pass y "
                "as strata: it is cut at quantiles."
            )
        self.strata = None if strata is None else make_strata(strata, n_groups=len(self.groups))
        if self.strata is not None:
            check_length(range(self.strata.n_rows), size=self.groups.n_rows, name="strata")
        self.comparisons = comparisons
        if (comparisons is None) != (unit is None):
            raise ValueError("unit and comparisons must be passed together: both are measured with one model.")
        if comparisons is None:
            check_target(target, self.groups)
        within = needs_labels(self.criterion) or self.strata is not None
        self.distance = learner_distance(distance, within=within, is_logistic=self.loss.is_logistic)
        is_small = self.loss.is_logistic and self.groups.n_rows <= const.LARGE_TABLE
        self._n_cells = const.CELLS_OF_SMALL if is_small else CELLS
        self._probabilities = None
        if group_probabilities is not None:
            self._probabilities = _check_group_probabilities(group_probabilities, self.groups)
        self.reset()
        if not needs_labels(self.criterion):  # strata without two groups raise before training
            self._compare_rows(None, None)

    def reset(self) -> None:
        """Discard all rounds, for a new training."""
        self.round_, self.parity_ = 0, 0.0
        self.unit_ = float("nan") if self.unit is None else self.unit
        self._divisor = self.divisor
        self._distance = make_penalty(  # without the duals of another training
            self.distance, self.scale, n_groups=len(self.groups), is_logistic=self.loss.is_logistic
        )
        self._penalty: BinnedPenalty | None = None
        self._rows: GroupedRows | None = None

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Advance one round and return gradient and curvature, two arrays of float32.

        The arguments are labels and margins, as the scikit-learn interfaces of the libraries pass them; or margins and
        a ``Dataset`` of LightGBM or ``DMatrix`` of XGBoost, whose weights are used.
        """
        if hasattr(second, "get_label"):
            labels, margins, sample_weight = second.get_label(), first, second.get_weight()
        else:
            labels, margins = first, second
        margins, labels, weights = self._check(margins, labels, sample_weight)
        if self.round_ and margins[0] == margins[-1] and (margins == margins[0]).all():
            self.reset()
        self._advance(margins, labels, weights)
        return self._value_and_derivatives(margins, labels, weights, np.float32)[1:]

    def value_and_gradient(
        self, margins: ArrayLike, labels: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> ObjectiveTerms:
        """Return the objective at the current weight and dual potentials, and its derivatives, without a new round."""
        z, y, weights = self._check(margins, labels, sample_weight)
        penalty, self._penalty = self._penalty, copy.deepcopy(self._penalty)  # the next round starts from its duals
        value, gradient, curvature = self._value_and_derivatives(z, y, weights, np.float64)
        self._penalty = penalty
        losses = self.loss.values(z, y)
        return ObjectiveTerms(value + float(losses @ weights if weights.size else losses.sum()), gradient, curvature)

    def _advance(self, margins: Floats, labels: NDArray[Any], weights: Floats) -> None:
        """Count a round, and update the weight of the penalty."""
        if self._penalty is None and self.round_ >= self.warmup and np.ptp(margins) > 0.0:
            self._start_penalty(margins, labels, weights if weights.size else None)
        self.round_ += 1
        if self._penalty is None:
            return
        # The slope of the regularized distance between probabilities falls with their difference. Others do not, and
        # the square lets trees learn from the labels first.
        power = 1 if isinstance(self.distance, ContinuousDistance) and self.loss.is_logistic else 2
        reached = min(1.0, (self.round_ - self.warmup) / max(1, self.ramp)) ** power
        self.parity_ = self.parity_weight * self.unit_ * reached

    def _start_penalty(self, margins: Floats, labels: NDArray[Any], weights: Floats | None) -> None:
        """Measure the unit if it was not passed, and resolve the comparisons."""
        comparisons = self.comparisons
        if comparisons is None:
            compared, predictions = self._compare_rows(labels, weights), self.loss.predictions(margins)
            self._divisor = prediction_divisor(self.loss, predictions, weights)
            targets = compared.fixed_targets(self.target, predictions, self._divisor)
            pairs = compared.comparisons(targets)
            self.unit_, comparisons = measure_unit(
                self._distance, self.loss, labels, margins, pairs, divisor=self._divisor
            )
        self._penalty = BinnedPenalty(self._distance, comparisons, len(self.groups), self._n_cells)

    def _compare_rows(self, labels: NDArray[Any] | None, weights: Floats | None) -> ComparedRows:
        return compare_rows(self.criterion, self.groups, labels=labels, strata=self.strata, row_weights=weights)

    def _grouped_rows(self, labels: NDArray[Any], weights: Floats) -> GroupedRows:
        """Return the rows with the cells that they are counted in, which may depend on the labels."""
        if self._rows is None:
            compared = self._compare_rows(labels, weights if weights.size else None)
            if self._probabilities is not None:
                _check_probabilities_within(self._probabilities, compared)
            self._rows = GroupedRows(
                self.groups,
                self._probabilities,
                strata=compared.stratum,
                n_strata=len(compared.resolved.compared),
                n_cells=self._n_cells,
            )
        return self._rows

    def _value_and_derivatives(
        self, margins: Floats, labels: NDArray[Any], weights: Floats, dtype: Any
    ) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """Return the value of the penalty, and the derivatives of loss plus penalty."""
        rows, value = self._grouped_rows(labels, weights), 0.0
        if self._penalty is None or self.parity_ == 0.0:
            gradient, curvature = self.loss.derivatives(margins, labels)
        else:
            grid = PredictionGrid.of(self.loss, margins, self._divisor, weights if weights.size else None)
            positions, masses = rows.count(margins, weights, grid.position)
            tables = self._penalty.read(masses, (grid.low, grid.high))
            total = self.parity_ * (weights.sum() if weights.size else float(len(margins)))
            factor = total / np.maximum(masses.sum(axis=1), 1e-300)  # the slopes of empty cells are 0
            derivatives = tables.derivatives * (factor[:, None] * (1.0, const.CURVATURE_SHARE))[:, None, :]
            value = total * tables.value
            if self.loss.is_logistic:
                return value, *rows.logit_derivatives(positions, labels, weights, derivatives, dtype=dtype)
            gradient, curvature = self.loss.derivatives(margins, labels)
            moved = self.loss.prediction_slopes(self.loss.predictions(margins)) / self._divisor
            slopes, bends = rows.look_up(positions, derivatives)
            gradient, curvature = gradient + slopes * moved, curvature + bends * moved**2
        if weights.size:
            gradient, curvature = weights * gradient, weights * curvature
        return value, gradient.astype(dtype), np.maximum(curvature, 1e-16).astype(dtype)

    def _check(self, margins: Any, labels: Any, sample_weight: Any) -> tuple[Floats, NDArray[Any], Floats]:
        z = np.ascontiguousarray(margins, dtype=np.float64)
        if z.ndim == 2 and z.shape[1] == 1:
            z = z[:, 0]
        if z.ndim != 1:
            raise ValueError(f"TransportObjective takes one margin per row, as of two classes; it got shape {z.shape}.")
        if len(z) != self.groups.n_rows:
            raise ValueError(
                f"The objective was made with sensitive features of {self.groups.n_rows} rows, but the training set "
                f"has {len(z)}. Pass those of the training rows, in their order; TransportBoostingClassifier does that."
            )
        if not np.isfinite(z.sum()) and not np.isfinite(z).all():
            raise ValueError("Margins are NaN or infinite: training diverged. Try a smaller learning_rate.")
        y: NDArray[Any] = np.ascontiguousarray(labels, dtype=np.float32 if self.loss.is_logistic else np.float64)
        check_length(y, size=len(z), name="labels")
        if self.round_ == 0:
            self._check_labels(y)
        if sample_weight is None or np.size(sample_weight) == 0:
            return z, y, np.zeros(0)
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
        if self.round_ == 0:
            check_weights(weights, size=len(z))
            if not all(weights[rows].any() for rows in self.groups.rows):
                raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
        return z, y, weights

    def _check_labels(self, y: NDArray[np.floating]) -> None:
        if self.loss.is_logistic and not ((y == 0) | (y == 1)).all():
            raise ValueError("labels must be 0 and 1; TransportBoostingClassifier takes any two labels.")
        if not np.isfinite(y).all():
            raise ValueError("labels has NaN or infinite numbers; remove those rows first.")
        if self.loss.link == "log" and (y < 0).any():
            raise ValueError(f"This loss is for numbers of 0 and more; labels has {int((y < 0).sum())} negative ones.")


def _check_group_probabilities(probabilities: ArrayLike, groups: Groups) -> NDArray[np.float32]:
    """Return the probabilities of the groups as an array; raise ValueError if they are invalid."""
    array = np.asarray(probabilities, dtype=np.float32)
    if array.shape != (groups.n_rows, len(groups)):
        raise ValueError(
            f"group_probabilities must have shape ({groups.n_rows}, {len(groups)}), rows and groups; it has shape "
            f"{array.shape}."
        )
    if not (np.isfinite(array).all() and array.min() >= 0.0 and array.max() <= 1.0 + 1e-6):
        raise ValueError("group_probabilities must be numbers from 0 to 1, one for each row and group.")
    if not array.sum(axis=0).all():
        raise ValueError("group_probabilities has a group with probability 0 in all rows; each group needs rows.")
    return array


def _check_probabilities_within(probabilities: NDArray[np.float32], compared: ComparedRows) -> None:
    """Raise ValueError where a group that is compared in a stratum has no probability there."""
    for number, part in enumerate(compared.resolved.compared):
        if not probabilities[compared.stratum == number].sum(axis=0)[list(part.groups)].all():
            raise ValueError(
                "group_probabilities has a group with probability 0 in all rows of a label or stratum in which it has "
                "rows; each needs some."
            )
