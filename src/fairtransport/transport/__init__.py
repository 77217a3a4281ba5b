"""Optimal transport on the line: exact distances, couplings and maps, barycenters, and the regularized dual problem."""

from __future__ import annotations

from fairtransport.transport.dual import DualSolution, solve_dual
from fairtransport.transport.line import Coupling, QuantileMap, Sample, coupling, quantile_map, wasserstein
from fairtransport.transport.targets import pooled, resolve_target, w1_barycenter, w2_barycenter

__all__ = [
    "Coupling",
    "DualSolution",
    "QuantileMap",
    "Sample",
    "coupling",
    "pooled",
    "quantile_map",
    "resolve_target",
    "solve_dual",
    "w1_barycenter",
    "w2_barycenter",
    "wasserstein",
]
