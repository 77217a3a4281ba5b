"""Scores of a whole table, from which a penalty computes its target or its unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairtransport._validation import check_count
from fairtransport.groups import Groups
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.torch._layers import Layers

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
    scores: NDArray[np.float64], codes: Any, strata: Any, labels: Any, layers: Layers
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the scores, and the checked group codes and layers of a whole table."""
    s, g = scores, to_numpy(codes).ravel()
    layers.check_given(labels, strata)
    columns = {"group_codes": (g, layers.n_groups)}
    if strata is not None:
        columns["strata"] = (to_numpy(strata).ravel(), layers.n_strata)
    if labels is not None:
        whole = to_numpy(labels).ravel()
        columns["labels"] = (whole.astype(np.int64) if np.isin(whole, (0, 1)).all() else whole - 0.5, 2)
    for name, (column, limit) in columns.items():
        if len(column) != len(s):
            raise ValueError(f"{name} has {len(column)} rows, but there are {len(s)} scores.")
        if column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= limit:
            raise ValueError(f"{name} must be whole numbers from 0 to {limit - 1}, one for each row.")
    of_rows = layers.of_rows(*(columns[name][0] if name in columns else None for name in ("labels", "strata")))
    return s, g.astype(np.int64), np.broadcast_to(of_rows, s.shape).astype(np.int64)


def group_samples(
    scores: NDArray[np.float64], codes: NDArray[np.int64], layer: NDArray[np.int64], layers: Layers
) -> list[list[Sample]]:
    """Return the scores of every group of every layer; raise if one has no rows."""
    samples = []
    for number in range(layers.n_layers):
        by_group = [scores[(codes == group) & (layer == number)] for group in range(layers.n_groups)]
        empty = sum(len(values) == 0 for values in by_group)
        if empty:
            where = "" if layers.n_layers == 1 else " of a label or stratum"
            raise ValueError(f"{empty} of {layers.n_groups} groups{where} have no rows; rows of each are needed here.")
        samples.append([Sample.from_values(values) for values in by_group])
    return samples


def to_numpy(values: Any) -> Any:
    """Return an array-like, or a tensor of any type and device, as a NumPy array."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    host = values.detach().cpu()
    return (host.double() if host.is_floating_point() else host).numpy()
