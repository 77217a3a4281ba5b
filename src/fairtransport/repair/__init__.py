"""Repair of scores by quantile maps: of arrays, tables, files and streams, and around a classifier."""

from fairtransport.repair.classifier import QuantileRepairClassifier
from fairtransport.repair.quantile import QuantileRepair

__all__ = ["QuantileRepair", "QuantileRepairClassifier"]
