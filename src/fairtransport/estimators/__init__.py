"""scikit-learn estimators: COT, DOT and quantile repair (DPP)."""

from __future__ import annotations

from fairtransport.estimators.continuous import ContinuousTransportClassifier, Duals
from fairtransport.estimators.discrete import DiscreteTransportClassifier

__all__ = ["ContinuousTransportClassifier", "DiscreteTransportClassifier", "Duals"]
