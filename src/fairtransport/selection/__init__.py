"""Model selection: the trade-off between error and disparity."""

from fairtransport.selection._frontier_search import frontier
from fairtransport.selection.frontier_result import Choice, Frontier, Frontiers

__all__ = ["Choice", "Frontier", "Frontiers", "frontier"]
