"""The quantile maps of groups within strata, for conditional parity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import product
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport.groups import GroupPolicy, Groups, make_groups
from fairtransport.histograms import GroupHistograms
from fairtransport.repair.group_maps import UNIT, GroupMaps, map_sizes, move_scores
from fairtransport.strata import MOST_VALUES, Strata
from fairtransport.transport.line import QuantileMap

if TYPE_CHECKING:
    from fairtransport.repair.group_maps import CountedRows, MapOptions, ScoredRows


@dataclass(frozen=True, eq=False, repr=False)
class StratumMaps:
    r"""The full repair of each group within each stratum.

    Notes
    -----
    With n rows in a cell, its scores become

    .. math:: \lambda \, T_{\mathrm{cell}}(s) + (1 - \lambda) \, T_{\mathrm{group}}(s), \quad
              \lambda = \min(1, n / \mathrm{min\_size}).

    A cell without training rows uses the map of its group.
    """

    strata: Strata
    maps: tuple[QuantileMap, ...]
    rows_at_knots: tuple[Ints, ...]
    sizes: Ints
    min_size: int

    def __post_init__(self) -> None:
        n_strata, sizes = len(self.strata), self.sizes
        if sizes.ndim != 2 or len(sizes) != n_strata or np.any(sizes < 0) or self.min_size < 1:
            raise ValueError("Maps of strata need the rows of each stratum and group.")
        knots, rows = [carry.knots.size for carry in self.maps], [one.size for one in self.rows_at_knots]
        if knots != rows or len(knots) != sizes.size:
            raise ValueError("Maps of strata need a map, and the rows at its knots, for each stratum and group.")

    def __repr__(self) -> str:  # may appear in logs, so without scores
        return f"StratumMaps({self.sizes.shape[0]} strata of {self.sizes.shape[1]} groups)"

    @classmethod
    def from_rows(
        cls, parts: Sequence[ScoredRows | CountedRows], options: MapOptions, *, strata: Strata
    ) -> StratumMaps:
        """Return the maps of the rows of each stratum, which have the same groups."""
        maps: list[QuantileMap] = []
        rows_at_knots: list[Ints] = []
        sizes = np.zeros((len(parts), len(parts[0].groups)), dtype=np.int64)
        ends = np.array(options.score_range or UNIT)
        for part, in_part in zip(parts, sizes, strict=True):
            found, in_part[:] = None, map_sizes(part, options)
            if np.count_nonzero(in_part) > 1:
                try:
                    found = GroupMaps.from_rows(part, replace(options, own_maps=True))
                except ValueError:  # the group that is the target has no rows here
                    in_part[:] = 0
            # Where there is nothing to compare, there is nothing to change.
            maps += found.maps if found else [QuantileMap(ends, ends).prepare()] * in_part.size
            rows_at_knots += found.rows_at_knots if found else [np.zeros(2, dtype=np.int64)] * in_part.size
        return cls(
            strata.select(np.empty(0, dtype=np.int64)), tuple(maps), tuple(rows_at_knots), sizes, options.min_size
        )

    def identities(self, low: float, high: float) -> StratumMaps:
        """Return maps of the same cells that change no score within a range."""
        carry = QuantileMap(np.array([low, high]), np.array([low, high])).prepare()
        rows = tuple(np.repeat(size // 2, 2) for size in self.sizes.ravel())
        return replace(self, maps=(carry,) * len(rows), rows_at_knots=rows)

    @cached_property
    def shares(self) -> Floats:
        """Weight of each cell's own map: shape (n_strata, n_groups)."""
        return np.minimum(1.0, self.sizes / self.min_size)

    def move(
        self,
        scores: Floats,
        strata: Ints,
        groups: Ints,
        group_maps: Sequence[QuantileMap],
        amount: float,
        *,
        extrapolate: bool = False,
        n_threads: int = 1,
    ) -> Floats:
        """Return the repaired scores of rows of these strata and groups; see `move_scores`."""
        move = partial(move_scores, extrapolate=extrapolate, n_threads=n_threads)
        n_groups = self.sizes.shape[1]
        cells = (strata * n_groups + groups).astype(np.uint32)
        moved = move(scores, cells, self.maps, amount)
        share = self.shares.ravel()[cells]
        small = np.flatnonzero(share < 1.0)
        if small.size:
            codes = groups[small].astype(np.uint32)
            overall = move(scores[small], codes, group_maps, amount)
            moved[small] = share[small] * moved[small] + (1.0 - share[small]) * overall
        return moved


# Cells of a stratum and a group in counts: rows that were grouped by the columns of both.


@dataclass(frozen=True, eq=False)
class CountedCells:
    """Histograms of cells, apart: by group over all strata, and by group within each stratum."""

    groups: GroupHistograms
    strata: Strata
    within: tuple[GroupHistograms, ...]

    @classmethod
    def split(cls, cells: GroupHistograms, columns: Sequence[str]) -> CountedCells:
        """Split histograms of rows that were grouped by the columns of strata and of groups."""
        values = [label if isinstance(label, tuple) else (label,) for label in cells.groups.labels]
        table = dict(zip(cells.groups.columns, zip(*values, strict=True), strict=True))
        for name in columns:
            n_numbers = len({value for value in table[name] if _is_number(value)})
            if n_numbers > MOST_VALUES:
                raise ValueError(
                    f"Column {name!r} of the strata has {n_numbers} different numbers. Files and tables are repaired "
                    "within the values of a column, which are not cut at quantiles as those of audits and arrays are: "
                    "add a column of ranges."
                )
        policy = GroupPolicy(missing="group", max_groups=len(values))
        strata = make_groups({name: list(table[name]) for name in columns}, policy)
        groups = make_groups({name: list(column) for name, column in table.items() if name not in columns}, policy)
        in_cell = np.full((len(strata), len(groups)), -1)
        in_cell[strata.codes, groups.codes] = np.arange(len(values))
        nobody = np.empty(0, dtype=np.int64)
        parts = tuple(_select(cells, index, groups.select(nobody)) for index in in_cell)
        return cls(reduce(add, parts), Strata(strata.select(nobody), (None,) * len(columns)), parts)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, or the text of one: all values of CSV files are text."""
    if isinstance(value, bool) or value is None:
        return False
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _select(cells: GroupHistograms, index: Ints, groups: Groups) -> GroupHistograms:
    """Return the histograms of some cells as those of groups; the index of a cell without rows is -1."""

    def take(array: NDArray[Any], axis: int) -> NDArray[Any]:
        nothing = np.zeros_like(array.take([0], axis=axis))
        return np.concatenate((array, nothing), axis=axis).take(index, axis=axis)

    squares = None if cells.squares is None else take(cells.squares, 1)
    return replace(cells, groups=groups, masses=take(cells.masses, 1), squares=squares, rows=take(cells.rows, 0))


def cells_of(groups: Groups, strata: Strata | None) -> Groups:
    """Return the groups, or all cells of a stratum and a group, in columns of both; without rows."""
    if strata is None:
        return groups
    if any(cuts is not None for cuts in strata.cuts):
        raise ValueError("The strata of this repair are ranges of numbers; a table has a column for each stratum.")
    first, second = (
        [label if isinstance(label, tuple) else (label,) for label in one.labels] for one in (strata.cells, groups)
    )
    spec = {
        "labels": [[*one, *other] for one, other in product(first, second)],
        "columns": [*strata.columns, *groups.columns],
        "grouping": "crossed",
        "missing": "group",
    }
    return Groups.from_spec(spec)
