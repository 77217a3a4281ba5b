"""Counterfactual and path-specific fairness along a causal graph."""

from fairtransport.causal._audit import (
    CounterfactualAudit,
    EdgeSensitivity,
    GraphVariant,
    GroupEffects,
    PathEffect,
    audit_counterfactual,
    edge_sensitivity,
)
from fairtransport.causal._graph import CausalGraph, as_graph
from fairtransport.causal._training import CounterfactuallyFairClassifier, CounterfactuallyFairRegressor
from fairtransport.causal._transport import CounterfactualTransport

__all__ = [
    "CausalGraph",
    "CounterfactualAudit",
    "CounterfactualTransport",
    "CounterfactuallyFairClassifier",
    "CounterfactuallyFairRegressor",
    "EdgeSensitivity",
    "GraphVariant",
    "GroupEffects",
    "PathEffect",
    "as_graph",
    "audit_counterfactual",
    "edge_sensitivity",
]
