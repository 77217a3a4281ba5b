"""scikit-learn estimators: COT, DOT and quantile repair (DPP); many at once, and the trade-off curve."""

from __future__ import annotations

from fairtransport.estimators.continuous import ContinuousTransportClassifier, Duals
from fairtransport.estimators.course import Course
from fairtransport.estimators.curve import Choice, Frontier
from fairtransport.estimators.discrete import DiscreteTransportClassifier
from fairtransport.estimators.many import fit_many
from fairtransport.estimators.repair import QuantileRepair
from fairtransport.estimators.repair_classifier import QuantileRepairClassifier
from fairtransport.estimators.tradeoff import frontier

__all__ = [
    "Choice",
    "ContinuousTransportClassifier",
    "Course",
    "DiscreteTransportClassifier",
    "Duals",
    "Frontier",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "fit_many",
    "frontier",
]
