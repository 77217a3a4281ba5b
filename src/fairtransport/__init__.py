"""Strong demographic parity by optimal transport.

The names below are loaded when first used, so ``import fairtransport`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairtransport import datasets, metrics
    from fairtransport._warnings import FairnessWarning
    from fairtransport.auditing import Audit, AuditComparison, audit, audit_table, compare
    from fairtransport.estimators import (
        ContinuousTransportClassifier,
        DiscreteTransportClassifier,
        Frontier,
        QuantileRepair,
        QuantileRepairClassifier,
        fit_many,
        frontier,
    )
    from fairtransport.groups import Groups, make_groups
    from fairtransport.persistence import load, save
    from fairtransport.persistence.onnx import to_onnx
    from fairtransport.transport import solve_dual

__all__ = [
    "Audit",
    "AuditComparison",
    "ContinuousTransportClassifier",
    "DiscreteTransportClassifier",
    "FairnessWarning",
    "Frontier",
    "Groups",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "__version__",
    "audit",
    "audit_table",
    "compare",
    "datasets",
    "fit_many",
    "frontier",
    "load",
    "make_groups",
    "metrics",
    "save",
    "solve_dual",
    "to_onnx",
]

_HOMES = {
    "Audit": "auditing",
    "AuditComparison": "auditing",
    "ContinuousTransportClassifier": "estimators",
    "DiscreteTransportClassifier": "estimators",
    "FairnessWarning": "_warnings",
    "Frontier": "estimators",
    "Groups": "groups",
    "QuantileRepair": "estimators",
    "QuantileRepairClassifier": "estimators",
    "audit": "auditing",
    "audit_table": "auditing",
    "compare": "auditing",
    "fit_many": "estimators",
    "frontier": "estimators",
    "load": "persistence",
    "make_groups": "groups",
    "save": "persistence",
    "solve_dual": "transport",
    "to_onnx": "persistence.onnx",
}
_ROOMS = frozenset(
    {
        "auditing",
        "boosting",
        "checks",
        "criteria",
        "datasets",
        "estimators",
        "histograms",
        "metrics",
        "nets",
        "paper",
        "penalties",
        "persistence",
        "report",
        "storage",
        "stream",
        "tables",
        "transport",
    }
)


# What the report draws: loading it makes their ``plot`` work (matplotlib itself is loaded when something is drawn).
_DRAWN = frozenset({"Frontier", "frontier"})


def __getattr__(name: str) -> Any:
    if name in _DRAWN:
        importlib.import_module("fairtransport.report.frontier")
    if name in _HOMES:
        return getattr(importlib.import_module(f"fairtransport.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"fairtransport.{name}")
    raise AttributeError(f"module 'fairtransport' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
