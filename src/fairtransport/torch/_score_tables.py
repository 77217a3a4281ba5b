"""Whole tables of scores, from which a penalty takes its target or its unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairtransport._validation import check_count, check_scores
from fairtransport.groups import Groups
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_table", "labels_of", "samples_of", "to_numpy"]


def labels_of(groups: Any) -> tuple[Any, ...]:
    """Return the labels of groups that are given by number, by label or as `Groups`."""
    if isinstance(groups, Groups):
        if groups.overlapping:
            raise ValueError(
                "With grouping='each' rows belong to several groups and have no one code; cross the columns."
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
    """Return scores, group codes and strata of a whole table, checked."""
    s, g = check_scores(to_numpy(scores)), to_numpy(codes).ravel()
    if strata is None and n_strata > 1:
        raise ValueError(f"this penalty was made for {n_strata} strata; strata= is needed.")
    layers = np.zeros(len(s), dtype=np.int64) if strata is None else to_numpy(strata).ravel()
    for name, column, most in (("group_codes", g, n_groups), ("strata", layers, n_strata)):
        if len(column) != len(s):
            raise ValueError(f"{name} has {len(column)} rows, but there are {len(s)} scores.")
        if column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= most:
            raise ValueError(f"{name} must be whole numbers from 0 to {most - 1}, one for each row.")
    return s, g.astype(np.int64), layers.astype(np.int64)


def samples_of(
    scores: NDArray[np.float64], codes: NDArray[np.int64], strata: NDArray[np.int64], n_groups: int, n_strata: int
) -> list[list[Sample]]:
    """Return the scores of every group of every stratum; all must have rows."""
    samples = []
    for stratum in range(n_strata):
        rows = [scores[(codes == group) & (strata == stratum)] for group in range(n_groups)]
        empty = sum(len(own) == 0 for own in rows)
        if empty:
            where = "" if n_strata == 1 else " of a stratum"
            raise ValueError(f"{empty} of {n_groups} groups{where} have no rows; rows of each are needed here.")
        samples.append([Sample.from_values(own) for own in rows])
    return samples


def to_numpy(values: Any) -> Any:
    """Return an array or a tensor of any kind and device as a NumPy array."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    host = values.detach().cpu()
    return (host.double() if host.is_floating_point() else host).numpy()
