"""The distance between samples of predictions, and the unit in which its weight is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_choice, check_flag, check_real
from fairtransport.criteria import weigh_by_reliability
from fairtransport.penalties import Comparisons, ContinuousPenalty, DiscretePenalty, TransportPenalty
from fairtransport.penalties.base import UNIT_DEVIATION
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import quadrature_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._losses import Loss

__all__ = ["PenaltyUnit", "default_kind", "make_distance", "measure_unit", "prediction_divisor"]

KINDS = ("continuous", "discrete")
# Strength and kernel variance.
_PROBABILITY_DUALS, _REAL_DUALS = (3.2, 0.02), (0.1, 0.1)


@dataclass(frozen=True, eq=False)
class PenaltyUnit:
    """What a plain model says about the penalty.

    Attributes
    ----------
    factor : float
        Factor of the penalty at ``parity_weight`` 1; 0 where groups differ no more than by chance.
    divisor : float
        Divisor of the predictions before they are compared.
    comparisons : Comparisons
        The pairs that are compared, weighed by reliability.
    """

    factor: float
    divisor: float
    comparisons: Comparisons


def default_kind(kind: str | None, *, within: bool) -> str:
    """Return the kind of distance; ``within`` says whether groups are compared within labels or strata."""
    if kind is None:
        return "discrete" if within else "continuous"
    return check_choice(kind, KINDS, name="kind")


def make_distance(
    kind: str,
    loss: Loss,
    *,
    regularizer: str,
    strength: float | None,
    opposite_duals: bool,
    n_fourier_features: int,
    kernel_variance: float | None,
    scale: str,
) -> TransportPenalty:
    """Return the penalty of a kind; ``scale`` says whether predictions are standardized in each round."""
    if kind == "discrete":
        return DiscretePenalty(scale=scale)
    default_strength, default_variance = _PROBABILITY_DUALS if loss.is_logistic else _REAL_DUALS
    variance = default_variance if kernel_variance is None else kernel_variance
    problem = DualProblem(
        quadrature_features(n_fourier_features, variance),
        get_regularizer(regularizer),
        default_strength if strength is None else check_real(strength, name="strength", strict=True),
        check_flag(opposite_duals, name="opposite_duals"),
        "all",
    )
    return ContinuousPenalty(problem, scale=scale)


def prediction_divisor(loss: Loss, predictions: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    """Return what predictions are divided by, such that a distance means the same for probabilities and for prices."""
    if loss.is_logistic:
        return 1.0
    center = np.average(predictions, weights=weights)
    deviation = float(np.sqrt(np.average((predictions - center) ** 2, weights=weights)))
    return deviation / UNIT_DEVIATION if deviation > 0.0 else 1.0


def measure_unit(
    distance: TransportPenalty,
    loss: Loss,
    labels: NDArray[Any],
    margins: NDArray[np.float64],
    comparisons: Comparisons,
    *,
    divisor: float,
) -> PenaltyUnit:
    """Return the unit of the penalty, with a plain model's margins."""
    scores = loss.predictions(margins) / divisor
    weighed = weigh_by_reliability(comparisons, scores)
    value = distance.value_and_gradient(scores, weighed).value if weighed.active.size else 0.0
    information = loss.information(margins, labels, comparisons.row_weights)
    return PenaltyUnit(information / value if value > 0.0 else 0.0, divisor, weighed)
