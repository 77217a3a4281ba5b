"""Counts of each group's scores at the nodes of a grid."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_real
from fairtransport.groups import Groups
from fairtransport.histograms._grid import Grid
from fairtransport.histograms.resampling import resample_masses
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

__all__ = ["GroupHistograms"]


_MOST_STORED = 1 << 27  # numbers, 1 GiB, that histograms from a file may take


@dataclass(frozen=True, eq=False, repr=False)
class GroupHistograms:
    r"""How much weight each group has at each node of a grid; no one's row, and a size that does not grow with rows.

    Made by `count_scores` from arrays and by `from_cells` from a group-by.

    Parameters
    ----------
    grid : Grid
    groups : Groups
        Labels and names; its rows are not looked at.
    masses : array of shape (n_classes, n_cells, n_nodes)
        Sum of the weights, the number of rows where no weights were given. One class, or two: rows of label 0 and
        rows of label 1.
    squares : array of the same shape, or None
        Sum of the squared weights; None where every weight is 1.
    rows : array of shape (n_cells,)
        Rows counted, whatever their weight; forgetting leaves it.
    members : array of bool of shape (n_groups, n_cells), or None
        Which cells make up a group. A cell is a set of rows that belong to the same groups: where groups do not
        overlap each group is its own cell (None).

    Notes
    -----
    Metrics are averages over thresholds in the range of the grid, so a distance is a share of that range, as the
    paper has it for [0, 1]. Each distance is within ``grid.resolution`` of the exact one; see `Grid`.

    Examples
    --------
    >>> from fairtransport.histograms import count_scores
    >>> counted = count_scores([0.25, 0.5, 1.0], sensitive_features=["a", "a", "b"], n_bins=4)
    >>> counted
    GroupHistograms(3 rows in 2 groups at 5 nodes)
    >>> counted.by_group
    array([[0., 1., 1., 0., 0.],
           [0., 0., 0., 0., 1.]])
    >>> (counted + counted).disparities()["strong_pairwise_disparity"]
    0.625
    """

    grid: Grid
    groups: Groups
    masses: NDArray[np.float64]
    squares: NDArray[np.float64] | None
    rows: NDArray[np.int64]
    members: NDArray[np.bool_] | None = None

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
        members: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Return the histograms of what a group-by over (cell, node[, label]) gave, one entry for each combination.

        Parameters
        ----------
        grid : Grid
        groups : Groups
            As `Groups.from_spec` makes them from labels and column names.
        cells, nodes : array-like of int of shape (n_entries,)
            Position of the cell (of the group, where ``members`` is None) and of the node.
        masses : array-like of shape (n_entries,)
            Number of rows, or sum of their weights.
        squares : array-like of shape (n_entries,), optional
            Sum of the squared weights, where there are weights.
        rows : array-like of shape (n_entries,), optional
            Number of rows; ``masses`` by default.
        labels : array-like of shape (n_entries,), optional
            0 or 1.
        members : array of bool of shape (n_groups, n_cells), optional
            Which cells make up a group, where groups overlap.

        Returns
        -------
        GroupHistograms
            Entries of one place are added.

        Examples
        --------
        >>> from fairtransport import make_groups
        >>> groups = make_groups(["a", "b"])
        >>> counted = GroupHistograms.from_cells(Grid(n_bins=2), groups, cells=[0, 1], nodes=[0, 2], masses=[7, 3])
        >>> counted.by_group.tolist()
        [[7.0, 0.0, 0.0], [0.0, 0.0, 3.0]]
        """
        n_cells = len(groups) if members is None else members.shape[1]
        shape = (1 if labels is None else 2, n_cells, grid.n_nodes)
        classes = 0 if labels is None else np.asarray(labels, dtype=np.int64)
        at = np.ravel_multi_index(
            np.broadcast_arrays(classes, np.asarray(cells, dtype=np.int64), np.asarray(nodes, dtype=np.int64)), shape
        )

        def add(values: ArrayLike) -> NDArray[np.float64]:
            weights = np.asarray(values, dtype=np.float64)
            flat: NDArray[np.float64] = np.bincount(at, weights=weights, minlength=math.prod(shape)).astype(np.float64)
            return flat.reshape(shape)

        counted = add(masses)
        of_rows = counted if rows is None else add(rows)
        return cls(
            grid,
            groups,
            counted,
            None if squares is None else add(squares),
            np.rint(of_rows.sum(axis=(0, 2))).astype(np.int64),
            members,
        )

    # ------------------------------------------------------------------------------ merge, forget, resample, store

    def __add__(self, other: object) -> GroupHistograms:
        if not isinstance(other, GroupHistograms):
            return NotImplemented
        if not self._alike(other):
            raise ValueError(
                f"{self!r} and {other!r} differ in grid, groups or labels and cannot be merged; count both on one grid "
                "for the same groups (with_groups)."
            )
        squares = None
        if self.squares is not None or other.squares is not None:
            squares = self._squares + other._squares
        return replace(self, masses=self.masses + other.masses, squares=squares, rows=self.rows + other.rows)

    def _alike(self, other: GroupHistograms) -> bool:
        ours, theirs = self.members, other.members
        same_cells = ours is theirs or (ours is not None and theirs is not None and np.array_equal(ours, theirs))
        return (
            self.grid == other.grid
            and (self.groups.labels, self.groups.columns) == (other.groups.labels, other.groups.columns)
            and self.masses.shape == other.masses.shape
            and same_cells
        )

    @property
    def _squares(self) -> NDArray[np.float64]:
        return self.masses if self.squares is None else self.squares

    def forget(self, keep: float) -> GroupHistograms:
        """Return the histograms with every weight multiplied by ``keep``, in [0, 1]: what came before counts less.

        Examples
        --------
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.1, 0.2, 0.9], sensitive_features=["a", "a", "b"])
        >>> half = counted.forget(0.5)
        >>> half.weights.tolist(), half.effective_sizes.tolist()
        ([1.0, 0.5], [2.0, 1.0])
        >>> (half + counted).effective_sizes.tolist()  # 3 ** 2 / (2 / 4 + 2)
        [3.6, 1.8]
        """
        share = check_real(keep, name="keep", most=1.0)
        return replace(self, masses=share * self.masses, squares=share**2 * self._squares)

    def with_groups(self, groups: Groups) -> GroupHistograms:
        """Return the same counts with room for more groups, in the order of ``groups``; groups may not overlap.

        Examples
        --------
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.0, 1.0], sensitive_features=["b", "c"], n_bins=1)
        >>> from fairtransport import make_groups
        >>> counted.with_groups(make_groups(["a", "b", "c"])).by_group.tolist()
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
        """
        if self.members is not None:
            raise ValueError("Histograms of overlapping groups cannot take up further groups; count again.")
        places = [groups.index_of(label) for label in self.groups.labels]

        def spread(array: NDArray[Any], axis: int) -> NDArray[Any]:
            shape = (*array.shape[:axis], len(groups), *array.shape[axis + 1 :])
            wider = np.zeros(shape, dtype=array.dtype)
            wider[(slice(None),) * axis + (places,)] = array
            return wider

        squares = None if self.squares is None else spread(self.squares, 1)
        return replace(self, groups=groups, masses=spread(self.masses, 1), squares=squares, rows=spread(self.rows, 0))

    def filled(self) -> GroupHistograms:
        """Return the histograms of those groups that have any weight.

        Examples
        --------
        >>> from fairtransport import make_groups
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.0, 1.0], sensitive_features=["b", "c"]).with_groups(make_groups(["a", "b", "c"]))
        >>> counted.filled().groups.names
        ('b', 'c')
        """
        places = np.flatnonzero(self.weights > 0)
        if places.size == len(self.groups):
            return self
        labels = tuple(self.groups.labels[place] for place in places)
        groups = replace(self.groups, labels=labels, names=tuple(self.groups.names[place] for place in places))
        if self.members is not None:
            return replace(self, groups=groups, members=self.members[places])
        squares = None if self.squares is None else self.squares[:, places]
        return replace(self, groups=groups, masses=self.masses[:, places], squares=squares, rows=self.rows[places])

    def settle(self, small_groups: str, min_group_size: int) -> GroupHistograms:
        """Return the histograms with small groups kept, pooled or dropped, as `fairtransport.Groups.settle` does it.

        Rows that are then in no group are no longer counted among everyone.

        Examples
        --------
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.0, 0.0, 1.0, 1.0], sensitive_features=["a", "a", "b", "c"], n_bins=1)
        >>> counted.settle("pool", 2).by_group.tolist(), counted.settle("drop", 2).by_group.tolist()
        ([[2.0, 0.0], [0.0, 2.0]], [[2.0, 0.0]])
        """
        settled = self._one_row_each().settle(small_groups, min_group_size, sizes=self.group_rows)
        return self.regroup(settled)

    def regroup(self, settled: Groups) -> GroupHistograms:
        """Return the histograms for groups that `fairtransport.Groups.settle` made of these, or of more than these."""
        if not settled.pooled and not settled.dropped:
            return self
        codes = settled.encode(self._one_row_each()).memberships[0]
        joins = codes == np.arange(len(settled))[:, None]  # which of these groups make up each settled one
        groups = settled.select(np.empty(0, dtype=np.int64))
        if self.members is None:
            masses = np.einsum("gh,khn->kgn", joins, self.masses)
            squares = None if self.squares is None else np.einsum("gh,khn->kgn", joins, self.squares)
            rows = joins.astype(np.int64) @ self.rows
            return replace(self, groups=groups, masses=masses, squares=squares, rows=rows)
        members = (joins.astype(np.int64) @ self.members.astype(np.int64)) > 0
        kept = members.any(axis=0)
        squares = None if self.squares is None else self.squares[:, kept]
        rows = self.rows[kept]
        return replace(
            self, groups=groups, masses=self.masses[:, kept], squares=squares, rows=rows, members=members[:, kept]
        )

    def _one_row_each(self) -> Groups:
        codes = np.arange(len(self.groups), dtype=np.int64)
        return replace(self.groups, memberships=(codes,) * len(self.groups.memberships))

    def resample(self, rng: np.random.Generator) -> GroupHistograms:
        """Return histograms as new rows from the same source would give them; see `resample_masses`.

        Examples
        --------
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.1, 0.2, 0.9], sensitive_features=["a", "a", "b"])
        >>> counted.resample(np.random.default_rng(0)).weights.tolist()
        [2.0, 1.0]
        """
        squares = self.squares
        flat = None if squares is None else _by_cell(squares)
        drawn = resample_masses(_by_cell(self.masses), flat, rng, 1, fixed_sizes=self.members is None)[0]
        n_classes, n_cells, n_nodes = self.masses.shape
        masses = drawn.reshape(n_cells, n_classes, n_nodes).swapaxes(0, 1)
        if squares is not None:  # a row drawn twice brings its square twice
            squares = squares * np.divide(masses, self.masses, out=np.zeros_like(masses), where=self.masses > 0)
        return replace(self, masses=np.ascontiguousarray(masses), squares=squares)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays, for ``numpy.savez`` or a checkpoint; `from_arrays` reads them. Empty nodes are left out.

        Examples
        --------
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.1, 0.9], sensitive_features=["a", "b"])
        >>> again = GroupHistograms.from_arrays(counted.to_arrays())
        >>> np.array_equal(again.masses, counted.masses), again.groups.labels
        (True, ('a', 'b'))
        """
        at = np.flatnonzero(self.masses)
        spec = {
            "range": [self.grid.low, self.grid.high],
            "n_bins": self.grid.n_bins,
            "n_classes": self.masses.shape[0],
            "groups": self.groups.to_spec(),
        }
        arrays = {"spec": np.array(json.dumps(spec)), "at": at, "masses": self.masses.ravel()[at], "rows": self.rows}
        if self.squares is not None:
            arrays["squares"] = self.squares.ravel()[at]
        if self.members is not None:
            arrays["members"] = self.members
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the histograms that `to_arrays` gave away; arrays that it did not give are refused."""
        try:
            spec = json.loads(str(arrays["spec"]))
            grid = Grid.over(spec["range"], spec["n_bins"])
            groups, n_classes = Groups.from_spec(spec["groups"]), spec["n_classes"]
            rows, at = (_whole_numbers(arrays[name]) for name in ("rows", "at"))
            members = np.asarray(arrays["members"], dtype=np.bool_) if "members" in arrays else None
            n_cells = len(groups) if members is None else members.shape[1]
            size = n_classes * n_cells * grid.n_nodes
            if n_classes not in (1, 2) or rows.size != n_cells or size > _MOST_STORED:
                raise ValueError  # noqa: TRY301 - before room is made for it
            if np.any((at < 0) | (at >= size)) or np.unique(at).size < at.size:
                raise ValueError  # noqa: TRY301
            filled = {}
            for name in ("masses", "squares"):
                if name == "masses" or name in arrays:
                    filled[name] = np.zeros((n_classes, n_cells, grid.n_nodes))
                    filled[name].ravel()[at] = _weights(arrays[name], at.size)
        except (KeyError, TypeError, IndexError, ValueError, RecursionError, OverflowError):
            raise ValueError("These arrays are not those of GroupHistograms.to_arrays.") from None
        return cls(grid, groups, filled["masses"], filled.get("squares"), rows, members)

    # ----------------------------------------------------------------------------------------------- what is in them

    @property
    def has_labels(self) -> bool:
        """Whether rows of label 0 and label 1 are counted apart."""
        return self.masses.shape[0] == 2

    @cached_property
    def by_class(self) -> NDArray[np.float64]:
        """Weight at each node, by label and group: shape (n_classes, n_groups, n_nodes)."""
        return self.masses if self.members is None else np.einsum("gc,kcn->kgn", self.members, self.masses)

    @cached_property
    def squares_by_class(self) -> NDArray[np.float64]:
        """Sum of the squared weights, shaped as `by_class`."""
        squares = self._squares
        return squares if self.members is None else np.einsum("gc,kcn->kgn", self.members, squares)

    @cached_property
    def by_group(self) -> NDArray[np.float64]:
        """Weight at each node, by group: shape (n_groups, n_nodes)."""
        return self.by_class.sum(axis=0)

    @cached_property
    def everyone(self) -> NDArray[np.float64]:
        """Weight of all rows at each node; a row of several groups counts once."""
        return self.masses.sum(axis=(0, 1))

    @property
    def group_rows(self) -> NDArray[np.int64]:
        """Rows of each group."""
        return self.rows if self.members is None else self.members.astype(np.int64) @ self.rows

    @property
    def weights(self) -> NDArray[np.float64]:
        """Total weight of each group."""
        return self.by_group.sum(axis=1)

    @property
    def effective_sizes(self) -> NDArray[np.float64]:
        """Rows of equal weight that would tell as much (Kish): (sum of weights) ** 2 / sum of squares."""
        squares = self.squares_by_class.sum(axis=(0, 2))
        return np.divide(self.weights**2, squares, out=np.zeros_like(squares), where=squares > 0)

    @cached_property
    def cdf(self) -> NDArray[np.float64]:
        """Share of each group's weight at or below each node: shape (n_groups, n_nodes). Exact at the nodes."""
        return _cumulative_shares(self.by_group)

    @cached_property
    def cdf_of_everyone(self) -> NDArray[np.float64]:
        """Share of everyone's weight at or below each node."""
        return _cumulative_shares(self.everyone[None])[0]

    def samples(self, *, unit: bool = False) -> list[Sample]:
        """Return each group's distribution on the nodes (``unit``: as shares of the range); every group needs rows."""
        return [self._sample(held, unit=unit) for held in self.by_group]

    def pooled_sample(self, members: Iterable[int]) -> Sample:
        """Return the distribution of the rows of some groups together, which may not overlap.

        Examples
        --------
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.25, 0.5, 1.0], sensitive_features=["a", "b", "c"], n_bins=4)
        >>> counted.pooled_sample([0, 2]).values
        array([0.25, 1.  ])
        """
        return self._sample(self.by_group[list(members)].sum(axis=0), unit=False)

    def sample_of_everyone(self, *, unit: bool = False) -> Sample:
        """Return the distribution of all rows on the nodes."""
        return self._sample(self.everyone, unit=unit)

    def class_sample(self, label: int, group: int | None = None, *, unit: bool = False) -> Sample | None:
        """Return the scores of label 0 or 1, of one group or of everyone; None where there are none."""
        if not self.has_labels:
            raise ValueError("These histograms were counted without labels.")
        held = self.masses[label].sum(axis=0) if group is None else self.by_class[label, group]
        return self._sample(held, unit=unit) if held.sum() > 0 else None

    def _sample(self, held: NDArray[np.float64], *, unit: bool) -> Sample:
        at = np.flatnonzero(held)
        if not at.size:
            raise ValueError("A group without rows has no distribution; leave it out.")
        nodes = np.arange(self.grid.n_nodes) / self.grid.n_bins if unit else self.grid.nodes
        return Sample.from_sorted(nodes[at], held[at])

    # ------------------------------------------------------------------------------------------------------- metrics

    def distances(self) -> NDArray[np.float64]:
        """Wasserstein-1 distance between every two groups, as a share of the range: shape (n_groups, n_groups)."""
        self._require_rows()
        cdf = self.cdf[:, :-1]
        found = np.array([np.abs(cdf - one).sum(axis=1) for one in cdf]) / self.grid.n_bins
        return (found + found.T) / 2

    def disparities(self, target: Any = "barycenter") -> dict[str, float]:
        """Return the three disparities, each within ``bounds()`` of the exact ones.

        Parameters
        ----------
        target : str, label, array-like or Sample, default "barycenter"
            As in `fairtransport.metrics.wasserstein_disparity`; scores in units of the grid's range.

        Returns
        -------
        dict of str to float
            ``wasserstein_disparity``, ``strong_demographic_disparity`` and ``strong_pairwise_disparity``.
        """
        self._require_rows()
        cdf = np.sort(self.cdf[:, :-1], axis=0)
        n_groups, half = len(cdf), len(cdf) // 2
        spread = (cdf[::-1][:half] - cdf[:half]).sum(axis=1) / self.grid.n_bins
        to_everyone = float(np.abs(cdf - self.cdf_of_everyone[:-1]).sum()) / self.grid.n_bins
        if isinstance(target, str) and target == "barycenter":
            to_target = float(spread.sum())
        elif isinstance(target, str) and target == "pooled":
            to_target = to_everyone
        else:
            samples = self.samples(unit=True)
            aim = resolve_target(
                self.unit_target(target),
                samples,
                self.weights,
                labels=self.groups.labels,
                names=self.groups.names,
                everyone=self.sample_of_everyone(unit=True),
            )
            to_target = sum(wasserstein(sample, aim) for sample in samples)
        return {
            "wasserstein_disparity": to_target,
            "strong_demographic_disparity": to_everyone,
            "strong_pairwise_disparity": float((n_groups - 1 - 2 * np.arange(half)) @ spread),
        }

    def unit_target(self, target: Any) -> Any:
        """Return scores that are given as a target as shares of the range; words and labels as they are."""
        if isinstance(target, Sample):
            return Sample(self.grid.to_unit(target.values), target.levels)
        if isinstance(target, (np.ndarray, list)) and np.asarray(target).dtype.kind in "biuf":
            return self.grid.to_unit(self.grid.check(target, name="target"))
        return target

    def bounds(self) -> dict[str, float]:
        """By how much each disparity may differ from the exact one: the resolution for each distance in its sum."""
        n_groups, step = len(self.groups), self.grid.resolution
        return {
            "wasserstein_disparity": n_groups * step,
            "strong_demographic_disparity": n_groups * step,
            "strong_pairwise_disparity": n_groups * (n_groups - 1) // 2 * step,
        }

    def shares_above(self, thresholds: ArrayLike) -> NDArray[np.float64]:
        """Share of each group's weight strictly above each threshold: shape (n_thresholds, n_groups).

        Exact for thresholds on nodes; between nodes, the threshold is moved down to the node below.

        Examples
        --------
        >>> from fairtransport.histograms import count_scores
        >>> counted = count_scores([0.25, 0.5, 1.0], sensitive_features=["a", "a", "b"])
        >>> counted.shares_above([0.25, 0.5])
        array([[0.5, 1. ],
               [0. , 1. ]])
        """
        return 1.0 - self.cdf[:, self._below(thresholds)].T

    def _below(self, thresholds: ArrayLike) -> NDArray[np.int64]:
        cuts = np.atleast_1d(self.grid.check(np.atleast_1d(np.asarray(thresholds, dtype=np.float64)), name="threshold"))
        return np.floor((cuts - self.grid.low) * self.grid.scale + 1e-9).astype(np.int64)

    def _require_rows(self) -> None:
        empty = int(np.count_nonzero(~(self.weights > 0)))
        if empty:
            raise ValueError(f"{empty} of {len(self.groups)} groups have no rows or no weight; leave them out.")


def _by_cell(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Classes side by side in each cell, because a row's label is drawn along with its score."""
    n_classes, n_cells, n_nodes = array.shape
    return array.swapaxes(0, 1).reshape(n_cells, n_classes * n_nodes)


def _cumulative_shares(held: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative shares of each row, the last exactly 1; 0 throughout for a row without weight."""
    total = np.cumsum(held, axis=1)
    return np.divide(total, total[:, -1:], out=np.zeros_like(total), where=total[:, -1:] > 0)


def _whole_numbers(values: Any) -> NDArray[np.int64]:
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size) or np.any(numbers < 0):
        raise ValueError
    return numbers.astype(np.int64)


def _weights(values: Any, size: int) -> NDArray[np.float64]:
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (size,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError
    return weights
