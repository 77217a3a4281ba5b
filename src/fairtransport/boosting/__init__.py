"""Boosted trees with equal distributions of scores: an objective for XGBoost and LightGBM, and estimators around it.

Requires the extra ``boosting``: ``pip install "fairtransport[boosting]"``.
"""

from __future__ import annotations

from fairtransport.boosting._estimators import TransportBoostingClassifier, TransportBoostingRegressor
from fairtransport.boosting._objective import TransportObjective

__all__ = ["TransportBoostingClassifier", "TransportBoostingRegressor", "TransportObjective"]
