"""Strong demographic parity by optimal transport.

The names below are loaded when first used, so ``import fairtransport`` stays quick.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairtransport import datasets, metrics
    from fairtransport._warnings import FairnessWarning
    from fairtransport.auditing import Audit, AuditComparison, AuditSeries, audit, audit_by, audit_table, compare
    from fairtransport.causal import CounterfactualTransport, audit_counterfactual
    from fairtransport.criteria import ContinuousDistance, DiscreteDistance
    from fairtransport.groups import Groups, make_groups
    from fairtransport.linear import TransportClassifier, TransportRegressor
    from fairtransport.persistence import load, save, sign
    from fairtransport.persistence.onnx import to_onnx
    from fairtransport.repair import (
        BlindRepairClassifier,
        BlindRepairRegressor,
        QuantileRepair,
        QuantileRepairClassifier,
        QuantileRepairRegressor,
        TableRepair,
    )
    from fairtransport.selection import Frontier, frontier
    from fairtransport.transport import solve_dual

__all__ = [
    "Audit",
    "AuditComparison",
    "AuditSeries",
    "BlindRepairClassifier",
    "BlindRepairRegressor",
    "ContinuousDistance",
    "CounterfactualTransport",
    "DiscreteDistance",
    "FairnessWarning",
    "Frontier",
    "Groups",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "QuantileRepairRegressor",
    "TableRepair",
    "TransportClassifier",
    "TransportRegressor",
    "__version__",
    "audit",
    "audit_by",
    "audit_counterfactual",
    "audit_table",
    "compare",
    "datasets",
    "frontier",
    "load",
    "make_groups",
    "metrics",
    "save",
    "sign",
    "solve_dual",
    "to_onnx",
]

_HOMES = {
    "Audit": "auditing",
    "AuditComparison": "auditing",
    "AuditSeries": "auditing",
    "BlindRepairClassifier": "repair",
    "BlindRepairRegressor": "repair",
    "ContinuousDistance": "criteria",
    "CounterfactualTransport": "causal",
    "DiscreteDistance": "criteria",
    "FairnessWarning": "_warnings",
    "Frontier": "selection",
    "Groups": "groups",
    "QuantileRepair": "repair",
    "QuantileRepairClassifier": "repair",
    "QuantileRepairRegressor": "repair",
    "TableRepair": "repair",
    "TransportClassifier": "linear",
    "TransportRegressor": "linear",
    "audit": "auditing",
    "audit_by": "auditing",
    "audit_counterfactual": "causal",
    "audit_table": "auditing",
    "compare": "auditing",
    "frontier": "selection",
    "load": "persistence",
    "make_groups": "groups",
    "save": "persistence",
    "sign": "persistence",
    "solve_dual": "transport",
    "to_onnx": "persistence.onnx",
}
_PACKAGES = frozenset(
    {
        "auditing",
        "boosting",
        "causal",
        "checks",
        "criteria",
        "datasets",
        "histograms",
        "linear",
        "metrics",
        "persistence",
        "repair",
        "report",
        "selection",
        "stream",
        "tables",
        "tabular",
        "torch",
        "transport",
    }
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"fairtransport.{_HOMES[name]}"), name)
    if name in _PACKAGES:
        return importlib.import_module(f"fairtransport.{name}")
    raise AttributeError(f"module 'fairtransport' has no attribute {name!r}")


def __dir__() -> list[str]:
    # `help` and `inspect.getmembers` load every name: without torch there is no `fairtransport.torch` to show.
    absent = {"torch"} if importlib.util.find_spec("torch") is None else set()
    return sorted({*__all__, *_PACKAGES} - absent)
