"""The definition of groups as JSON has it, for files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fairtransport._columns import say_columns
from fairtransport._validation import check_choice
from fairtransport.groups._labels import owner_columns
from fairtransport.groups._small_groups import SettledLabels

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_options", "read_spec", "write_spec"]

_SETTLED = ("pooled", "dropped", "pools")  # left out where they are empty


def check_options(grouping: Any, missing: Any) -> None:
    """Raise unless both are options of `make_groups`."""
    check_choice(grouping, ("crossed", "each"), name="grouping")
    check_choice(missing, ("error", "group"), name="missing")


def write_spec(settled: SettledLabels, missing: str) -> dict[str, Any]:
    """Return the dict of `Groups.to_spec`; raise TypeError for values that JSON cannot represent."""
    lists = {
        name: [list(label) if isinstance(label, tuple) else label for label in getattr(settled, name)]
        for name in ("labels", *_SETTLED)
    }
    every = [label for labels in lists.values() for label in labels]
    for value in (value for label in every for value in (label if isinstance(label, list) else [label])):
        finite = math.isfinite(value) if isinstance(value, float) else isinstance(value, (str, int))
        if not finite and value is not None:
            raise TypeError(
                f"Groups of {say_columns(settled.columns)} cannot be stored: a value is of type "
                f"{type(value).__name__}, not text, a finite number or a boolean; convert it to text first."
            )
    spec = {"labels": lists["labels"], "columns": list(settled.columns)}
    stored = {name: lists[name] for name in _SETTLED if lists[name]}
    return {**spec, "grouping": settled.grouping, "missing": missing, **stored}


def read_spec(spec: Mapping[str, Any]) -> tuple[SettledLabels, str]:
    """Return the labels of a spec and its treatment of missing values; raise ValueError if its parts do not fit."""
    try:
        labels, pooled, dropped, pools = (
            tuple(tuple(label) if isinstance(label, list) else label for label in spec.get(name, ()))
            for name in ("labels", *_SETTLED)
        )
        columns, grouping, missing = tuple(map(str, spec["columns"])), spec["grouping"], spec["missing"]
        every = (*labels, *pooled, *dropped)
        n_distinct = len(set(every))
        stray_pools = len(set(pools).difference(labels))
    except (KeyError, TypeError, AttributeError):
        raise ValueError("A spec of groups has labels and columns (lists), grouping and missing.") from None
    check_options(grouping, missing)
    width = 2 if grouping == "each" else len(columns) if len(columns) > 1 else 0
    widths = {len(label) if isinstance(label, tuple) else 0 for label in every}
    if not columns or widths != {width} or n_distinct < len(every):
        raise ValueError(f"The {len(labels)} labels of this spec do not fit its {len(columns)} column(s).")
    same_owners = owner_columns(pooled, grouping) == owner_columns(pools, grouping)
    if stray_pools or bool(pooled) != bool(pools) or not same_owners:
        raise ValueError("The pooled labels of this spec do not fit its pools.")
    return SettledLabels(labels, columns, grouping, pooled, dropped, pools), missing
