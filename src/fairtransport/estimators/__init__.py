"""scikit-learn estimators: continuous (COT) and discrete (DOT) optimal transport, quantile repair, the trade-off."""

from __future__ import annotations

from fairtransport.estimators.continuous import ContinuousTransportClassifier, Duals
from fairtransport.estimators.curve import Choice, Frontier
from fairtransport.estimators.discrete import DiscreteTransportClassifier
from fairtransport.estimators.many import fit_many
from fairtransport.estimators.repair import QuantileRepair
from fairtransport.estimators.repair_classifier import QuantileRepairClassifier
from fairtransport.estimators.table_encoder import TableEncoder
from fairtransport.estimators.table_model import RowScores, TableModel, TableRows, score_rows
from fairtransport.estimators.tradeoff import frontier
from fairtransport.estimators.trainer import Trainer

__all__ = [
    "Choice",
    "ContinuousTransportClassifier",
    "DiscreteTransportClassifier",
    "Duals",
    "Frontier",
    "QuantileRepair",
    "QuantileRepairClassifier",
    "RowScores",
    "TableEncoder",
    "TableModel",
    "TableRows",
    "Trainer",
    "fit_many",
    "frontier",
    "score_rows",
]
