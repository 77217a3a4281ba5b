"""Histograms of the scores in a table, and sums of residuals, by group-bys on the engine that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._labels import TASKS, label_text, positive_label
from fairtransport._validation import OTHER_RANGES, check_choice
from fairtransport.groups import GroupPolicy, Groups, check_policy, make_groups, missing_values_error
from fairtransport.histograms import DEFAULT_BINS, Grid, GroupHistograms, count_entries
from fairtransport.strata import Strata
from fairtransport.tables._engines import (
    HIGHEST,
    NumberedTable,
    choose_code,
    code_missing,
    collect,
    is_finite,
    node_of,
    sum_partitions,
)
from fairtransport.tables.column_roles import (
    Columns,
    check_columns,
    check_group_count,
    check_numbers,
    column_quantiles,
    find_cuts,
    open_table,
    probe_task,
    range_of,
    refuse_identifiers,
)

# Bins for scores without known bounds: found from quantiles of the column, counted on the engine.

_N_RANGES = 24
_TAILS = (1 / 64, 1 / 256, 1 / 1024, 1 / 8192)  # shares of the rows beyond further quantiles, on both sides
_BELOW_ONE = 1 - 1e-12  # the highest score of a range is in its last bin


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Equal bins between ascending points."""

    points: Floats
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
) -> tuple[_Entries, Grid]:
    """Count rows by group and node."""
    if grid is not None or outcome is None:
        unit = grid or Grid(n_bins=n_bins)
        entries = _Entries.of(_group(table, columns, unit, outcome))
        if grid is not None or not entries.n_outside:
            return entries, unit
    return _count_anywhere(table, columns, outcome, n_bins=n_bins, nodes=nodes)


def _count_anywhere(
    table: nw.LazyFrame[Any], columns: Columns, outcome: str | None, *, n_bins: int, nodes: Sequence[float]
) -> tuple[_Entries, Grid]:
    """Count scores without known bounds; the nodes are the largest scores of bins that have any."""
    bins = find_score_bins(table, columns.score, n_bins, extra=nodes)
    if bins is None:
        return _Entries.of(_group(table, columns, Grid(), outcome)), Grid()
    entries = _Entries.of(_group(table, columns, bins, outcome))
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


@dataclass(frozen=True, eq=False)
class _Entries:
    """Result of the group-by: the keys, the node, the number of rows and their weights."""

    frame: nw.DataFrame[Any]
    nodes: Ints
    rows: Ints
    weights: Floats | None
    squares: Floats | None
    highest: Floats | None = None

    @property
    def n_outside(self) -> int:
        """Number of rows with a score outside the range."""
        return int(self.rows[self.nodes == _OUTSIDE].sum())

    @classmethod
    def of(cls, frame: nw.DataFrame[Any]) -> _Entries:
        def read(name: str, kind: Any) -> NDArray[Any]:
            return to_array(frame[name]).astype(kind)

        sums = (read(name, np.float64) if name in frame.columns else None for name in ("weights", "squares", HIGHEST))
        return cls(frame, read("node", np.int64), read("rows", np.int64), *sums)

    def keys(self, prefix: str, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.frame[f"{prefix}{number}"].to_native() for number, name in enumerate(names)}

    def without(self, start: str) -> Bools:
        """Return which entries have a missing value in a key with this prefix."""
        missing = np.zeros(self.rows.size, dtype=np.bool_)
        for name in self.frame.columns:
            if name.startswith(start):
                missing |= self.missing(name)
        return missing

    def missing(self, name: str) -> Bools:
        """Return which entries have a missing value in a key."""
        key, missing = self.frame[name], np.zeros(self.rows.size, dtype=np.bool_)
        if key.null_count():
            missing |= key.is_null().to_numpy().astype(np.bool_)
        if key.dtype.is_float():
            missing |= key.is_nan().fill_null(value=True).to_numpy().astype(np.bool_)
        return missing

    def select(self, kept: Bools) -> _Entries:
        if kept.all():
            return self
        weights, squares = (None if values is None else values[kept] for values in (self.weights, self.squares))
        return _Entries(self.frame.filter(kept.tolist()), self.nodes[kept], self.rows[kept], weights, squares)


def to_array(column: nw.Series[Any]) -> NDArray[Any]:
    """Return numbers as an array; for pyarrow by DLPack, since `to_numpy` loads pandas."""
    if column.implementation.is_pyarrow() and not column.null_count():
        return np.from_dlpack(column.to_native().combine_chunks())
    return np.asarray(column.to_numpy())


def check_entries(entries: _Entries, columns: Columns, grid: Grid) -> None:
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


def set_rows_aside(entries: _Entries, *, with_groups: bool) -> tuple[_Entries, dict[str, int]]:
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


# Sums of residuals of real-valued labels, by group and decile of the score, on the engine that holds the table.

_N_DECILES = 10
_N_TERMS = 6
#: Pairs of terms whose products are summed, for the covariances of their means.
PRODUCTS = tuple((one, other) for one in range(_N_TERMS) for other in range(one, _N_TERMS))


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """Sums over the rows of each group and decile."""

    centre: float
    scale: float
    edges: Floats
    groups: Groups
    deciles: Ints
    sums: Floats
    products: Floats


def decile_edges(histograms: GroupHistograms) -> Floats:
    """Return the distinct scores that divide all rows into ten parts of about equal weight, or fewer."""
    levels = np.arange(1, _N_DECILES) / _N_DECILES
    places = np.searchsorted(histograms.cdf_of_everyone, levels * (1 - 1e-12))
    last = np.flatnonzero(histograms.everyone)[-1]
    return np.unique(histograms.grid.nodes[places[places < last]])


def collect_residuals(
    table: nw.LazyFrame[Any], columns: Columns, edges: Floats
) -> tuple[nw.DataFrame[Any], float, float]:
    """Sum the terms on the engine."""
    named = {f"g{number}": nw.col(name) for number, name in enumerate(columns.sensitive_features)}
    chosen = {
        **named,
        "score": nw.col(columns.score).cast(nw.Float64),
        "y": nw.col(str(columns.label)).cast(nw.Float64),
        "w": nw.lit(1.0) if columns.weight is None else nw.col(columns.weight).cast(nw.Float64),
    }
    whole = table.select(**chosen)
    finite = whole.filter(is_finite(nw.col("score")) & is_finite(nw.col("y")) & is_finite(nw.col("w")))
    row = collect(finite.select(mean=nw.col("y").mean(), deviation=nw.col("y").std())).rows(named=True)[0]
    centre = float(row["mean"] or 0.0)
    deviation = row["deviation"]
    scale = float(deviation) if deviation is not None and deviation > 0 else 1.0
    add = partial(_sum_terms, keys=[*named], edges=edges, centre=centre, scale=scale)
    return collect(sum_partitions(finite, add, keys=[*named, "decile"])), centre, scale


def _sum_terms(
    table: nw.LazyFrame[Any], *, keys: list[str], edges: Floats, centre: float, scale: float
) -> nw.LazyFrame[Any]:
    score, y, weight = nw.col("score"), nw.col("y"), nw.col("w")
    decile = nw.lit(0, nw.Int64)
    for edge in edges.tolist():
        decile = decile + nw.when(score > edge).then(nw.lit(1, nw.Int64)).otherwise(nw.lit(0, nw.Int64))
    prepared = table.with_columns(decile=decile, r=(y - score) / scale, d=(y - centre) / scale)
    r, d = nw.col("r"), nw.col("d")
    terms = [nw.lit(1.0), r, r.abs(), r * r, d, d * d]
    sums = {f"s{number}": weight * term for number, term in enumerate(terms)}
    products = {
        f"p{number}": weight * weight * terms[one] * terms[other] for number, (one, other) in enumerate(PRODUCTS)
    }
    values = prepared.select(*keys, "decile", **sums, **products)
    return values.group_by(*keys, "decile").agg(nw.col(*sums, *products).sum())


_DATE = r"^\d{4}-\d{2}-\d{2}(?:$|[T ])"

#: Largest number of strata where columns of numbers are cut, as in `fairtransport.strata.make_strata`.
MOST_STRATA = 1000


@dataclass(frozen=True, eq=False)
class TableCounts:
    """Histograms of a table, as `count_table` returns them."""

    histograms: GroupHistograms
    strata: Mapping[str, GroupHistograms]
    set_aside: dict[str, int]
    weight: str | None = None
    strata_columns: tuple[str, ...] = ()
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    residuals: ResidualSums | None = None
    positive: Any = None  # the label that counts as positive

    @property
    def positive_name(self) -> str | None:
        """The label that counts as positive, for readers."""
        return None if self.positive is None else label_text(self.positive)

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
    cut_dates: bool = False,
    weight: str | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    groups: GroupPolicy | None = None,
    pos_label: Any = None,
    any_range: bool = False,
    nodes: Sequence[float] = (),
    task: str | None = "classification",
    within_labels: bool = False,
) -> TableCounts:
    """Count each group's scores at the nodes of a grid, on the engine that holds the table.

    Notes
    -----
    The engine computes the node of each score and groups by it; the result has one row for each combination of group,
    stratum, label and node that occurs, whatever the number of rows in the table.

    Scores without known bounds take a few more passes over their column: to find quantiles, between which bins are
    equally spaced. Each bin is represented by the largest score in it.

    With ``cut_strata``, columns of ``strata`` with many numbers are cut at quantiles; with ``cut_dates``, dates there
    are cut into months.
    """
    known = None if range is None and any_range else Grid.over(range, n_bins)
    columns = Columns.named(
        score=score, sensitive_features=sensitive_features, label=label, strata=strata, weight=weight
    )
    policy = check_policy(groups)
    if task is not None:
        check_choice(task, TASKS, name="task")
    table = open_table(frame)
    check_columns(table.schema(), columns)
    if cut_dates:
        table = _with_months(table, columns.strata)
    if label is not None and task is None:
        task = "classification" if pos_label is not None else probe_task(table, label)
    is_regression = label is not None and task == "regression"
    named = columns
    if label is not None and is_regression:
        check_numbers(table.schema(), label)
        strata_of_labels = (label,) if within_labels and label not in columns.strata else ()
        columns = replace(columns, label=None, strata=(*strata_of_labels, *columns.strata))
    cuts: dict[str, Floats] = {}
    if cut_strata and columns.strata:
        cuts = find_cuts(table, columns, crossed=policy.crossed)
    max_strata = max(policy.max_groups, MOST_STRATA) if cut_strata else policy.max_groups
    uncut = replace(columns, strata=tuple(name for name in columns.strata if name not in cuts))
    refuse_identifiers(table, uncut, max_groups=policy.max_groups, max_strata=max_strata, crossed=policy.crossed)
    renamed = columns.renamed(table.keys)
    renamed = replace(
        renamed,
        strata=tuple(
            _range_key(key) if name in cuts else key for name, key in zip(columns.strata, renamed.strata, strict=True)
        ),
    )
    outcome = table.keys[label] if is_regression else None
    entries, grid = count_rows(_with_ranges(table, cuts), renamed, known, outcome=outcome, n_bins=n_bins, nodes=nodes)
    check_entries(entries, named, grid)
    kept, set_aside = set_rows_aside(entries, with_groups=policy.missing != "group")
    if policy.missing == "error" and set_aside.get("no group"):
        names = enumerate(columns.sensitive_features)
        raise missing_values_error({name: int(entries.rows[entries.missing(f"g{k}")].sum()) for k, name in names})
    made = _groups(kept.keys("g", columns.sensitive_features), "sensitive_features", policy)
    positive, is_positive = (None, None) if columns.label is None else _positive(kept, columns.label, pos_label)

    def count(at: Any = slice(None)) -> GroupHistograms:
        weights, squares = (None if values is None else values[at] for values in (kept.weights, kept.squares))
        return count_entries(
            grid,
            made.select(np.arange(made.n_rows)[at]),
            nodes=kept.nodes[at],
            masses=kept.rows[at] if weights is None else weights,
            squares=squares,
            rows=kept.rows[at],
            labels=None if is_positive is None else is_positive[at],
        )

    by_stratum: Mapping[str, GroupHistograms] = {}
    if columns.strata:
        cells = _groups(kept.keys("b", columns.strata), "strata", GroupPolicy(max_groups=max_strata))
        layers = Strata(cells, tuple(cuts.get(name) for name in columns.strata))
        by_stratum = _Strata(layers, count)
    points = {name: tuple(each.tolist()) for name, each in cuts.items()}
    histograms = count()
    residuals = None
    if is_regression:
        roles = named.renamed(table.keys)
        residuals = _residuals(table, roles, named, histograms, policy)
    return TableCounts(histograms, by_stratum, set_aside, weight, named.strata, points, residuals, positive)


def _residuals(
    table: NumberedTable, roles: Columns, columns: Columns, histograms: GroupHistograms, policy: GroupPolicy
) -> ResidualSums:
    """Return the sums of residuals of the rows that are counted."""
    edges = decile_edges(histograms)
    frame, centre, scale = collect_residuals(table.frame, roles, edges)
    entries = _Entries(frame, *(np.zeros(len(frame), dtype=np.int64),) * 2, None, None)
    if policy.missing != "group":
        frame = entries.select(~entries.without("g")).frame
    keys = {name: frame[f"g{number}"].to_native() for number, name in enumerate(columns.sensitive_features)}
    groups = make_groups(keys, GroupPolicy(policy.crossed, "group", max_groups=MOST_ENTRIES))

    def read(prefix: str, number: int) -> Floats:
        return np.stack([to_array(frame[f"{prefix}{index}"]) for index in np.arange(number)], axis=1).astype(np.float64)

    deciles = to_array(frame["decile"]).astype(np.int64)
    return ResidualSums(centre, scale, edges, groups, deciles, read("s", 6), read("p", len(PRODUCTS)))


class _Strata(Mapping[str, "GroupHistograms"]):
    """Histograms of each stratum, computed on access: all at once could be larger than memory."""

    def __init__(self, layers: Strata, count: Callable[[Ints], GroupHistograms]) -> None:
        self._rows = dict(zip(layers.names, layers.rows, strict=True))
        self._count = count

    def __getitem__(self, name: str) -> GroupHistograms:
        return self._count(self._rows[name]).filled()

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _range_key(key: str) -> str:
    return f"{key}_range"


def _with_ranges(table: NumberedTable, cuts: Mapping[str, Floats]) -> nw.LazyFrame[Any]:
    """Return the table with further columns: the numbers of the ranges of values that are cut."""
    schema = table.schema()
    ranges = {
        _range_key(table.keys[name]): range_of(nw.col(table.keys[name]), points, schema[name])
        for name, points in cuts.items()
    }
    return table.frame.with_columns(**ranges) if ranges else table.frame


def _with_months(table: NumberedTable, names: Sequence[str]) -> NumberedTable:
    """Return the table with months, such as 2024-03, in place of dates and of text that begins with one."""
    schema, cut = table.schema(), {}
    for name in names:
        if not (schema[name].is_numeric() or isinstance(schema[name], nw.Boolean)):
            value = nw.col(table.keys[name])
            text = nw.when(~value.is_null()).then(value.cast(nw.String))
            cut[table.keys[name]] = nw.when(text.str.contains(_DATE)).then(text.str.slice(0, 7)).otherwise(text)
    return replace(table, frame=table.frame.with_columns(**cut)) if cut else table


def _groups(keys: dict[str, Any], role: str, policy: GroupPolicy) -> Groups:
    groups = make_groups(keys, GroupPolicy(policy.crossed, "group", max_groups=MOST_ENTRIES))
    check_group_count(len(groups), role, list(keys), policy.max_groups)
    return groups


def _positive(entries: _Entries, name: str, pos_label: Any) -> tuple[Any, Bools]:
    """Return the positive label, and which entries have it."""
    by_label = make_groups({name: entries.frame["label"].to_native()}, GroupPolicy(max_groups=MOST_ENTRIES))
    labels = list(by_label.labels)
    positive = positive_label(labels, pos_label, source=f"Column {name!r}")
    return positive, by_label.codes == (labels.index(positive) if positive in labels else -1)
