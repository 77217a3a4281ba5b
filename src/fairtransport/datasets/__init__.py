"""The paper's three data sets, which come with the package, and subsampling to other class rates.

Nothing is downloaded. Each call of a loader returns new objects.
"""

from __future__ import annotations

from fairtransport.datasets._loaders import (
    DatasetInfo,
    list_datasets,
    load_adult,
    load_communities,
    load_german,
    shift_class_rate,
)

__all__ = [
    "DatasetInfo",
    "list_datasets",
    "load_adult",
    "load_communities",
    "load_german",
    "shift_class_rate",
]
