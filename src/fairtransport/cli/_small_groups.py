"""Groups with few rows as the commands name them, without any figure, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import check_policy

if TYPE_CHECKING:
    from fairtransport.repair import QuantileRepair
    from fairtransport.tabular import TableModel

_MOST_NAMED = 5


def name_some(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """List the first names, and count the others."""
    more = len(names) - most
    return separator.join(names[:most]) + (f"{separator}and {more:,} more" if more > 0 else "")


def _name_groups(labels: Sequence[Any]) -> str:
    names = [", ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in labels]
    return name_some(names, _MOST_NAMED, "; ")


def describe_shared_maps(repair: QuantileRepair, subject: str) -> str:
    """Name the groups without a map of their own, and say which they use; empty where no group has one."""
    few, policy = repair.small_groups_, check_policy(repair.groups)
    if not few or len(few) == len(repair.groups_):
        return ""
    if repair.criterion != "demographic_parity":
        use = "use a map of several groups"  # chosen by the rows with each label
    elif policy.small == "drop" or repair.group_sizes_[~repair.own_map_].sum() < policy.min_size:
        use = "use the map of everyone"
    else:
        use = "share one map"
    return f"{subject} {use}: {_name_groups(few)}."


def describe_small_groups(model: TableModel, *, is_kept: bool) -> Iterator[str]:
    """Name the groups with few training rows, and say how they were treated; ``is_kept``: the plain model is."""
    groups, min_size = model.known_groups, model.policy.min_size
    if groups is None:
        return
    few = "too small to be compared one by one"
    if groups.pooled:
        pools = ", ".join(groups.names[groups.labels.index(pool)] for pool in groups.pools)
        n_few = f"{len(groups.pooled):,} group{'s' * (len(groups.pooled) != 1)}"
        yield f"Pooled as {pools}: {n_few} {few} ({_name_groups(groups.pooled)})."
    if groups.dropped:
        n_few = f"{len(groups.dropped):,} group{'s' * (len(groups.dropped) != 1)}"
        yield f"Left out of the comparisons: {n_few} {few} ({_name_groups(groups.dropped)})."
    start = f"Groups with fewer than {min_size} training rows"
    repair = getattr(model.estimator_, "repair_", None)
    if repair is not None and not is_kept:
        yield from filter(None, [describe_shared_maps(repair, start)])
        return
    sizes = getattr(model.estimator_ if repair is None else repair, "group_sizes_", None)
    few_rows = np.flatnonzero(np.asarray([] if sizes is None else sizes) < min_size)
    small = [groups.labels[index] for index in few_rows if groups.labels[index] not in groups.pools]
    if small:
        yield f"{start}{'' if is_kept else ' have little weight in training'}: {_name_groups(small)}."
