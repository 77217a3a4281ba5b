"""Quantile repair of scores: of arrays, tables, files and streams, and around a classifier or a regressor."""

from fairtransport.repair._table_repair import TableRepair
from fairtransport.repair.blind import BlindRepair, BlindRepairClassifier, BlindRepairRegressor
from fairtransport.repair.online import OnlineRepairState
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.repair.quantile_models import QuantileRepairClassifier, QuantileRepairRegressor
from fairtransport.training.online import OnlineSettings

__all__ = [
    "BlindRepair",
    "BlindRepairClassifier",
    "BlindRepairRegressor",
    "OnlineRepairState",
    "OnlineSettings",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "QuantileRepairRegressor",
    "TableRepair",
]
