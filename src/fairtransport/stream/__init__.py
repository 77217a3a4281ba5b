"""Keep a model fair in production, without labels: monitor, adjuster, store, and the loop of the command."""

from fairtransport.stream._adjuster import ContinualAdjuster
from fairtransport.stream._line_file import StoreError, StoreWarning
from fairtransport.stream._state import AdjustmentReport, GroupReading, Version
from fairtransport.stream._store import read_journal

__all__ = [
    "AdjustmentReport",
    "ContinualAdjuster",
    "GroupReading",
    "StoreError",
    "StoreWarning",
    "Version",
    "read_journal",
]
