"""Repair without the group at prediction: a model of the features, a model of the groups, and a map of both."""

from fairtransport.repair.blind.classifier import BlindRepairClassifier
from fairtransport.repair.blind.regressor import BlindRepairRegressor

__all__ = ["BlindRepairClassifier", "BlindRepairRegressor"]
