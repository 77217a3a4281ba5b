"""scikit-learn estimators: COT, DOT and quantile repair (DPP); many at once, the trade-off curve, raw tables."""

from __future__ import annotations

from fairtransport.estimators.continuous import ContinuousTransportClassifier, Duals
from fairtransport.estimators.course import Course
from fairtransport.estimators.curve import Choice, Frontier
from fairtransport.estimators.discrete import DiscreteTransportClassifier
from fairtransport.estimators.many import fit_many
from fairtransport.estimators.repair import QuantileRepair
from fairtransport.estimators.repair_classifier import QuantileRepairClassifier
from fairtransport.estimators.table_encoder import TableEncoder
from fairtransport.estimators.table_model import RowScores, TableModel, TableRows, score_rows
from fairtransport.estimators.tradeoff import frontier

__all__ = [
    "Choice",
    "ContinuousTransportClassifier",
    "Course",
    "DiscreteTransportClassifier",
    "Duals",
    "Frontier",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "RowScores",
    "TableEncoder",
    "TableModel",
    "TableRows",
    "fit_many",
    "frontier",
    "score_rows",
]
