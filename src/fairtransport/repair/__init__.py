"""Quantile repair of scores: of arrays, tables, files and streams, and around a classifier or a regressor."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtransport.repair._table_repair import TableRepair
    from fairtransport.repair.blind import BlindRepair, BlindRepairClassifier, BlindRepairRegressor
    from fairtransport.repair.file_repair import FileRepair, repair_file
    from fairtransport.repair.online import OnlineRepairState
    from fairtransport.repair.quantile import QuantileRepair
    from fairtransport.repair.quantile_models import QuantileRepairClassifier, QuantileRepairRegressor
    from fairtransport.training.online import OnlineSettings

__all__ = [
    "BlindRepair",
    "BlindRepairClassifier",
    "BlindRepairRegressor",
    "FileRepair",
    "OnlineRepairState",
    "OnlineSettings",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "QuantileRepairRegressor",
    "TableRepair",
    "repair_file",
]

_NAMES = {
    "repair._table_repair": ("TableRepair",),
    "repair.blind": ("BlindRepair", "BlindRepairClassifier", "BlindRepairRegressor"),
    "repair.file_repair": ("FileRepair", "repair_file"),
    "repair.online": ("OnlineRepairState",),
    "repair.quantile": ("QuantileRepair",),
    "repair.quantile_models": ("QuantileRepairClassifier", "QuantileRepairRegressor"),
    "training.online": ("OnlineSettings",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:  # pages of audits need the maps, and not scikit-learn
    if name in _MODULES:
        return getattr(importlib.import_module(f"fairtransport.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'fairtransport.repair' has no attribute {name!r}")
