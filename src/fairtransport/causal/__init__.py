"""Counterfactual and path-specific fairness along a causal graph."""

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.causal._graph import CausalGraph, as_graph
from fairtransport.causal._transport import CounterfactualTransport

__all__ = ["CausalGraph", "CounterfactualTransport", "as_graph"]

redact_public_errors(globals())
