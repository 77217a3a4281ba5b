"""Groups of few rows: pooled into one group, or dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import short_type
from fairtransport.groups._labels import SMALL_GROUPS, GroupLabel, pool_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

__all__ = ["MIN_GROUP_SIZE", "SMALL_GROUP_POLICIES", "SettledLabels", "drop_labels", "pool_labels"]

SMALL_GROUP_POLICIES = ("keep", "pool", "drop")
"""The treatments of small groups by :meth:`Groups.settle`."""

MIN_GROUP_SIZE = 30
"""The default size below which a group is small."""


@dataclass(frozen=True)
class SettledLabels:
    """Labels of groups, and of those that were pooled or dropped; see `Groups` for the fields."""

    labels: tuple[GroupLabel, ...]
    columns: tuple[str, ...]
    grouping: str
    pooled: tuple[GroupLabel, ...]
    dropped: tuple[GroupLabel, ...]
    pools: tuple[GroupLabel, ...]

    def codes_of(self, labels: Sequence[GroupLabel]) -> NDArray[Any]:
        """Return the index of the group that each of the earlier labels belongs to now, and that of no group."""
        none = len(self.labels)
        code_of = {label: code for code, label in enumerate(self.labels)}
        code_of |= {label: code_of[pool_of(label, self.pools, self.grouping)] for label in self.pooled}
        return np.array([*(code_of.get(label, none) for label in labels), none], dtype=short_type(none))


def pool_labels(settled: SettledLabels, few: Collection[GroupLabel]) -> SettledLabels:
    """Return the labels with those of small groups in a pool, which comes last; one for each column of ``"each"``."""
    joined = [label for label in settled.labels if label in few and label not in settled.pools]
    labels = [label for label in settled.labels if label not in few]
    pools = _pools_for(settled, joined)
    labels += [pool for pool in pools if pool not in labels]
    return replace(settled, labels=tuple(labels), pooled=(*settled.pooled, *joined), pools=pools)


def drop_labels(settled: SettledLabels, few: Collection[GroupLabel]) -> SettledLabels:
    """Return the labels without those of small groups; a small pool releases what it contains."""
    joined = [label for label in settled.labels if label in few and label not in settled.pools]
    released = [label for label in settled.pooled if pool_of(label, settled.pools, settled.grouping) in few]
    return replace(
        settled,
        labels=tuple(label for label in settled.labels if label not in few),
        pooled=tuple(label for label in settled.pooled if label not in released),
        dropped=(*settled.dropped, *released, *joined),
        pools=tuple(pool for pool in settled.pools if pool not in few),
    )


def _pools_for(settled: SettledLabels, joined: Sequence[Any]) -> tuple[GroupLabel, ...]:
    """Return the labels of the pools, existing ones first, each different from the label of any group."""
    taken = {*settled.labels, *settled.pooled, *settled.dropped}
    candidates = [SMALL_GROUPS, *(f"{SMALL_GROUPS} ({number})" for number in range(2, len(taken) + 2))]
    if settled.grouping == "each":
        existing = {pool[0] for pool in settled.pools}  # type: ignore[index]
        needed = {label[0] for label in joined} - existing
        options: list[list[GroupLabel]] = [
            [(name, text) for text in candidates] for name in settled.columns if name in needed
        ]
    elif settled.pools:
        options = []
    else:
        width = len(settled.columns)
        options = [[(text,) * width if width > 1 else text for text in candidates]]
    return (*settled.pools, *(next(label for label in labels if label not in taken) for labels in options))
