"""How an audit treated small groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport.groups import MIN_GROUP_SIZE, SMALL_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairtransport.groups import Groups

__all__ = ["SmallGroups", "summarise_small_groups"]


@dataclass(frozen=True)
class SmallGroups:
    """How an audit treated small groups.

    Parameters
    ----------
    policy : {"keep", "pool", "drop"}
    min_group_size : int
        Groups with fewer rows are small.
    pooled_groups, pooled_rows : int
        Number of groups that were pooled, and of their rows.
    dropped_groups, dropped_rows : int
        Number of groups that were left out, and of their rows.
    """

    policy: str = "keep"
    min_group_size: int = MIN_GROUP_SIZE
    pooled_groups: int = 0
    pooled_rows: int = 0
    dropped_groups: int = 0
    dropped_rows: int = 0

    def sentences(self) -> Iterator[str]:
        """Describe which groups were pooled or left out.

        Examples
        --------
        >>> list(SmallGroups("pool", 30, pooled_groups=3, pooled_rows=45).sentences())
        ['Pooled as (small groups): 45 rows of 3 groups with fewer than 30 rows each']
        """
        for verb, n_groups, n_rows in (
            (f"Pooled as {SMALL_GROUPS}", self.pooled_groups, self.pooled_rows),
            ("Left out", self.dropped_groups, self.dropped_rows),
        ):
            if n_groups:
                noun = "group" if n_groups == 1 else "groups"
                yield f"{verb}: {n_rows:,} rows of {n_groups} {noun} with fewer than {self.min_group_size} rows each"


def summarise_small_groups(policy: str, min_group_size: int, sizes: Any, before: Groups, after: Groups) -> SmallGroups:
    """Summarise the effect of `Groups.settle`; raise ValueError where fewer than two groups are left."""
    if len(after) < 2 <= len(before):
        raise ValueError(
            f"With small_groups={policy!r} and min_group_size={min_group_size}, {len(after)} group(s) of "
            f"{say_columns(before.columns)} are left of {len(before)}; at least 2 are needed. Set a smaller "
            "min_group_size=, or small_groups='keep'."
        )
    rows = dict(zip(before.labels, np.asarray(sizes).tolist(), strict=True))
    pooled, dropped = ([label for label in labels if label in rows] for labels in (after.pooled, after.dropped))
    return SmallGroups(
        policy,
        min_group_size,
        len(pooled),
        int(sum(rows[label] for label in pooled)),
        len(dropped),
        int(sum(rows[label] for label in dropped)),
    )
