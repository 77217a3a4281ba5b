"""Models of raw tables: an encoder of columns and a classifier or regressor, from raw rows to scores."""

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular._model import TableModel, score_rows
from fairtransport.tabular._table_rows import RowScores, TableRows

__all__ = ["RowScores", "TableEncoder", "TableModel", "TableRows", "score_rows"]

redact_public_errors(globals())
