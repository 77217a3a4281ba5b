"""One interface to the models that can follow a stream."""

from fairtransport.stream.scorers._base import Scorer
from fairtransport.stream.scorers._registry import scorer_for

__all__ = ["Scorer", "scorer_for"]
