"""Errors by group: rates at thresholds and over all thresholds, calibration, and areas under ROC curves."""

from fairtransport.auditing.errors._norm_intervals import CorrectedEstimate
from fairtransport.auditing.errors.calibration import Calibration, GroupCalibration, ReliabilityBin
from fairtransport.auditing.errors.cross_auc import CrossAuc
from fairtransport.auditing.errors.rates import ErrorRates, GroupRates, RateGap
from fairtransport.auditing.errors.separation import LabelSeparation, Separation, ThresholdDifferences

__all__ = [
    "Calibration",
    "CorrectedEstimate",
    "CrossAuc",
    "ErrorRates",
    "GroupCalibration",
    "GroupRates",
    "LabelSeparation",
    "RateGap",
    "ReliabilityBin",
    "Separation",
    "ThresholdDifferences",
]
