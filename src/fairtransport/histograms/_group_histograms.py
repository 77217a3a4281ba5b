"""Histograms of the groups' scores on a grid."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._validation import check_length, check_real, check_weights
from fairtransport.groups import GroupPolicy, Groups, pool_of, rows_of_groups
from fairtransport.histograms._grid import DEFAULT_BINS, Grid
from fairtransport.storage.schema import from_json
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import resolve_target

# Histograms as arrays, for files and checkpoints.

# Entries of histograms that are stored sparse, so that reading a small file needs little memory; larger ones are stored
# in full.
_MAX_SPARSE = 1 << 21
_MAX_GROUPS_PER_CELL = 8


def _read_arrays(arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the fields of the histograms that `to_arrays` stored; raise ValueError for any other arrays."""
    try:
        spec = from_json(str(arrays["spec"]).encode(), name="spec")
        grid = Grid.over(spec["range"], spec["n_bins"])
        if "nodes" in arrays:  # they must fit the range and the number of bins
            grid = replace(grid, positions=tuple(np.asarray(arrays["nodes"], dtype=np.float64).tolist()))
            _require(grid.positions)
        groups, n_classes = Groups.from_spec(spec["groups"]), spec["n_classes"]
        members = np.asarray(arrays["members"], dtype=np.bool_) if "members" in arrays else None
        n_cells = len(groups) if members is None else members.shape[1]
        shape = (n_classes, n_cells, grid.n_nodes)
        is_sparse = n_classes * max(n_cells, len(groups)) * grid.n_nodes <= _MAX_SPARSE
        # Before memory is allocated:
        _require(n_classes in (1, 2) and np.size(arrays["rows"]) == n_cells and is_sparse == ("at" in arrays))
        _require(is_sparse or len(groups) <= _MAX_GROUPS_PER_CELL * n_cells)
        rows, size = _whole_numbers(arrays["rows"]), math.prod(shape)
        if is_sparse:
            _require(np.size(arrays["at"]) <= size)
            occupied = _whole_numbers(arrays["at"])
            _require((occupied < size).all() and np.unique(occupied).size == occupied.size)
        filled: dict[str, Floats | None] = {"squares": None}
        for name in {"masses", "squares"} & {"masses", *arrays}:
            values = np.asarray(arrays[name])
            _require(values.shape == (occupied.size if is_sparse else size,))
            _require(is_sparse or values.dtype == np.float64)
            weights = values.astype(np.float64, copy=False)
            _require((np.isfinite(weights) & (weights >= 0)).all())
            full = np.zeros(size) if is_sparse else weights
            if is_sparse:
                full[occupied] = weights
            filled[name] = full.reshape(shape)
    except (KeyError, TypeError, IndexError, ValueError, RecursionError, OverflowError):
        raise ValueError("These arrays were not written by GroupHistograms.to_arrays.") from None
    return grid, groups, filled["masses"], filled["squares"], rows, members


def _require(condition: Any) -> None:
    if not condition:
        raise ValueError


def _whole_numbers(values: Any) -> Ints:
    numbers = np.asarray(values)
    _require(numbers.ndim == 1 and (numbers.dtype.kind in "iu" or not numbers.size) and (numbers >= 0).all())
    return numbers.astype(np.int64)


# Disparities of distributions on the nodes of a grid, and how far they may be from those of the rows.


@dataclass(frozen=True, eq=False, repr=False)
class GroupHistograms:
    """The weight of each group at each node of a grid: a summary whose size does not depend on the number of rows.

    Metrics are averages over thresholds in the range of the grid, so a distance is a share of that range. The error of
    a distance is at most ``grid.resolution``; see `Grid`.
    """

    grid: Grid
    groups: Groups
    masses: Floats
    squares: Floats | None
    rows: Ints
    members: Bools | None = None

    def __post_init__(self) -> None:
        n_cells = len(self.groups) if self.members is None else self.members.shape[1]
        shape = self.masses.shape
        fits = len(shape) == 3 and shape[0] in {1, 2} and shape[1:] == (n_cells, self.grid.n_nodes)
        if not fits or self.rows.shape != (n_cells,):
            raise ValueError(
                f"masses has shape {shape} and rows {self.rows.shape}; 1 or 2 classes, {n_cells} cells and "
                f"{self.grid.n_nodes} nodes are needed."
            )
        if self.squares is not None and self.squares.shape != shape:
            raise ValueError(f"squares has shape {self.squares.shape}, but masses has {shape}.")
        if self.members is not None and self.members.shape[0] != len(self.groups):
            raise ValueError(f"members has {self.members.shape[0]} rows for {len(self.groups)} groups.")

    def __repr__(self) -> str:
        return f"GroupHistograms({self.rows.sum()} rows in {len(self.groups)} groups at {self.grid.n_nodes} nodes)"

    @classmethod
    def from_cells(
        cls,
        grid: Grid,
        groups: Groups,
        *,
        cells: ArrayLike,
        nodes: ArrayLike,
        masses: ArrayLike,
        squares: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        members: Bools | None = None,
    ) -> Self:
        """Return the histograms of the results of a group-by over (cell, node[, label])."""
        n_cells = len(groups) if members is None else members.shape[1]
        shape = (1 if labels is None else 2, n_cells, grid.n_nodes)
        classes = 0 if labels is None else np.asarray(labels, dtype=np.int64)
        flat_indices = np.ravel_multi_index(
            np.broadcast_arrays(classes, np.asarray(cells, dtype=np.int64), np.asarray(nodes, dtype=np.int64)), shape
        )

        def add(values: ArrayLike) -> Floats:
            weights = np.asarray(values, dtype=np.float64)
            sums: Floats = np.bincount(flat_indices, weights, math.prod(shape)).astype(np.float64)
            return sums.reshape(shape)

        summed = add(masses)
        row_counts = summed if rows is None else add(rows)
        return cls(
            grid,
            groups,
            summed,
            None if squares is None else add(squares),
            np.rint(row_counts.sum(axis=(0, 2))).astype(np.int64),
            members,
        )

    def __add__(self, other: object) -> GroupHistograms:
        if not isinstance(other, GroupHistograms):
            return NotImplemented
        ours, theirs = self.members, other.members
        same_cells = ours is theirs or (ours is not None and theirs is not None and np.array_equal(ours, theirs))
        same_groups = (self.groups.labels, self.groups.columns) == (other.groups.labels, other.groups.columns)
        if not (same_cells and same_groups and self.grid == other.grid and self.masses.shape == other.masses.shape):
            raise ValueError(
                f"{self!r} and {other!r} differ in grid, groups or labels and cannot be merged; use the same grid and "
                "the same groups (with_groups)."
            )
        unweighted = self.squares is None and other.squares is None
        squares = None if unweighted else self._squares + other._squares
        return replace(self, masses=self.masses + other.masses, squares=squares, rows=self.rows + other.rows)

    @property
    def _squares(self) -> Floats:
        return self.masses if self.squares is None else self.squares

    def forget(self, keep: float) -> GroupHistograms:
        """Return the histograms with every weight multiplied by ``keep``, to discount the past."""
        share = check_real(keep, name="keep", most=1.0)
        return replace(self, masses=share * self.masses, squares=share**2 * self._squares)

    def with_groups(self, groups: Groups) -> GroupHistograms:
        """Return the same histograms with additional, empty groups, in the order of ``groups``."""
        if self.members is not None:
            raise ValueError("Groups cannot be added to histograms of overlapping groups; count the rows again.")
        indices = [groups.index_of(label) for label in self.groups.labels]

        def expand(array: NDArray[Any], axis: int) -> NDArray[Any]:
            shape = (*array.shape[:axis], len(groups), *array.shape[axis + 1 :])
            expanded = np.zeros(shape, dtype=array.dtype)
            expanded[(slice(None),) * axis + (indices,)] = array
            return expanded

        return self._changed(lambda masses: expand(masses, 1), groups=groups, rows=expand(self.rows, 0))

    def _changed(self, change: Callable[[Floats], Floats], **fields: Any) -> GroupHistograms:
        """Return the histograms with changed masses and squares, and other fields."""
        squares = None if self.squares is None else change(self.squares)
        return replace(self, masses=change(self.masses), squares=squares, **fields)

    def filled(self) -> GroupHistograms:
        """Return the histograms of the groups with positive weight."""
        kept = np.flatnonzero(self.weights > 0)
        if kept.size == len(self.groups) or self.members is None:
            return self.only(kept)
        return replace(self, groups=self._labelled(kept), members=self.members[kept])

    def _labelled(self, kept: Ints) -> Groups:
        groups = self.groups
        labels, names = (tuple(every[index] for index in kept) for every in (groups.labels, groups.names))
        pools = tuple(pool for pool in groups.pools if pool in labels)
        pooled = tuple(label for label in groups.pooled if pool_of(label, groups.pools, groups.grouping) in pools)
        return replace(groups, labels=labels, names=names, pools=pools, pooled=pooled)

    def settle(self, small: str, min_size: int) -> GroupHistograms:
        """Return the histograms with small groups kept, pooled or dropped, as in `fairtransport.Groups.settle`.

        Dropped rows that belong to no other group are removed from the distribution of all rows as well.
        """
        settled = self._one_row_each().settle(small, min_size, sizes=self.group_rows)
        return self.regroup(settled)

    def regroup(self, settled: Groups) -> GroupHistograms:
        """Return the histograms of groups that `fairtransport.Groups.settle` returned for these or more groups."""
        if not settled.pooled and not settled.dropped:
            return self
        codes = settled.encode(self._one_row_each()).memberships[0]
        joins = codes == np.arange(len(settled))[:, None]  # the present groups of each settled group
        groups = settled.select(np.empty(0, dtype=np.int64))
        if self.members is None:
            rows = joins.astype(np.int64) @ self.rows
            return self._changed(lambda masses: np.einsum("gh,khn->kgn", joins, masses), groups=groups, rows=rows)
        members = (joins.astype(np.int64) @ self.members.astype(np.int64)) > 0
        kept = members.any(axis=0)
        return self._changed(
            lambda masses: masses[:, kept], groups=groups, rows=self.rows[kept], members=members[:, kept]
        )

    def only(self, groups: ArrayLike) -> GroupHistograms:
        """Return the histograms of some groups, by index; rows that belong to none of them are left out."""
        kept = np.isin(np.arange(len(self.groups)), np.asarray(groups))
        if kept.all():
            return self
        cells = kept if self.members is None else self.members[kept].any(axis=0)
        return self._changed(
            lambda masses: masses[:, cells],
            groups=self._labelled(np.flatnonzero(kept)),
            rows=self.rows[cells],
            members=None if self.members is None else self.members[kept][:, cells],
        )

    def _one_row_each(self) -> Groups:
        codes = np.arange(len(self.groups), dtype=np.int64)
        return replace(self.groups, memberships=(codes,) * len(self.groups.memberships))

    def coarsen(self, n_bins: int) -> GroupHistograms:
        """Return the histograms with neighbouring bins merged; distribution functions stay exact at the nodes left."""
        if self.grid.n_bins % n_bins and not self.grid.positions:
            raise ValueError(f"n_bins must be a divisor of {self.grid.n_bins}; got {n_bins}.")
        kept = np.arange(n_bins + 1) * self.grid.n_bins // n_bins
        starts = np.append(0, kept[:-1] + 1)  # a node holds the scores above the node before
        uniform = Grid(self.grid.low, self.grid.high, n_bins)
        grid = Grid.at(self.grid.nodes[kept]) if self.grid.positions else uniform
        return self._changed(lambda masses: np.add.reduceat(masses, starts, axis=2), grid=grid)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the histograms as arrays for ``numpy.savez`` or a checkpoint; see `from_arrays`."""
        grid, groups, masses = self.grid, self.groups, self.masses
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
        arrays = {"spec": np.array(json.dumps(spec)), "masses": masses.ravel()[stored], "rows": self.rows}
        if occupied is not None:
            arrays["at"] = occupied
        if grid.positions:
            arrays["nodes"] = grid.nodes
        if self.squares is not None:
            arrays["squares"] = self.squares.ravel()[stored]
        if self.members is not None:
            arrays["members"] = self.members
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the histograms that `to_arrays` stored; raise ValueError for any other arrays."""
        return cls(*_read_arrays(arrays))

    @property
    def has_labels(self) -> bool:
        """True if rows with label 0 and label 1 are counted separately."""
        return self.masses.shape[0] == 2

    @cached_property
    def by_class(self) -> Floats:
        """Weight at each node, by label and group: shape (n_classes, n_groups, n_nodes)."""
        return self.masses if self.members is None else np.einsum("gc,kcn->kgn", self.members, self.masses)

    @cached_property
    def squares_by_class(self) -> Floats:
        """Sum of the squared weights, shaped as `by_class`."""
        squares = self._squares
        return squares if self.members is None else np.einsum("gc,kcn->kgn", self.members, squares)

    @cached_property
    def by_group(self) -> Floats:
        """Weight at each node, by group: shape (n_groups, n_nodes)."""
        return self.by_class.sum(axis=0)

    @cached_property
    def everyone(self) -> Floats:
        """Weight of all rows at each node; rows of several groups count once."""
        return self.masses.sum(axis=(0, 1))

    @property
    def group_rows(self) -> Ints:
        """Number of rows of each group."""
        return self.rows if self.members is None else self.members.astype(np.int64) @ self.rows

    @property
    def weights(self) -> Floats:
        """Total weight of each group."""
        return self.by_group.sum(axis=1)

    @property
    def effective_sizes(self) -> Floats:
        """Effective sample size of each group (Kish): (sum of weights) ** 2 / sum of squared weights."""
        squares = self.squares_by_class.sum(axis=(0, 2))
        return np.divide(self.weights**2, squares, out=np.zeros_like(squares), where=squares > 0)

    @cached_property
    def cdf(self) -> Floats:
        """Share of each group's weight at or below each node: shape (n_groups, n_nodes). Exact at the nodes."""
        return _cumulative_shares(self.by_group)

    @cached_property
    def cdf_of_everyone(self) -> Floats:
        """Share of the weight of all rows at or below each node."""
        return _cumulative_shares(self.everyone[None])[0]

    def samples(self, *, unit: bool = False) -> list[Sample]:
        """Return the distribution of each group on the nodes (``unit``: rescaled to [0, 1]); every group needs rows."""
        return [self._sample(masses, unit=unit) for masses in self.by_group]

    def pooled_sample(self, members: Iterable[int]) -> Sample:
        """Return the pooled distribution of some groups that do not overlap."""
        return self._sample(self.by_group[list(members)].sum(axis=0), unit=False)

    def sample_of_everyone(self, *, unit: bool = False) -> Sample:
        """Return the distribution of all rows on the nodes."""
        return self._sample(self.everyone, unit=unit)

    def class_sample(self, label: int, group: int | None = None, *, unit: bool = False) -> Sample | None:
        """Return the distribution of the scores with label 0 or 1, of one group or of all rows; None without rows."""
        if not self.has_labels:
            raise ValueError("These histograms have no labels.")
        masses = self.masses[label].sum(axis=0) if group is None else self.by_class[label, group]
        return self._sample(masses, unit=unit) if masses.sum() > 0 else None

    def _sample(self, masses: Floats, *, unit: bool) -> Sample:
        occupied = np.flatnonzero(masses)
        if not occupied.size:
            raise ValueError("A group without rows has no distribution; drop it.")
        nodes = self.grid.unit_nodes if unit else self.grid.nodes
        return Sample.from_sorted(nodes[occupied], masses[occupied])

    def distances(self) -> Floats:
        """Return the Wasserstein-1 distances between groups, as shares of the range: shape (n_groups, n_groups)."""
        self._require_rows()
        steps = self.cdf[:, :-1]
        distances = np.array([(np.abs(steps - one) * self.grid.unit_widths).sum(axis=1) for one in steps])
        return (distances + distances.T) / 2

    def disparities(self, target: Any = "barycenter") -> dict[str, float]:
        """Return the three disparities, with errors of at most `bounds`."""
        self._require_rows()
        widths, steps = self.grid.unit_widths, np.sort(self.cdf[:, :-1], axis=0)  # of the groups at each node
        n_groups, half = len(steps), len(steps) // 2
        spread = ((steps[::-1][:half] - steps[:half]) * widths).sum(axis=1)
        to_everyone = float((np.abs(steps - self.cdf_of_everyone[:-1]) * widths).sum())
        if isinstance(target, str) and target in {"barycenter", "pooled"}:
            to_target = float(spread.sum()) if target == "barycenter" else to_everyone
        else:
            samples = self.samples(unit=True)
            resolved = resolve_target(
                self.unit_target(target),
                samples,
                self.weights,
                labels=self.groups.labels,
                names=self.groups.names,
                everyone=self.sample_of_everyone(unit=True),
            )
            to_target = sum(wasserstein(sample, resolved) for sample in samples)
        return {
            "wasserstein_disparity": to_target,
            "strong_demographic_disparity": to_everyone,
            "strong_pairwise_disparity": float((n_groups - 1 - 2 * np.arange(half)) @ spread),
        }

    def unit_target(self, target: Any) -> Any:
        """Return a target with its scores rescaled to [0, 1]; strings and labels are returned unchanged."""
        if isinstance(target, Sample):
            return Sample(self.grid.to_unit(target.values), target.levels)
        if isinstance(target, (np.ndarray, list)) and np.asarray(target).dtype.kind in "biuf":
            return self.grid.to_unit(self.grid.check(target, name="target"))
        return target

    def bounds(self) -> dict[str, float]:
        """Return the largest error of each disparity: the resolution times the number of distances in its sum.

        Where nodes are scores that occur, the error of a distance is at most the mean width of both groups' bins.
        """
        n_groups, step = len(self.by_group), self.grid.resolution
        if not self.grid.positions:
            to_target = to_everyone = n_groups * step
            pairwise = n_groups * (n_groups - 1) // 2 * step
        else:
            widths = np.append(0.0, self.grid.unit_widths)
            if self.squares is None:
                widths[self.everyone <= 1] = 0.0  # the only score in its bin is its node
            means = self.by_group / self.by_group.sum(axis=1)[:, None] @ widths
            to_target = float(means.sum() + n_groups * means.max())
            to_everyone = float(means.sum() + n_groups * (self.everyone @ widths / self.everyone.sum()))
            pairwise = float((n_groups - 1) * means.sum())
        return {
            "wasserstein_disparity": to_target,
            "strong_demographic_disparity": to_everyone,
            "strong_pairwise_disparity": pairwise,
        }

    def shares_above(self, thresholds: ArrayLike) -> Floats:
        """Return the share of each group's weight strictly above each threshold: shape (n_thresholds, n_groups).

        Thresholds are rounded down to nodes; shares are exact for thresholds on nodes.
        """
        cuts = self.grid.check(np.atleast_1d(np.asarray(thresholds, dtype=np.float64)), name="threshold")
        return 1.0 - self.cdf[:, self.grid.last_node_below(cuts)].T

    def _require_rows(self) -> None:
        empty = int(np.count_nonzero(~(self.weights > 0)))
        if empty:
            raise ValueError(f"{empty} of {len(self.groups)} groups have no rows or no weight; drop them.")


def _cumulative_shares(masses: Floats) -> Floats:
    """Return the cumulative shares of each row, the last exactly 1; all 0 for a row without weight."""
    sums = np.cumsum(masses, axis=1)
    return np.divide(sums, sums[:, -1:], out=np.zeros_like(sums), where=sums[:, -1:] > 0)


# Binning: rows or group-by results -> histograms.


def count_scores(
    scores: ArrayLike,
    y_true: ArrayLike | None = None,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    groups: GroupPolicy | None = None,
) -> GroupHistograms:
    """Count each group's scores at the nodes of a grid."""
    grid = Grid.over(range, n_bins)
    made, (scores, y_true, sample_weight) = rows_of_groups(
        sensitive_features, groups, scores, y_true, sample_weight, at_least=1
    )
    values = grid.check(scores)
    if made.n_rows != values.size:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {made.n_rows}.")
    weights = check_weights(sample_weight, size=values.size)
    labels = None
    if y_true is not None:
        labels = np.asarray(y_true)
        check_length(labels, size=values.size, name="y_true")
        n_others = int(np.count_nonzero((labels != 0) & (labels != 1)))
        if n_others:
            raise ValueError(f"y_true has {n_others} of {labels.size} labels that are neither 0 nor 1.")
    return count_entries(
        grid,
        made,
        nodes=grid.place_checked(values),
        masses=np.ones(values.size) if weights is None else weights,
        squares=None if weights is None else weights**2,
        rows=None if weights is None else np.ones(values.size),
        labels=labels,
    )


def count_entries(
    grid: Grid,
    groups: Groups,
    *,
    nodes: ArrayLike,
    masses: ArrayLike,
    squares: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> GroupHistograms:
    """Return the histograms of entries with known groups: rows, or the results of a group-by."""
    cells, members = _cells(groups)
    return GroupHistograms.from_cells(
        grid,
        groups.select(np.empty(0, dtype=np.int64)),  # labels and names alone: histograms contain no rows
        cells=cells,
        nodes=nodes,
        masses=masses,
        squares=squares,
        rows=rows,
        labels=labels,
        members=members,
    )


def _cells(groups: Groups) -> tuple[Ints, Bools | None]:
    """Return the cell of each row, and the cells of each group; None where every group is one cell."""
    if not groups.overlapping and groups.counts.sum() == groups.n_rows:
        return groups.codes, None
    # Rows of the same groups form a cell. One group at a time, to limit memory to a few columns.
    cells = np.zeros(groups.n_rows, dtype=np.int64)
    for rows in groups.rows:
        inside = np.zeros(groups.n_rows, dtype=np.int64)
        inside[rows] = 1
        cells = 2 * cells + inside
        present = np.flatnonzero(np.bincount(cells))  # renumber, so that codes stay small
        table = np.zeros(int(present[-1]) + 1, dtype=np.int64)
        table[present] = np.arange(present.size)
        cells = table[cells]
    n_cells = int(cells.max()) + 1
    members = np.zeros((len(groups), n_cells), dtype=np.bool_)
    for group, rows in enumerate(groups.rows):
        members[group, np.unique(cells[rows])] = True
    return cells, members


# Histograms on another grid: equally spaced nodes, for figures of scores without known bounds.

_TAIL = 0.005  # share of the scores on each side that may be left out of figures
_NEAR = 0.5  # of the range of the others: a tail that is no longer than this is shown
_MARGIN = 0.05


def display_range(histograms: GroupHistograms) -> tuple[float, float]:
    """Return the range of scores that figures show."""
    grid = histograms.grid
    if not grid.positions or not histograms.everyone.any():
        return grid.low, grid.high
    cdf = histograms.cdf_of_everyone
    occupied = np.flatnonzero(histograms.everyone)
    lowest, highest = (float(grid.nodes[index]) for index in (occupied[0], occupied[-1]))
    low, high = (float(grid.nodes[np.searchsorted(cdf, level)]) for level in (_TAIL, 1 - _TAIL))
    if not high > low:
        low, high = lowest, highest
    if not high > low:
        return grid.low, grid.high
    length = high - low
    start = lowest if low - lowest <= _NEAR * length else low - _MARGIN * length
    end = highest if highest - high <= _NEAR * length else high + _MARGIN * length
    return start, end


def display_points(histograms: GroupHistograms, n_points: int) -> Floats:
    """Return equally spaced scores over the range that figures show; see `display_range`."""
    if not histograms.grid.positions:
        return histograms.grid.from_unit(np.linspace(0, 1, n_points))
    return np.linspace(*display_range(histograms), n_points)  # it ends at the highest score, without rounding errors


def regrid(histograms: GroupHistograms, grid: Grid) -> GroupHistograms:
    """Return the histograms on another grid; scores outside its range are counted at its ends."""
    places = grid.place_checked(np.clip(histograms.grid.nodes, grid.low, grid.high))

    def move(masses: Floats) -> Floats:
        starts = np.flatnonzero(np.append(True, np.diff(places) > 0))
        moved = np.zeros((*masses.shape[:2], grid.n_nodes))
        moved[:, :, places[starts]] = np.add.reduceat(masses, starts, axis=2)
        return moved

    return histograms._changed(move, grid=grid)  # noqa: SLF001
