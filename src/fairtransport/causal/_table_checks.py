"""What a table has to have, so that the people of its groups can be compared."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.causal.node_columns import NodeColumn, SeenValues

__all__ = ["check_groups", "check_overlap", "check_varies"]

_LEAST_ROWS = 10  # of a group


def check_groups(column: NodeColumn, codes: NDArray[np.float64]) -> tuple[Any, ...]:
    """Return the groups of the sensitive column; raise unless there are two or more, of 10 rows or more."""
    groups = column.levels
    if groups is None:
        raise ValueError(f"Column {column.name!r} has many different numbers; cut it into groups first.")
    if np.isnan(codes).any():
        raise ValueError(f"Column {column.name!r} has rows without a group; drop them first.")
    if len(groups) < 2:
        raise ValueError(f"Column {column.name!r} has one group; there is none to compare it with.")
    smallest = int(np.bincount(codes.astype(np.int64)).min())
    if smallest < _LEAST_ROWS:
        raise ValueError(
            f"A group of column {column.name!r} has {smallest} rows; distributions need at least {_LEAST_ROWS}. "
            "Merge small groups, or leave them out."
        )
    return groups


def check_varies(node: str, sensitive: str, values: Mapping[str, NDArray[np.float64]]) -> None:
    """Raise where a column has one value in a group, so that people have no ranks there."""
    codes = values[sensitive]
    for group in np.unique(codes):
        inside = values[node][codes == group]
        known = inside[np.isfinite(inside)]
        if not known.size or np.ptp(known) == 0.0:
            raise ValueError(
                f"Column {node!r} has one value in a group of {sensitive!r}, so that people cannot be ranked there. "
                "Leave the column out of the graph, or name it in resolving=."
            )


def check_overlap(
    node: str, causes: Sequence[str], sensitive: str, ranges: Mapping[str, tuple[SeenValues, ...]]
) -> None:
    """Raise where a cause has no value in common between two groups, so that ranks cannot be taken from one another."""
    for cause in causes:
        apart = any(not one.overlaps(other) for one, other in combinations(ranges[cause], 2))
        if apart:
            raise ValueError(
                f"Two groups of {sensitive!r} have no values of {cause!r} in common, which is a cause of {node!r}: "
                "people of the two groups are not comparable. Leave the column out of the graph, or the group out of "
                "the table."
            )
