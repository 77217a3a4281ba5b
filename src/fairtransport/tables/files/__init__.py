"""Files of tables, larger than memory or not: opened as one table, read by DuckDB, written part by part."""

from fairtransport.tables.files._file_table import FileTable, open_files
from fairtransport.tables.files.writers import check_output, table_writer

__all__ = ["FileTable", "check_output", "open_files", "table_writer"]
