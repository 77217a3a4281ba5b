"""Files of tables, larger than memory or not: opened as one table, read by DuckDB, written part by part."""

from fairtransport.tables.files._table import FileTable, open_files
from fairtransport.tables.files.writing import check_output, writing

__all__ = ["FileTable", "check_output", "open_files", "writing"]
