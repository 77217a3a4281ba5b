"""Strong demographic parity by optimal transport.

The names below are loaded when first used, so ``import fairtransport`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairtransport import datasets, metrics
    from fairtransport.estimators import (
        ContinuousTransportClassifier,
        DiscreteTransportClassifier,
        QuantileRepair,
        QuantileRepairClassifier,
    )
    from fairtransport.groups import Groups, make_groups
    from fairtransport.transport import solve_dual

__all__ = [
    "ContinuousTransportClassifier",
    "DiscreteTransportClassifier",
    "Groups",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "__version__",
    "datasets",
    "make_groups",
    "metrics",
    "solve_dual",
]

_HOMES = {
    "ContinuousTransportClassifier": "estimators",
    "DiscreteTransportClassifier": "estimators",
    "Groups": "groups",
    "QuantileRepair": "estimators",
    "QuantileRepairClassifier": "estimators",
    "make_groups": "groups",
    "solve_dual": "transport",
}
_ROOMS = frozenset({"datasets", "estimators", "metrics", "paper", "penalties", "report", "transport"})


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"fairtransport.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"fairtransport.{name}")
    raise AttributeError(f"module 'fairtransport' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
