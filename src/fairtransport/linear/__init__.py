"""Linear models trained towards parity: continuous (COT) and discrete (DOT) optimal transport."""

from fairtransport.linear._discrete import DiscreteTransportClassifier
from fairtransport.linear.continuous import ContinuousTransportClassifier, Duals
from fairtransport.linear.solvers._sgd import Trainer

__all__ = ["ContinuousTransportClassifier", "DiscreteTransportClassifier", "Duals", "Trainer"]
