"""scikit-learn estimators: COT, DOT and quantile repair (DPP)."""

from __future__ import annotations

from fairtransport.estimators.continuous import ContinuousTransportClassifier, Duals
from fairtransport.estimators.discrete import DiscreteTransportClassifier
from fairtransport.estimators.repair import QuantileRepair
from fairtransport.estimators.repair_classifier import QuantileRepairClassifier
from fairtransport.estimators.trainer import Trainer

__all__ = [
    "ContinuousTransportClassifier",
    "DiscreteTransportClassifier",
    "Duals",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "Trainer",
]
