"""What a fitted repair does, in a few sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["MAP_ROWS", "describe_repair"]

#: Which rows a map is computed from, after the word "rows".
MAP_ROWS = {
    "demographic_parity": "",
    "equal_opportunity": " with a positive label",
    "equalized_odds": " with each label",
}


def describe_repair(repair: Any) -> list[str]:
    """Return statements about the groups and cells of a fitted repair that have no map of their own.

    Examples
    --------
    >>> from fairtransport import QuantileRepair
    >>> scores, group = np.arange(65) / 65, ["a"] * 32 + ["b"] * 31 + ["c"] * 2
    >>> describe_repair(QuantileRepair().fit(scores, sensitive_features=group))
    ['1 of 3 groups has fewer than 30 rows and no map of its own']
    """
    return [*_small_groups(repair), *_small_cells(repair)]


def _small_groups(repair: Any) -> list[str]:
    n_small, n_groups = len(repair.small_groups_), len(repair.groups_)
    if not n_small:
        return []
    rows = f"{repair.min_group_size} rows{MAP_ROWS[repair.criterion]}"
    if n_small == n_groups:
        which = "Fewer than two of the" if repair.criterion == "equalized_odds" else "None of the"
        verb = "have" if repair.criterion == "equalized_odds" else "has"
        return [f"{which} {n_groups} groups {verb} {rows}: all share one map, and ranks stay as different"]
    if n_small == 1:
        return [f"1 of {n_groups} groups has fewer than {rows} and no map of its own"]
    return [f"{n_small} of {n_groups} groups have fewer than {rows} and no maps of their own"]


def _small_cells(repair: Any) -> list[str]:
    within = vars(repair).get("stratum_maps_")
    if within is None:
        return []
    sentences = []
    n_strata, n_single = len(within.sizes), int(np.count_nonzero((within.sizes > 0).sum(axis=1) < 2))
    if n_single:
        verb = "has" if n_single == 1 else "have"
        sentences.append(f"{n_single} of {n_strata} strata {verb} rows of one group only: nothing to compare there")
    filled = within.sizes > 0
    n_small, n_cells = int(np.count_nonzero(filled & (within.shares < 1.0))), int(np.count_nonzero(filled))
    if n_small:
        rows = f"{within.min_size} rows{MAP_ROWS[repair.criterion]}"
        verb, own = ("has", "its map is") if n_small == 1 else ("have", "their maps are")
        sentences.append(
            f"{n_small} of {n_cells} cells of a stratum and a group {verb} fewer than {rows}: {own} shrunk to that of "
            "the group"
        )
    return sentences
