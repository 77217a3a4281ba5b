"""Histograms as arrays, for files and checkpoints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport.groups import Groups
from fairtransport.histograms._grid import Grid
from fairtransport.storage.schema import from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["HistogramParts", "read_arrays", "write_arrays"]

# Entries of histograms that are stored sparse, so that reading a small file needs little memory; larger ones are stored
# in full.
_MAX_SPARSE = 1 << 21
_MAX_GROUPS_PER_CELL = 8


class HistogramParts(NamedTuple):
    """The fields of `GroupHistograms`."""

    grid: Grid
    groups: Groups
    masses: NDArray[np.float64]
    squares: NDArray[np.float64] | None
    rows: NDArray[np.int64]
    members: NDArray[np.bool_] | None


def write_arrays(parts: HistogramParts) -> dict[str, NDArray[Any]]:
    """Return the arrays of `GroupHistograms.to_arrays`."""
    grid, groups, masses, squares, rows, members = parts
    n_classes, n_cells, n_nodes = masses.shape
    is_sparse = n_classes * max(n_cells, len(groups)) * n_nodes <= _MAX_SPARSE
    occupied = np.flatnonzero(masses) if is_sparse else None
    stored = slice(None) if occupied is None else occupied
    spec = {
        "range": [grid.low, grid.high],
        "n_bins": grid.n_bins,
        "n_classes": n_classes,
        "groups": groups.to_spec(),
    }
    arrays = {"spec": np.array(json.dumps(spec)), "masses": masses.ravel()[stored], "rows": rows}
    if occupied is not None:
        arrays["at"] = occupied
    if grid.positions:
        arrays["nodes"] = grid.nodes
    if squares is not None:
        arrays["squares"] = squares.ravel()[stored]
    if members is not None:
        arrays["members"] = members
    return arrays


def read_arrays(arrays: Mapping[str, Any]) -> HistogramParts:
    """Return the histograms that `write_arrays` stored; raise ValueError for any other arrays."""
    try:
        spec = from_json(str(arrays["spec"]).encode(), name="spec")
        grid = Grid.over(spec["range"], spec["n_bins"])
        if "nodes" in arrays:
            grid = _explicit(grid, arrays["nodes"])
        groups, n_classes = Groups.from_spec(spec["groups"]), spec["n_classes"]
        members = np.asarray(arrays["members"], dtype=np.bool_) if "members" in arrays else None
        n_cells = len(groups) if members is None else members.shape[1]
        size = n_classes * n_cells * grid.n_nodes
        is_sparse = n_classes * max(n_cells, len(groups)) * grid.n_nodes <= _MAX_SPARSE
        if n_classes not in (1, 2) or np.size(arrays["rows"]) != n_cells or is_sparse != ("at" in arrays):
            raise ValueError  # noqa: TRY301 - before memory is allocated
        if not is_sparse and len(groups) > _MAX_GROUPS_PER_CELL * n_cells:
            raise ValueError  # noqa: TRY301 - likewise
        rows = _whole_numbers(arrays["rows"])
        occupied = _indices(arrays["at"], size) if is_sparse else None
        filled = {
            name: _filled(arrays[name], occupied, size).reshape(n_classes, n_cells, grid.n_nodes)
            for name in ("masses", "squares")
            if name == "masses" or name in arrays
        }
    except (KeyError, TypeError, IndexError, ValueError, RecursionError, OverflowError):
        raise ValueError("These arrays were not written by GroupHistograms.to_arrays.") from None
    return HistogramParts(grid, groups, filled["masses"], filled.get("squares"), rows, members)


def _indices(values: Any, size: int) -> NDArray[np.int64]:
    """Return distinct indices below a size."""
    if np.size(values) > size:
        raise ValueError
    indices = _whole_numbers(values)
    if np.any((indices < 0) | (indices >= size)) or np.unique(indices).size < indices.size:
        raise ValueError
    return indices


def _filled(values: Any, indices: NDArray[np.int64] | None, size: int) -> NDArray[np.float64]:
    """Return an array with values at these indices and zeros elsewhere; None stands for all indices."""
    if indices is None:
        if np.asarray(values).dtype != np.float64:
            raise ValueError
        return _weights(values, size)
    filled = np.zeros(size)
    filled[indices] = _weights(values, indices.size)
    return filled


def _explicit(grid: Grid, nodes: Any) -> Grid:
    """Return a grid with these nodes, which must fit its range and its number of bins."""
    positions = np.asarray(nodes, dtype=np.float64)
    if positions.shape != (grid.n_nodes,):
        raise ValueError
    return Grid(grid.low, grid.high, grid.n_bins, tuple(positions.tolist()))


def _whole_numbers(values: Any) -> NDArray[np.int64]:
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size) or np.any(numbers < 0):
        raise ValueError
    return numbers.astype(np.int64)


def _weights(values: Any, size: int) -> NDArray[np.float64]:
    if np.shape(values) != (size,):
        raise ValueError
    weights = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError
    return weights
