"""Tables in files that may be larger than memory: read by DuckDB, written in batches."""

from fairtransport.tables.files._file_table import FileTable, check_open, open_files
from fairtransport.tables.files.writers import check_output, table_writer

__all__ = ["FileTable", "check_open", "check_output", "open_files", "table_writer"]
