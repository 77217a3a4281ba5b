"""Linear models trained towards demographic parity by optimal transport, continuous (COT) or discrete (DOT)."""

from fairtransport.criteria.penalty import Duals
from fairtransport.linear.estimators import TransportClassifier, TransportRegressor
from fairtransport.linear.settings import SgdSettings
from fairtransport.linear.sgd_solver import Trainer
from fairtransport.training.online import OnlineSettings

__all__ = ["Duals", "OnlineSettings", "SgdSettings", "Trainer", "TransportClassifier", "TransportRegressor"]
