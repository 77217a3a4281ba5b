"""Errors by group: rates at one and at all thresholds, calibration, areas under ROC curves, residuals."""

from fairtransport.auditing.errors.calibration import Calibration, GroupCalibration, ReliabilityBin
from fairtransport.auditing.errors.rates import ErrorRates, GroupRates, RateGap
from fairtransport.auditing.errors.regression import GroupResiduals, RegressionErrors, ResidualDecile
from fairtransport.auditing.errors.separation import (
    CorrectedEstimate,
    LabelSeparation,
    Separation,
    ThresholdDifferences,
)
from fairtransport.auditing.errors.summary import CrossAuc

__all__ = [
    "Calibration",
    "CorrectedEstimate",
    "CrossAuc",
    "ErrorRates",
    "GroupCalibration",
    "GroupRates",
    "GroupResiduals",
    "LabelSeparation",
    "RateGap",
    "RegressionErrors",
    "ReliabilityBin",
    "ResidualDecile",
    "Separation",
    "ThresholdDifferences",
]
