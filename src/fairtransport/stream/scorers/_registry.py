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
from fairtransport.repair import QuantileRepair, QuantileRepairClassifier, QuantileRepairRegressor
from fairtransport.stream.scorers._fixed import FixedScorer
from fairtransport.stream.scorers._linear import LinearScorer
from fairtransport.stream.scorers._repair import RepairScorer
from fairtransport.tabular import RowScorer

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
}


def scorer_for(model: Any) -> Scorer:
    """Return the scorer of a fitted model; raise a TypeError for a model that has no scores.

    Linear models and repairs learn from the stream, others do not.
    """
    _check_fitted(model)
    for kind, scorer in _SCORERS.items():
        if isinstance(model, kind):
            return scorer(model)
    return FixedScorer(RowScorer(model).estimator_)


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except TypeError:
        raise TypeError(f"A stream needs a fitted model; got a {type(model).__name__}.") from None
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; call fit first.") from None
