"""Scores of a whole table, from which a penalty computes its target or its unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairtransport._validation import check_count, check_scores
from fairtransport.groups import Groups
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_table", "group_labels", "group_samples", "to_numpy"]


def group_labels(groups: Any) -> tuple[Any, ...]:
    """Return the labels of groups given as their number, as labels or as `Groups`."""
    if isinstance(groups, Groups):
        if groups.overlapping:
            raise ValueError(
                "With grouping='each' a row belongs to several groups and has no single code; cross the columns."
            )
        return groups.labels
    if isinstance(groups, (str, bytes)) or not hasattr(groups, "__len__"):
        return tuple(range(check_count(groups, name="groups")))
    labels = tuple(groups)
    if len(set(labels)) != len(labels) or not labels:
        raise ValueError(
            f"groups must hold at least one label, each once; of {len(labels)}, {len(set(labels))} differ."
        )
    return labels


def check_table(
    scores: Any, codes: Any, strata: Any, n_groups: int, n_strata: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the checked scores, group codes and strata of a whole table."""
    s, g = check_scores(to_numpy(scores)), to_numpy(codes).ravel()
    if strata is None and n_strata > 1:
        raise ValueError(f"this penalty was made for {n_strata} strata; strata= is needed.")
    layers = np.zeros(len(s), dtype=np.int64) if strata is None else to_numpy(strata).ravel()
    for name, column, limit in (("group_codes", g, n_groups), ("strata", layers, n_strata)):
        if len(column) != len(s):
            raise ValueError(f"{name} has {len(column)} rows, but there are {len(s)} scores.")
        if column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= limit:
            raise ValueError(f"{name} must be whole numbers from 0 to {limit - 1}, one for each row.")
    return s, g.astype(np.int64), layers.astype(np.int64)


def group_samples(
    scores: NDArray[np.float64], codes: NDArray[np.int64], strata: NDArray[np.int64], n_groups: int, n_strata: int
) -> list[list[Sample]]:
    """Return the scores of every group of every stratum; raise if one has no rows."""
    samples = []
    for stratum in range(n_strata):
        by_group = [scores[(codes == group) & (strata == stratum)] for group in range(n_groups)]
        empty = sum(len(values) == 0 for values in by_group)
        if empty:
            where = "" if n_strata == 1 else " of a stratum"
            raise ValueError(f"{empty} of {n_groups} groups{where} have no rows; rows of each are needed here.")
        samples.append([Sample.from_values(values) for values in by_group])
    return samples


def to_numpy(values: Any) -> Any:
    """Return an array-like, or a tensor of any type and device, as a NumPy array."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    host = values.detach().cpu()
    return (host.double() if host.is_floating_point() else host).numpy()
