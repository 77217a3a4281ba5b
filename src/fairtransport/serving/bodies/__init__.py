"""Bodies of requests: rows in JSON, JSON lines, CSV or Arrow, read into columns."""

from fairtransport.serving.bodies._columns import RequestRows, WantedColumns
from fairtransport.serving.bodies._formats import FORMATS, read_rows

__all__ = ["FORMATS", "RequestRows", "WantedColumns", "read_rows"]
