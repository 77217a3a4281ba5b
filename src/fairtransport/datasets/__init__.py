"""The paper's three data sets, shipped with the package, and a way to change their class rates.

Everything here works offline. Each loader returns new objects at every call.
"""

from __future__ import annotations

from fairtransport.datasets._adult import load_adult
from fairtransport.datasets._base import DatasetInfo
from fairtransport.datasets._catalogue import list_datasets
from fairtransport.datasets._communities import load_communities
from fairtransport.datasets._german import load_german
from fairtransport.datasets._shift import shift_class_rate

__all__ = [
    "DatasetInfo",
    "list_datasets",
    "load_adult",
    "load_communities",
    "load_german",
    "shift_class_rate",
]
