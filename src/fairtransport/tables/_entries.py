"""The group-by over groups and bins of the score, on the engine that holds the table, and its small result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._validation import OTHER_RANGES
from fairtransport.histograms import SLACK, Grid
from fairtransport.tables._engines import HIGHEST, choose_code, code_missing, collect, sum_partitions
from fairtransport.tables.column_roles import column_quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.tables.column_roles import Columns

# Bins for scores without known bounds: found from quantiles of the column, counted on the engine.

_N_RANGES = 24
_TAILS = (1 / 64, 1 / 256, 1 / 1024, 1 / 8192)  # shares of the rows beyond further quantiles, on both sides
_BELOW_ONE = 1 - 1e-12  # the highest score of a range is in its last bin


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Equal bins between ascending points."""

    points: NDArray[np.float64]
    bins_each: int

    @property
    def low(self) -> float:
        """The lowest score."""
        return float(self.points[0])

    @property
    def high(self) -> float:
        """The highest score."""
        return float(self.points[-1])

    def bin_of(self, score: nw.Expr) -> nw.Expr:
        """Return the number of the bin of scores within the range; that of other scores is arbitrary."""
        number = nw.lit(0, nw.Int64)
        for index, (low, high) in enumerate(pairwise(self.points.tolist())):
            scale = self.bins_each / (high - low) * _BELOW_ONE
            within = nw.when((score >= low) & (score <= high)).then(score).otherwise(nw.lit(low))
            place = ((within - low) * scale).floor().cast(nw.Int64) + (index * self.bins_each + 1)
            number = nw.when(score > low).then(place).otherwise(number)
        return number


def find_score_bins(
    table: nw.LazyFrame[Any], key: str, n_bins: int, *, extra: Sequence[float] = ()
) -> ScoreBins | None:
    """Find bins for the finite scores of a column; None where it has none."""
    tails = np.array(_TAILS)
    levels = np.unique(np.concatenate([np.arange(1, _N_RANGES) / _N_RANGES, tails, 1 - tails]))
    found = column_quantiles(table, key, levels)
    if found is None:
        return None
    points = np.unique([*found.tolist(), *(cut for cut in extra if found[0] < cut < found[-1])])
    return ScoreBins(points, max(1, n_bins // max(1, points.size - 1)))


#: Largest number of rows that a group-by may return: about a gigabyte.
MOST_ENTRIES = 1 << 24

# Codes of rows without a node.
_NO_SCORE, _OUTSIDE, _NO_WEIGHT, _BAD_WEIGHT, _NO_LABEL, _BAD_LABEL = -1, -2, -3, -4, -5, -6


def count_rows(
    table: nw.LazyFrame[Any],
    columns: Columns,
    grid: Grid | None,
    *,
    outcome: str | None = None,
    n_bins: int,
    nodes: Sequence[float] = (),
) -> tuple[Entries, Grid]:
    """Count rows by group and node."""
    if grid is not None or outcome is None:
        unit = grid or Grid(n_bins=n_bins)
        entries = Entries.of(_group(table, columns, unit, outcome))
        if grid is not None or not entries.n_outside:
            return entries, unit
    return _count_anywhere(table, columns, outcome, n_bins=n_bins, nodes=nodes)


def _count_anywhere(
    table: nw.LazyFrame[Any], columns: Columns, outcome: str | None, *, n_bins: int, nodes: Sequence[float]
) -> tuple[Entries, Grid]:
    """Count scores without known bounds; the nodes are the largest scores of bins that have any."""
    bins = find_score_bins(table, columns.score, n_bins, extra=nodes)
    if bins is None:
        return Entries.of(_group(table, columns, Grid(), outcome)), Grid()
    entries = Entries.of(_group(table, columns, bins, outcome))
    if entries.highest is None:
        raise RuntimeError("The group-by has no largest scores.")
    counted = entries.nodes >= 0
    occupied, places = np.unique(entries.nodes[counted], return_inverse=True)
    if not occupied.size:
        return entries, Grid()
    highest = np.full(occupied.size, -np.inf)
    np.maximum.at(highest, places, entries.highest[counted])
    grid = Grid.covering(highest, extra=nodes)
    recoded = entries.nodes.copy()
    recoded[counted] = grid.place_checked(highest)[places]
    return replace(entries, nodes=recoded), grid


# ------------------------------------------------------------------------------------------------------ the group-by


def node_of(score: nw.Expr, grid: Grid) -> nw.Expr:
    """Return the node of scores within the range, as in `Grid`; the node of other scores is arbitrary."""
    within = nw.when((score >= grid.low) & (score <= grid.high)).then(score).otherwise(nw.lit(grid.low))
    return ((within - grid.low) * grid.scale - SLACK).ceil().cast(nw.Int64)


def _group(
    table: nw.LazyFrame[Any], columns: Columns, grid: Grid | ScoreBins, outcome: str | None = None
) -> nw.DataFrame[Any]:
    """Run the group-by and collect its result, which is small; ``outcome`` is the column of real-valued labels."""
    count = partial(_count_nodes, columns=columns, grid=grid, outcome=outcome)
    used = dict.fromkeys([*columns, *([] if outcome is None else [outcome])])
    counted = sum_partitions(table.select(*used), count, keys=[*columns.keys(), "node"])
    entries = collect(counted.head(MOST_ENTRIES + 1))
    if len(entries) > MOST_ENTRIES:
        raise ValueError(
            f"The group-by has more than {MOST_ENTRIES} combinations of group, stratum, label and bin. Give fewer bins "
            "(n_bins=), or fewer groups or strata."
        )
    return entries


def _count_nodes(
    table: nw.LazyFrame[Any], *, columns: Columns, grid: Grid | ScoreBins, outcome: str | None = None
) -> nw.LazyFrame[Any]:
    """Group by the keys and the node."""
    score = nw.col(columns.score).cast(nw.Float64)
    node = grid.bin_of(score) if isinstance(grid, ScoreBins) else node_of(score, grid)
    sums = []
    if outcome is not None:
        y = nw.col(outcome).cast(nw.Float64)
        known = choose_code((y == float("inf")) | (y == float("-inf")), _BAD_LABEL, node)
        node = code_missing(y, _NO_LABEL, known)
    keys = {key: nw.col(name) for key, name in columns.keys().items()}
    chosen = dict(keys)
    if columns.weight is not None:
        weight = nw.col(columns.weight).cast(nw.Float64)
        sound = choose_code((weight < 0) | (weight == float("inf")), _BAD_WEIGHT, node)
        node = code_missing(weight, _NO_WEIGHT, sound)
        chosen |= {"weights": weight, "squares": weight * weight}
        sums = [nw.col("weights").sum(), nw.col("squares").sum()]
    outside = choose_code((score < grid.low) | (score > grid.high), _OUTSIDE, node)
    chosen["node"] = code_missing(score, _NO_SCORE, outside)
    if isinstance(grid, ScoreBins):
        chosen[HIGHEST] = score
        sums.append(nw.col(HIGHEST).max())
    return table.select(**chosen).group_by(*keys, "node").agg(nw.len().alias("rows"), *sums)


# ------------------------------------------------------------------------------------------------------- the result


@dataclass(frozen=True, eq=False)
class Entries:
    """Result of the group-by: the keys, the node, the number of rows and their weights."""

    frame: nw.DataFrame[Any]
    nodes: NDArray[np.int64]
    rows: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    squares: NDArray[np.float64] | None
    highest: NDArray[np.float64] | None = None

    @property
    def n_outside(self) -> int:
        """Number of rows with a score outside the range."""
        return int(self.rows[self.nodes == _OUTSIDE].sum())

    @classmethod
    def of(cls, frame: nw.DataFrame[Any]) -> Entries:
        def read(name: str, kind: Any) -> NDArray[Any]:
            return to_array(frame[name]).astype(kind)

        sums = (read(name, np.float64) if name in frame.columns else None for name in ("weights", "squares", HIGHEST))
        return cls(frame, read("node", np.int64), read("rows", np.int64), *sums)

    def keys(self, prefix: str, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.frame[f"{prefix}{number}"].to_native() for number, name in enumerate(names)}

    def without(self, start: str) -> NDArray[np.bool_]:
        """Return which entries have a missing value in a key with this prefix."""
        missing = np.zeros(self.rows.size, dtype=np.bool_)
        for name in self.frame.columns:
            if name.startswith(start):
                key = self.frame[name]
                if key.null_count():
                    missing |= key.is_null().to_numpy().astype(np.bool_)
                if key.dtype.is_float():
                    missing |= key.is_nan().fill_null(value=True).to_numpy().astype(np.bool_)
        return missing

    def select(self, kept: NDArray[np.bool_]) -> Entries:
        if kept.all():
            return self
        weights, squares = (None if values is None else values[kept] for values in (self.weights, self.squares))
        return Entries(self.frame.filter(kept.tolist()), self.nodes[kept], self.rows[kept], weights, squares)


def to_array(column: nw.Series[Any]) -> NDArray[Any]:
    """Return numbers as an array; for pyarrow by DLPack, since `to_numpy` loads pandas."""
    if column.implementation.is_pyarrow() and not column.null_count():
        return np.from_dlpack(column.to_native().combine_chunks())
    return np.asarray(column.to_numpy())


def check_entries(entries: Entries, columns: Columns, grid: Grid) -> None:
    """Raise where the table has no rows, or scores, weights or labels that cannot be counted."""
    total = int(entries.rows.sum())
    if not total:
        raise ValueError("The table has no rows.")
    outside = f"values outside [{grid.low:g}, {grid.high:g}]. {OTHER_RANGES}"
    for code, column, problem in (
        (_OUTSIDE, columns.score, "infinite values; drop or replace them." if grid.positions else outside),
        (_BAD_LABEL, columns.label, "infinite labels; drop or replace them."),
        (_BAD_WEIGHT, columns.weight, "values that are negative or infinite; weights must be zero or more."),
    ):
        n_rows = int(entries.rows[entries.nodes == code].sum())
        if n_rows:
            raise ValueError(f"Column {column!r} has {n_rows} of {total} {problem}")


def set_rows_aside(entries: Entries, *, with_groups: bool) -> tuple[Entries, dict[str, int]]:
    """Return the entries that can be counted, and the number of the other rows by reason."""
    reasons = {"no score": entries.nodes == _NO_SCORE, "no weight": entries.nodes == _NO_WEIGHT}
    if with_groups:
        reasons["no group"] = entries.without("g")
    reasons["no label"] = entries.without("label") | (entries.nodes == _NO_LABEL)
    kept = np.ones(entries.rows.size, dtype=np.bool_)
    set_aside = {}
    for reason, affected in reasons.items():
        n_rows = int(entries.rows[kept & affected].sum())
        kept &= ~affected
        if n_rows:
            set_aside[reason] = n_rows
    if not kept.any():
        reasons_text = ", ".join(f"{n_rows} with {reason}" for reason, n_rows in set_aside.items())
        raise ValueError(f"No row of the table can be counted: {reasons_text}.")
    return entries.select(kept), set_aside
