"""Models that can follow a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport.linear import (
    ContinuousTransportClassifier,
    ContinuousTransportRegressor,
    DiscreteTransportClassifier,
    DiscreteTransportRegressor,
)
from fairtransport.repair import (
    BlindRepairClassifier,
    BlindRepairRegressor,
    QuantileRepair,
    QuantileRepairClassifier,
    QuantileRepairRegressor,
)
from fairtransport.stream.scorers._fixed import FixedScorer
from fairtransport.stream.scorers._linear import LinearScorer
from fairtransport.stream.scorers._repair import RepairScorer

if TYPE_CHECKING:
    from fairtransport.stream.scorers._base import Scorer

__all__ = ["scorer_for"]

_SCORERS: dict[type, type[Scorer]] = {
    ContinuousTransportClassifier: LinearScorer,
    DiscreteTransportClassifier: LinearScorer,
    ContinuousTransportRegressor: LinearScorer,
    DiscreteTransportRegressor: LinearScorer,
    QuantileRepair: RepairScorer,
    QuantileRepairClassifier: RepairScorer,
    QuantileRepairRegressor: RepairScorer,
    BlindRepairClassifier: FixedScorer,
    BlindRepairRegressor: FixedScorer,
}


def scorer_for(model: Any) -> Scorer:
    """Return the scorer of a fitted model; raise a TypeError for a model that cannot follow a stream."""
    for kind, scorer in _SCORERS.items():
        if isinstance(model, kind):
            _check_fitted(model)
            return scorer(model)
    names = ", ".join(kind.__name__ for kind in _SCORERS)
    raise TypeError(
        f"A stream needs a fitted {names}; got a {type(model).__name__}. For any other model, use a QuantileRepair of "
        "its scores."
    )


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; call fit first.") from None
