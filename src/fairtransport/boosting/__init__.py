"""Boosted trees with strong demographic parity: an objective for XGBoost and LightGBM, and a classifier around them.

Requires the extra ``boosting``: ``pip install "fairtransport[boosting]"``.
"""

from __future__ import annotations

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.boosting._classifier import TransportBoostingClassifier
from fairtransport.boosting._objective import TransportObjective

__all__ = ["TransportBoostingClassifier", "TransportObjective"]

redact_public_errors(globals())
