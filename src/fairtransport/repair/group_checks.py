"""Checks of the groups that a quantile repair is fitted to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport._validation import check_length
from fairtransport.groups import Groups, make_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.histograms import GroupHistograms

__all__ = ["check_histograms", "groups_to_repair", "require_groups", "with_dropped_labels"]


def require_groups(sensitive_features: Any) -> None:
    """Raise where ``sensitive_features`` is None."""
    if sensitive_features is None:
        raise ValueError(
            "Quantile repair needs sensitive_features, at prediction too: each group has a map of its own."
        )


def groups_to_repair(
    sensitive_features: Any,
    *,
    n_rows: int,
    grouping: str,
    missing: str,
    weights: NDArray[np.float64] | None = None,
) -> Groups:
    """Return the groups of all rows; raise unless each can be repaired from its rows of positive weight."""
    require_groups(sensitive_features)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing)
    check_length(range(groups.n_rows), size=n_rows, name="sensitive_features")
    if groups.overlapping:
        raise ValueError(
            "Quantile repair needs groups that do not overlap, and with grouping='each' a row belongs to one "
            f"group of each of {len(groups.columns)} columns and would have as many maps. Use grouping='crossed'."
        )
    if weights is not None:
        n_empty = sum(not weights[rows].any() for rows in groups.rows)
        if n_empty:
            raise ValueError(
                f"{n_empty} of {len(groups)} groups have total sample_weight 0; drop their rows or weigh them."
            )
    counted = groups if weights is None else groups.select(weights > 0)
    counted.require(min_size=1, at_least=2)
    return groups


def check_histograms(histograms: GroupHistograms) -> None:
    """Raise unless each group can be repaired from its counts."""
    groups = histograms.groups
    if groups.overlapping:
        raise ValueError("Quantile repair needs groups that do not overlap; use grouping='crossed'.")
    if len(groups) < 2:
        raise ValueError(
            f"The rows fall into {len(groups)} group(s) of {say_columns(groups.columns)}; at least 2 needed."
        )
    n_empty = int(np.count_nonzero(histograms.weights <= 0))
    if n_empty:
        raise ValueError(f"{n_empty} of {len(groups)} groups have total weight 0; drop their rows or weigh them.")
    if np.count_nonzero(histograms.everyone) == 1:
        raise ValueError(
            f"All {histograms.rows.sum()} scores fall into one bin, so there is nothing to repair: check the column, "
            "range= and n_bins=."
        )


def with_dropped_labels(groups: Groups) -> Groups:
    """Return the groups with the labels that `Groups.settle` dropped after the others.

    Rows of dropped groups have the code after the last group and so become those of the first dropped label. Which
    of these labels a row had is not known, and not needed: all of them use the common map.
    """
    if not groups.dropped:
        return groups
    spec = {name: value for name, value in groups.to_spec().items() if name != "dropped"}
    labels = [list(label) if isinstance(label, tuple) else label for label in groups.dropped]
    return replace(Groups.from_spec(spec | {"labels": [*spec["labels"], *labels]}), memberships=groups.memberships)
