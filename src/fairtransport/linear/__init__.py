"""Linear models trained towards demographic parity: continuous (COT) and discrete (DOT) optimal transport."""

from fairtransport.linear._discrete import DiscreteTransportClassifier
from fairtransport.linear.continuous import ContinuousTransportClassifier
from fairtransport.linear.duals import Duals
from fairtransport.linear.solvers._sgd import Trainer
from fairtransport.linear.solvers.settings import SgdSettings

__all__ = ["ContinuousTransportClassifier", "DiscreteTransportClassifier", "Duals", "SgdSettings", "Trainer"]
