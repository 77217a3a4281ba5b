"""A table on any engine (narwhals) -> histograms, without collecting rows; and repaired scores, where it is."""

from fairtransport.tables.counting import TableCounts, count_table
from fairtransport.tables.lookup import RepairLookup
from fairtransport.tables.reading import open_table

__all__ = ["RepairLookup", "TableCounts", "count_table", "open_table"]
