"""Models of raw tables: an encoder of columns and a classifier or regressor, from raw rows to scores."""

from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular._model import TableModel
from fairtransport.tabular._row_scorer import RowScorer
from fairtransport.tabular.input_columns import InputColumn
from fairtransport.tabular.rows import RowScores, TableRows

__all__ = ["InputColumn", "RowScorer", "RowScores", "TableEncoder", "TableModel", "TableRows"]
