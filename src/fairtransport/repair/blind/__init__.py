"""Repair without the group at prediction: a model of the features, a model of the groups, and a map of both."""

from fairtransport.repair.blind.models import BlindRepairClassifier, BlindRepairRegressor
from fairtransport.repair.blind.settings import BlindRepair

__all__ = ["BlindRepair", "BlindRepairClassifier", "BlindRepairRegressor"]
