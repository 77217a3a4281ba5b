"""Strong demographic parity by optimal transport.

The names below are loaded when first used, so ``import fairtransport`` stays quick.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from fairtransport import datasets, metrics
    from fairtransport._warnings import FairnessWarning
    from fairtransport.auditing import Audit, AuditComparison, AuditSeries, audit, audit_table, compare
    from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor
    from fairtransport.criteria import ContinuousDistance, DiscreteDistance
    from fairtransport.groups import GroupPolicy, make_groups
    from fairtransport.linear import TransportClassifier, TransportRegressor
    from fairtransport.persistence import load, save
    from fairtransport.repair import (
        BlindRepairClassifier,
        BlindRepairRegressor,
        QuantileRepair,
        QuantileRepairClassifier,
        QuantileRepairRegressor,
    )
    from fairtransport.selection import Frontier, frontier

__all__ = [
    "Audit",
    "AuditComparison",
    "AuditSeries",
    "BlindRepairClassifier",
    "BlindRepairRegressor",
    "ContinuousDistance",
    "DiscreteDistance",
    "FairnessWarning",
    "Frontier",
    "GroupPolicy",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "QuantileRepairRegressor",
    "TransportBoostingClassifier",
    "TransportBoostingRegressor",
    "TransportClassifier",
    "TransportRegressor",
    "audit",
    "audit_table",
    "compare",
    "datasets",
    "frontier",
    "load",
    "make_groups",
    "metrics",
    "save",
]

_NAMES = {
    "_warnings": ("FairnessWarning",),
    "auditing": ("Audit", "AuditComparison", "AuditSeries", "audit", "audit_table", "compare"),
    "boosting": ("TransportBoostingClassifier", "TransportBoostingRegressor"),
    "criteria": ("ContinuousDistance", "DiscreteDistance"),
    "groups": ("GroupPolicy", "make_groups"),
    "linear": ("TransportClassifier", "TransportRegressor"),
    "persistence": ("load", "save"),
    "repair": (
        "BlindRepairClassifier",
        "BlindRepairRegressor",
        "QuantileRepair",
        "QuantileRepairClassifier",
        "QuantileRepairRegressor",
    ),
    "selection": ("Frontier", "frontier"),
}
_HOMES = {name: package for package, names in _NAMES.items() for name in names}
_OTHERS = {"causal", "checks", "datasets", "histograms", "metrics", "report", "stream", "tables", "tabular"}
_PACKAGES = {*_NAMES, *_OTHERS, "torch", "transport"} - {"_warnings"}


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
