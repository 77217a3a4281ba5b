"""Labels of groups: what they are, how they are shown, and which pool contains them."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = ["SMALL_GROUPS", "GroupLabel", "name_groups", "owner_columns", "pool_of"]

GroupLabel: TypeAlias = Hashable
"""A column's value (str, int, float, bool; None when missing) or a tuple of such values."""

SMALL_GROUPS = "(small groups)"
"""Label and name of the group into which small groups are pooled."""


def name_groups(labels: Sequence[Any], grouping: str, pools: Collection[Any] = ()) -> tuple[str, ...]:
    """Return the names of groups: their labels as text, all different."""
    names: dict[str, None] = {}
    for label in labels:
        if label in pools:
            name = f"{label[0]}={SMALL_GROUPS}" if grouping == "each" else SMALL_GROUPS
        elif grouping == "each":
            name = f"{label[0]}={_show(label[1])}"
        else:
            name = ", ".join(map(_show, label)) if isinstance(label, tuple) else _show(label)
        candidates = (name if number == 1 else f"{name} ({number})" for number in count(1))  # 1 and "1" look alike
        names[next(text for text in candidates if text not in names)] = None
    return tuple(names)


def _show(value: Any) -> str:
    if value is None:
        return "missing"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value) or "(empty)"


def pool_of(label: Any, pools: Sequence[Any], grouping: str) -> GroupLabel:
    """Return the label of the pool that holds a pooled label."""
    pool: GroupLabel = pools[0] if grouping == "crossed" else next(pool for pool in pools if pool[0] == label[0])
    return pool


def owner_columns(labels: Iterable[Any], grouping: str) -> set[Any]:
    """Return the columns that the labels name, where ``grouping="each"``."""
    return {label[0] for label in labels} if grouping == "each" else set()
