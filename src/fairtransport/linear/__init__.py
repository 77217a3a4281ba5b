"""Linear models trained towards demographic parity: continuous (COT) and discrete (DOT) optimal transport."""

from fairtransport.criteria.penalty import Duals
from fairtransport.linear._continuous_regressor import ContinuousTransportRegressor
from fairtransport.linear._discrete import DiscreteTransportClassifier
from fairtransport.linear._discrete_regressor import DiscreteTransportRegressor
from fairtransport.linear._sgd_solver import Trainer
from fairtransport.linear.continuous import ContinuousTransportClassifier
from fairtransport.linear.sgd_problem import SgdSettings

__all__ = [
    "ContinuousTransportClassifier",
    "ContinuousTransportRegressor",
    "DiscreteTransportClassifier",
    "DiscreteTransportRegressor",
    "Duals",
    "SgdSettings",
    "Trainer",
]
