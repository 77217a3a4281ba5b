"""Keep a model fair in production, without labels: monitor, adjuster, store, and the loop of the command."""

from fairtransport.stream.adjuster import ContinualAdjuster
from fairtransport.stream.journal import read_journal
from fairtransport.stream.outcome import AdjustmentReport, GroupReading
from fairtransport.stream.state import Version
from fairtransport.stream.store import StoreError, StoreWarning

__all__ = [
    "AdjustmentReport",
    "ContinualAdjuster",
    "GroupReading",
    "StoreError",
    "StoreWarning",
    "Version",
    "read_journal",
]
