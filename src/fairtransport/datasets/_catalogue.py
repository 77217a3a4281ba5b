"""The list of data sets that come with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport.datasets import _adult as adult
from fairtransport.datasets import _communities as communities
from fairtransport.datasets import _german as german

if TYPE_CHECKING:
    from fairtransport.datasets._base import DatasetInfo

__all__ = ["list_datasets"]


def list_datasets() -> tuple[DatasetInfo, ...]:
    """Describe the data sets that come with the package, without reading them.

    Returns
    -------
    tuple of DatasetInfo
        In the order of the paper's Table 1.

    Examples
    --------
    >>> from fairtransport.datasets import list_datasets
    >>> [(entry.name, entry.rows, entry.columns) for entry in list_datasets()]
    [('adult', 48842, 14), ('german', 1000, 20), ('communities', 1994, 122)]
    """
    return (adult.INFO, german.INFO, communities.INFO)
