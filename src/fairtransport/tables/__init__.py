"""A table on any engine (narwhals) -> histograms, without collecting rows; and repaired scores, where it is."""

from fairtransport.tables._lookup import RepairLookup
from fairtransport.tables._repairing import check_rows, repair_rows
from fairtransport.tables.counting import TableCounts, count_table
from fairtransport.tables.files import FileTable, open_files
from fairtransport.tables.reading import Columns, open_table

__all__ = [
    "Columns",
    "FileTable",
    "RepairLookup",
    "TableCounts",
    "check_rows",
    "count_table",
    "open_files",
    "open_table",
    "repair_rows",
]
