"""Histograms of the scores in a table, by one group-by on the engine that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._labels import positive_label
from fairtransport._validation import OTHER_RANGES, check_choice, check_count
from fairtransport.groups import make_groups
from fairtransport.histograms import DEFAULT_BINS, SLACK, Grid, count_entries
from fairtransport.strata import Strata
from fairtransport.tables._dask_partitions import sum_partitions
from fairtransport.tables._engines import choose_code, collect
from fairtransport.tables._strata_cuts import find_cuts, range_of
from fairtransport.tables.column_roles import Columns, check_columns, check_group_count, open_table, refuse_identifiers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms
    from fairtransport.tables._engines import NumberedTable

__all__ = ["TableCounts", "count_table", "node_of"]

#: Largest number of rows that a group-by may return: about a gigabyte.
MOST_ENTRIES = 1 << 24
#: Largest number of strata where columns of numbers are cut, as in `fairtransport.strata.make_strata`.
MOST_STRATA = 1000

# Codes of rows without a node.
_NO_SCORE, _OUTSIDE, _NO_WEIGHT, _BAD_WEIGHT = -1, -2, -3, -4


@dataclass(frozen=True, eq=False)
class TableCounts:
    """Histograms of a table, as `count_table` returns them.

    Parameters
    ----------
    histograms : GroupHistograms
    strata : mapping of str to GroupHistograms
        The same rows by stratum, without the groups that have no rows there; each is computed on access. Empty without
        ``strata``.
    set_aside : dict of str to int
        Rows that were not counted, by reason; the first one where a row has several.
    weight : str or None
        Column of the weights.
    strata_columns : tuple of str
        Columns of the strata.
    cuts : dict of str to tuple of float
        Points at which columns of the strata are cut, where ``cut_strata``.
    """

    histograms: GroupHistograms
    strata: Mapping[str, GroupHistograms]
    set_aside: dict[str, int]
    weight: str | None = None
    strata_columns: tuple[str, ...] = ()
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows, including those that were set aside."""
        return int(self.histograms.rows.sum()) + sum(self.set_aside.values())


def count_table(
    frame: Any,
    *,
    score: str,
    sensitive_features: str | Sequence[str],
    label: str | None = None,
    strata: str | Sequence[str] | None = None,
    cut_strata: bool = False,
    weight: str | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    grouping: str = "crossed",
    missing: str = "set_aside",
    max_groups: int = 200,
    pos_label: Any = None,
) -> TableCounts:
    """Count each group's scores at the nodes of a grid, on the engine that holds the table.

    Parameters
    ----------
    frame : table
        Of pandas, polars (eager or lazy), pyarrow, DuckDB, Dask or PySpark.
    score : str
        Column of the scores, within ``range``.
    sensitive_features : str or list of str
        Columns of the groups; several are crossed.
    label : str, optional
        Column of two labels: 0 and 1, or two others, of which the larger (in the order of text, the later) is the
        positive one.
    strata : str or list of str, optional
        Columns of the strata; a missing value is a stratum of its own.
    cut_strata : bool, default False
        Whether columns of the strata with more than 12 different numbers are cut at quantiles, as in
        `fairtransport.strata.make_strata`. Costs a few more passes over these columns.
    weight : str, optional
        Column of the rows' weights; 1 when omitted.
    range : pair of float, optional
        Lowest and highest possible score; [0, 1] when omitted.
    n_bins : int, default 16384
        Resolution: the error of a distance is at most 1 / n_bins of the range, and 0 for scores on the grid.
    grouping : {"crossed", "each"}, default "crossed"
        As in `fairtransport.make_groups`.
    missing : {"set_aside", "group"}, default "set_aside"
        Whether rows with a missing sensitive value are set aside or form a group.
    max_groups : int, default 200
        More groups, or strata, are refused, since a column with so many values is probably an identifier. The first
        131,072 rows are checked before the others; on Dask, those of the first partition, and of more where it is
        smaller.
    pos_label : label, optional
        The positive label, where it is not the larger one.

    Returns
    -------
    TableCounts
        Rows without score (null or NaN), weight, group or label are set aside and counted.

    Notes
    -----
    The engine computes the node of each score and groups by it; the result has one row for each combination of group,
    stratum, label and node that occurs, whatever the number of rows in the table.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.LazyFrame({"s": [0.25, 0.5, None, 1.0], "sex": ["F", "F", "F", "M"]})
    >>> counts = count_table(table, score="s", sensitive_features="sex", n_bins=4)
    >>> counts.histograms.by_group
    array([[0., 1., 1., 0., 0.],
           [0., 0., 0., 0., 1.]])
    >>> counts.set_aside
    {'no score': 1}
    """
    grid = Grid.over(range, n_bins)
    columns = Columns.named(
        score=score, sensitive_features=sensitive_features, label=label, strata=strata, weight=weight
    )
    check_choice(grouping, ("crossed", "each"), name="grouping")
    check_choice(missing, ("set_aside", "group"), name="missing")
    check_count(max_groups, name="max_groups")
    table = open_table(frame)
    check_columns(table.schema(), columns)
    cuts: dict[str, NDArray[np.float64]] = {}
    if cut_strata and columns.strata:
        cuts = find_cuts(table, columns, crossed=grouping == "crossed")
    max_strata = max(max_groups, MOST_STRATA) if cut_strata else max_groups
    uncut = replace(columns, strata=tuple(name for name in columns.strata if name not in cuts))
    refuse_identifiers(table, uncut, max_groups=max_groups, max_strata=max_strata, crossed=grouping == "crossed")
    renamed = columns.renamed(table.keys)
    renamed = replace(
        renamed,
        strata=tuple(
            _range_key(key) if name in cuts else key for name, key in zip(columns.strata, renamed.strata, strict=True)
        ),
    )
    entries = _Entries.of(_group(_with_ranges(table, cuts), renamed, grid), columns)
    _check_scores(entries, columns, grid)
    kept, set_aside = _set_aside(entries, with_groups=missing == "set_aside")
    groups = _groups(
        kept.keys("g", columns.sensitive_features), "sensitive_features", grouping=grouping, max_groups=max_groups
    )
    positive = None if label is None else _positive(kept, label, pos_label)

    def count(at: Any = slice(None)) -> GroupHistograms:
        weights, squares = (None if values is None else values[at] for values in (kept.weights, kept.squares))
        return count_entries(
            grid,
            groups.select(np.arange(groups.n_rows)[at]),
            nodes=kept.nodes[at],
            masses=kept.rows[at] if weights is None else weights,
            squares=squares,
            rows=kept.rows[at],
            labels=None if positive is None else positive[at],
        )

    by_stratum: Mapping[str, GroupHistograms] = {}
    if columns.strata:
        cells = _groups(kept.keys("b", columns.strata), "strata", grouping="crossed", max_groups=max_strata)
        layers = Strata(cells, tuple(cuts.get(name) for name in columns.strata))
        by_stratum = _Strata(layers, count)
    points = {name: tuple(each.tolist()) for name, each in cuts.items()}
    return TableCounts(count(), by_stratum, set_aside, weight, columns.strata, points)


class _Strata(Mapping[str, "GroupHistograms"]):
    """Histograms of each stratum, computed on access: all at once could be larger than memory."""

    def __init__(self, layers: Strata, count: Callable[[NDArray[np.int64]], GroupHistograms]) -> None:
        self._rows = dict(zip(layers.names, layers.rows, strict=True))
        self._count = count

    def __getitem__(self, name: str) -> GroupHistograms:
        return self._count(self._rows[name]).filled()

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


# ------------------------------------------------------------------------------------------------------ the group-by


def _range_key(key: str) -> str:
    return f"{key}_range"


def _with_ranges(table: NumberedTable, cuts: Mapping[str, NDArray[np.float64]]) -> nw.LazyFrame[Any]:
    """Return the table with further columns: the numbers of the ranges of values that are cut."""
    schema = table.schema()
    ranges = {
        _range_key(table.keys[name]): range_of(nw.col(table.keys[name]), points, schema[name])
        for name, points in cuts.items()
    }
    return table.frame.with_columns(**ranges) if ranges else table.frame


def node_of(score: nw.Expr, grid: Grid) -> nw.Expr:
    """Return the node of scores within the range, as in `Grid`; the node of other scores is arbitrary."""
    within = nw.when((score >= grid.low) & (score <= grid.high)).then(score).otherwise(nw.lit(grid.low))
    return ((within - grid.low) * grid.scale - SLACK).ceil().cast(nw.Int64)


def _group(table: nw.LazyFrame[Any], columns: Columns, grid: Grid) -> nw.DataFrame[Any]:
    """Run the group-by and collect its result, which is small."""
    count = partial(_count_nodes, columns=columns, grid=grid)
    if table.implementation.is_dask():
        counted = sum_partitions(table.select(*columns), count, keys=[*columns.keys(), "node"])
    else:
        counted = count(table)
    entries = collect(counted.head(MOST_ENTRIES + 1))
    if len(entries) > MOST_ENTRIES:
        raise ValueError(
            f"The group-by has more than {MOST_ENTRIES} combinations of group, stratum, label and bin. Give fewer bins "
            "(n_bins=), or fewer groups or strata."
        )
    return entries


def _count_nodes(table: nw.LazyFrame[Any], *, columns: Columns, grid: Grid) -> nw.LazyFrame[Any]:
    """Group by the keys and the node."""
    score = nw.col(columns.score).cast(nw.Float64)
    node = node_of(score, grid)
    sums = []
    keys = {key: nw.col(name) for key, name in columns.keys().items()}
    chosen = dict(keys)
    if columns.weight is not None:
        weight = nw.col(columns.weight).cast(nw.Float64)
        sound = choose_code((weight < 0) | (weight == float("inf")), _BAD_WEIGHT, node)
        node = choose_code(weight.is_null(), _NO_WEIGHT, choose_code(weight.is_nan(), _NO_WEIGHT, sound))
        chosen |= {"weights": weight, "squares": weight * weight}
        sums = [nw.col("weights").sum(), nw.col("squares").sum()]
    # A comparison with a missing score is missing on some engines, so missing scores are tested last, outermost.
    outside = choose_code((score < grid.low) | (score > grid.high), _OUTSIDE, node)
    chosen["node"] = choose_code(score.is_null(), _NO_SCORE, choose_code(score.is_nan(), _NO_SCORE, outside))
    return table.select(**chosen).group_by(*keys, "node").agg(nw.len().alias("rows"), *sums)


# ------------------------------------------------------------------------------------------------------- the result


@dataclass(frozen=True, eq=False)
class _Entries:
    """Result of the group-by: the keys, the node, the number of rows and their weights."""

    frame: nw.DataFrame[Any]
    nodes: NDArray[np.int64]
    rows: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    squares: NDArray[np.float64] | None

    @classmethod
    def of(cls, frame: nw.DataFrame[Any], columns: Columns) -> _Entries:
        def read(name: str, kind: Any) -> NDArray[Any]:
            return _to_array(frame[name]).astype(kind)

        weighted = columns.weight is not None
        return cls(
            frame,
            read("node", np.int64),
            read("rows", np.int64),
            read("weights", np.float64) if weighted else None,
            read("squares", np.float64) if weighted else None,
        )

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

    def select(self, kept: NDArray[np.bool_]) -> _Entries:
        if kept.all():
            return self
        weights, squares = (None if values is None else values[kept] for values in (self.weights, self.squares))
        return _Entries(self.frame.filter(kept.tolist()), self.nodes[kept], self.rows[kept], weights, squares)


def _to_array(column: nw.Series[Any]) -> NDArray[Any]:
    """Return numbers as an array; for pyarrow by DLPack, since `to_numpy` loads pandas."""
    if column.implementation.is_pyarrow() and not column.null_count():
        return np.from_dlpack(column.to_native().combine_chunks())
    return np.asarray(column.to_numpy())


def _check_scores(entries: _Entries, columns: Columns, grid: Grid) -> None:
    total = int(entries.rows.sum())
    if not total:
        raise ValueError("The table has no rows.")
    n_outside, n_bad = (int(entries.rows[entries.nodes == code].sum()) for code in (_OUTSIDE, _BAD_WEIGHT))
    if n_outside:
        raise ValueError(
            f"Column {columns.score!r} has {n_outside} of {total} values outside [{grid.low:g}, {grid.high:g}]. "
            f"{OTHER_RANGES}"
        )
    if n_bad:
        raise ValueError(
            f"Column {columns.weight!r} has {n_bad} of {total} values that are negative or infinite; weights must be "
            "zero or more."
        )


def _set_aside(entries: _Entries, *, with_groups: bool) -> tuple[_Entries, dict[str, int]]:
    """Return the entries that can be counted, and the number of the other rows by reason."""
    reasons = {"no score": entries.nodes == _NO_SCORE, "no weight": entries.nodes == _NO_WEIGHT}
    if with_groups:
        reasons["no group"] = entries.without("g")
    reasons["no label"] = entries.without("label")
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


def _groups(keys: dict[str, Any], role: str, *, grouping: str, max_groups: int) -> Groups:
    groups = make_groups(keys, grouping=grouping, missing="group", max_groups=MOST_ENTRIES)
    check_group_count(len(groups), role, list(keys), max_groups)
    return groups


def _positive(entries: _Entries, name: str, pos_label: Any) -> NDArray[np.bool_]:
    """Return which entries have the positive label."""
    by_label = make_groups({name: entries.frame["label"].to_native()}, max_groups=MOST_ENTRIES)
    labels = list(by_label.labels)
    positive = positive_label(labels, pos_label, source=f"Column {name!r}")
    return by_label.codes == (labels.index(positive) if positive in labels else -1)
