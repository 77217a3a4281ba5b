"""Raw tables to scores: an encoder of columns, and a model behind it."""

from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular._model import RowScores, TableModel, TableRows, score_rows

__all__ = ["RowScores", "TableEncoder", "TableModel", "TableRows", "score_rows"]
