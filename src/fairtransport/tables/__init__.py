"""Tables on any engine: histograms without collecting rows, repair of scores by a join, and files."""

from fairtransport.tables._row_repair import RepairLookup, check_rows, repair_rows
from fairtransport.tables.column_roles import Columns, open_table
from fairtransport.tables.files import FileTable, open_files
from fairtransport.tables.files.paths import FORMATS, file_extension
from fairtransport.tables.table_counts import TableCounts, count_table

__all__ = [
    "FORMATS",
    "Columns",
    "FileTable",
    "RepairLookup",
    "TableCounts",
    "check_rows",
    "count_table",
    "file_extension",
    "open_files",
    "open_table",
    "repair_rows",
]
