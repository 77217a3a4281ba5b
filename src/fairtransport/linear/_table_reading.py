"""First reading of a table whose rows stay in parts: types, units of features, cells of rows, and their encoding.

A cell is a group crossed with the labels and strata of its rows. It is represented by slices of equal mass, the rows of
a small table: everything but the loss depends on the distributions of scores in cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._columns import distinct_values, say_columns
from fairtransport._extras import load_extra
from fairtransport.criteria.comparisons import Represented
from fairtransport.criteria.criterion import needs_labels
from fairtransport.groups import build_groups, missing_values_error, read_groups
from fairtransport.linear._constants import CHECKED_ROWS, FILLED_SHARE, N_FOLDS
from fairtransport.linear._partitions import EncodedRows, RawParts
from fairtransport.linear._problem import Scaling
from fairtransport.linear._training_data import TrainingData, TrainingOptions, check_target
from fairtransport.strata import MOST_VALUES, Strata, count_ranges, cross_strata
from fairtransport.training.responses import Y_COLUMN, Response

N_SLICES = 8192  # of a cell: one for each of its rows, where there are no more; at least 64 may be
_MOST_SLICES = 1 << 17  # of all cells together
_MOST_CELLS, _FEW_CELLS = 20_000, 100
_Y_RANGES = 64  # of a real y, within which slices are taken: what scores explain of y is known from them
_TAILS = 0.25 ** np.arange(1, 4) / _Y_RANGES  # further levels, at both ends
_DIGITS = 9  # of origins and units, so that the order in which rows are added does not change them


@dataclass(frozen=True)
class TableColumns:
    """Columns of a table by their roles in training."""

    features: tuple[str, ...]
    label: str
    sensitive: tuple[str, ...]
    strata: tuple[str, ...] = ()
    weight: str | None = None
    classifies: bool = True
    encoder: Any = None  # of features that are not only numbers: `fairtransport.tabular.partitioned_training`

    @property
    def n_features(self) -> int:
        """Number of encoded features."""
        return len(self.features) if self.encoder is None else self.encoder.n_numbers + self.encoder.n_indicators

    def read(self, rows: Any) -> tuple[Floats, Ints | None]:
        """Return numbers, and of each column of categories the indicator that is 1."""
        if self.encoder is not None:
            numbers, codes = self.encoder(rows)
            return numbers, codes
        return np.hstack(
            [np.zeros((rows.num_rows, 0)), *(to_floats(rows.column(n))[:, None] for n in self.features)]
        ), None

    @property
    def names(self) -> tuple[str, ...]:
        """Every column once."""
        rest = (*self.sensitive, *self.strata, *(() if self.weight is None else (self.weight,)))
        return tuple(dict.fromkeys((*self.features, self.label, *rest)))

    def numbers(self) -> dict[str, str]:
        """Return the columns that must be numbers, with their roles."""
        named = dict.fromkeys(self.features if self.encoder is None else (), "features")
        named |= {} if self.classifies else {self.label: "label"}
        return named if self.weight is None else {**named, self.weight: "weight"}


# First pass: types, missing values, and the moments of the features.


def to_floats(column: Any) -> Floats:
    """Return a column of numbers or booleans as floats, NaN where missing."""
    arrow = load_extra("pyarrow")
    if arrow.types.is_boolean(column.type):
        column = column.cast(arrow.int8())
    return np.asarray(column.cast(arrow.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def kind_of(kind: Any) -> str:
    """Return one word for an Arrow type."""
    types = load_extra("pyarrow").types
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    return "text" if types.is_string(kind) or types.is_large_string(kind) or "view" in str(kind) else str(kind)


@dataclass(frozen=True, eq=False)
class Summary:
    """Summary of some rows: counts, and moments of the features that can be merged."""

    n_rows: int
    weight: float
    kinds: Mapping[str, str]
    missing: Mapping[str, int]
    infinite: Mapping[str, int]
    filled: Floats
    mean: Floats
    squares: Floats  # sums of squared deviations from the mean
    peak: Floats
    few: Mapping[str, frozenset[Any]]  # distinct numbers of each column of strata, at most thirteen
    counted_weights: bool
    negative: int

    def merged(self, other: Summary) -> Summary:
        """Return the summary of the rows of both."""
        for name, kind in self.kinds.items():
            if self.n_rows and other.n_rows and kind != other.kinds[name] and "null" not in {kind, other.kinds[name]}:
                raise ValueError(
                    f"Column {name!r} contains {kind} in one part of the table and {other.kinds[name]} in another."
                )
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        total = self.weight + other.weight
        shift, part, none = other.mean - self.mean, other.weight / max(total, 1e-300), frozenset[Any]()
        return Summary(
            self.n_rows + other.n_rows,
            total,
            {name: other.kinds[name] if kind == "null" else kind for name, kind in self.kinds.items()},
            {name: count + other.missing[name] for name, count in self.missing.items()},
            {n: self.infinite.get(n, 0) + other.infinite.get(n, 0) for n in {*self.infinite, *other.infinite}},
            self.filled + other.filled,
            self.mean + part * shift,
            self.squares + other.squares + shift**2 * self.weight * part,
            np.maximum(self.peak, other.peak),
            {n: _at_most(self.few.get(n, none) | other.few.get(n, none)) for n in {*self.few, *other.few}},
            self.counted_weights and other.counted_weights,
            self.negative + other.negative,
        )


def _at_most(values: Iterable[Any]) -> frozenset[Any]:
    return frozenset(sorted(values)[: MOST_VALUES + 1])


def summarise(rows: Any, columns: TableColumns) -> Summary:
    """Return the summary of one part."""
    n_rows, kinds = rows.num_rows, {name: kind_of(rows.column(name).type) for name in columns.names}
    usable = {name for name in columns.numbers() if kinds[name] == "numbers"}
    weights = np.ones(n_rows)
    if columns.weight in usable:
        weights = np.nan_to_num(to_floats(rows.column(columns.weight)), posinf=0.0, neginf=0.0)
    negative, weights = int((weights < 0.0).sum()), np.maximum(weights, 0.0)
    total = float(weights.sum())
    shares = weights / max(total, 1e-300)
    missing = {name: rows.column(name).null_count for name in columns.names}
    if kinds[columns.label] == "numbers":
        missing[columns.label] = int(np.isnan(to_floats(rows.column(columns.label))).sum())
    infinite = dict.fromkeys(usable, 0)
    for name in usable:
        values = to_floats(rows.column(name))
        missing[name], infinite[name] = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    filled, mean, squares, peak = np.zeros((4, columns.n_features))
    is_bad = any(missing.get(name) or infinite.get(name) or name not in usable for name in columns.numbers())
    if n_rows and not is_bad:
        numbers, codes = columns.read(rows)
        for j, values in enumerate(numbers.T):
            filled[j], mean[j], peak[j] = weights @ (values != 0.0), shares @ values, np.abs(values).max()
            squares[j] = weights @ (values - mean[j]) ** 2
        if codes is not None:
            first, known = numbers.shape[1], codes >= 0
            masses = np.bincount(codes[known], np.repeat(weights, known.sum(axis=1)), len(filled) - first)
            filled[first:], mean[first:], peak[first:] = masses, masses / max(total, 1e-300), 1.0
            squares[first:] = masses * (1.0 - mean[first:])
    few = {}
    for name in columns.strata:
        if kinds[name] == "numbers":
            values = to_floats(rows.column(name))
            few[name] = _at_most(np.unique(values[np.isfinite(values)])[: MOST_VALUES + 1].tolist())
    whole = bool((weights == np.rint(weights)).all())
    return Summary(n_rows, total, kinds, missing, infinite, filled, mean, squares, peak, few, whole, negative)


def check_columns(summary: Summary, columns: TableColumns) -> None:
    """Raise for columns that cannot be trained on, with their names and the number of rows."""
    text = [name for name in columns.numbers() if summary.kinds[name] != "numbers"]
    if text:
        raise TypeError(
            f"{say_columns(text).capitalize()}: {'/'.join(sorted({summary.kinds[name] for name in text}))} where "
            "numbers are needed. Name the columns of numbers with features=, or encode text: TableModel.fit_table and "
            "`fairtransport train` do."
        )
    if not summary.n_rows:
        raise ValueError("The table has no rows.")
    for name in (*columns.numbers(), columns.label):
        role = columns.numbers().get(name, "label")
        bad = {"missing": summary.missing[name], "infinite": summary.infinite.get(name, 0)}
        for what, count in bad.items():
            if count:
                raise ValueError(
                    f"Column {name!r} ({role}) is {what} in {count:,} of {summary.n_rows:,} rows: drop or fill them."
                )
    if summary.negative or not summary.weight > 0.0:
        raise ValueError(f"Column {columns.weight!r} (weight) must be zero or more, and somewhere positive.")


def scaling_of(summary: Summary, *, centred: bool) -> Scaling:
    """Return origins and units of the features, as `Scaling.of` does for rows in memory."""
    full = summary.filled / summary.weight > FILLED_SHARE
    spread = np.sqrt(summary.squares / summary.weight)
    spread[spread <= 1e-7 * summary.peak] = 0.0
    unit = np.where(full & (spread > 0.0), spread, summary.peak)
    unit[unit == 0.0] = 1.0
    origin = np.where(full & centred, summary.mean, 0.0)
    # Relative to the unit: a rounded origin moves the intercept and nothing else.
    unit = np.array([float(f"{value:.{_DIGITS}g}") for value in unit])
    return Scaling(np.round(origin / unit, _DIGITS) * unit, unit)


# Quantiles of columns that are cut into ranges: exact to 2^-36, by counting the leading bits of numbers.


def _count_bits(rows: Any, prefixes: Mapping[str, tuple[Ints, int]]) -> dict[str, NDArray[np.int64]]:
    """Count the next 16 bits of finite numbers, for each of some prefixes."""
    counts = {}
    for name, (known, shift) in prefixes.items():
        values = to_floats(rows.column(name))
        bits = values[np.isfinite(values)].view(np.uint64)
        bits = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))
        table = np.zeros((len(known), 1 << 16), dtype=np.int64)
        leading = (
            (bits >> np.uint64(shift + 16)).astype(np.int64) if shift < 48 else np.zeros(len(bits), dtype=np.int64)
        )
        index = np.minimum(np.searchsorted(known, leading), len(known) - 1)
        inside = known[index] == leading
        following = ((bits[inside] >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64)
        np.add.at(table, (index[inside], following), 1)
        counts[name] = table
    return counts


def column_quantiles(source: RawParts, levels: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return quantiles of columns, in three passes over them."""
    wanted = {name: np.zeros(len(each), dtype=np.int64) for name, each in levels.items()}
    ranks: dict[str, Ints] = {}
    for shift in (48, 32, 16):
        prefixes = {name: (np.unique(bits), shift) for name, bits in wanted.items()}
        tables: dict[str, NDArray[np.int64]] = {}
        for part in source.summaries(partial(_count_bits, prefixes=prefixes), tuple(levels)):
            tables = {name: tables.get(name, 0) + table for name, table in part.items()}
        for name, table in tables.items():
            if shift == 48:
                ranks[name] = np.floor(levels[name] * (table.sum() - 1)).astype(np.int64)
            rows = np.searchsorted(prefixes[name][0], wanted[name])
            below = np.cumsum(table, axis=1)
            found = np.array(
                [int(np.searchsorted(below[r], k, side="right")) for r, k in zip(rows, ranks[name], strict=True)]
            )
            ranks[name] = ranks[name] - np.where(found > 0, below[rows, np.maximum(found - 1, 0)], 0)
            wanted[name] = (wanted[name] << 16) | found
    quantiles = {}
    for name, leading in wanted.items():
        bits = leading.astype(np.uint64) << np.uint64(16)
        bits = np.where(bits >> np.uint64(63), bits & np.uint64((1 << 63) - 1), ~bits)
        quantiles[name] = bits.view(np.float64)
    return quantiles


# Second pass: the cells of rows.


@dataclass(frozen=True, eq=False)
class CellKeys:
    """Rule by which the values of a row become the key of its cell: numbers of some columns are cut into ranges."""

    columns: TableColumns
    cuts: Mapping[str, Floats]
    y_cuts: Floats | None = None
    compared_y: Floats | None = None  # those between which people count as similar
    folds: Scaling | None = None  # with the units of features, the first value of a key is the fold of the row

    def of(self, rows: Any) -> tuple[list[tuple[Any, ...]], Ints]:
        """Return the distinct keys of a part, and which one each row has."""
        if not rows.num_rows:
            return [], np.zeros(0, dtype=np.int64)
        coded = [
            self._code(rows, name, self.cuts.get(name)) for name in (*self.columns.sensitive, *self.columns.strata)
        ]
        coded.append(self._code(rows, self.columns.label, self.y_cuts))
        if self.folds is not None:
            X, indicators = scaled_features(rows, self.columns, self.folds)
            hashes = EncodedRows(X, np.zeros(len(X), dtype=np.int32), codes=indicators).hashes() >> np.uint64(7)
            coded.insert(0, (range(N_FOLDS), (hashes % np.uint64(N_FOLDS)).astype(np.int64)))
        numbers = np.zeros(rows.num_rows, dtype=np.int64)
        for values, codes in coded:
            numbers = numbers * (len(values) + 1) + codes + 1
        present, inverse = np.unique(numbers, return_inverse=True)
        keys = []
        for number in present.tolist():
            key = []
            for values, _ in reversed(coded):
                number, code = divmod(number, len(values) + 1)  # noqa: PLW2901
                key.append(values[code - 1] if code else None)
            keys.append(tuple(reversed(key)))
        return keys, inverse

    def _code(self, rows: Any, name: str, cuts: Floats | None) -> tuple[Sequence[Any], Ints]:
        if cuts is None:
            return distinct_values(rows.column(name), name)
        numbers = to_floats(rows.column(name))
        codes = np.where(np.isnan(numbers), -1, np.searchsorted(cuts, numbers, side="right"))
        return range(len(cuts) + 1), codes


def count_keys(rows: Any, keys: CellKeys) -> dict[tuple[Any, ...], Floats]:
    """Return for each key: rows, rows of positive weight, sums of weights, their squares, and moments of y."""
    present, inverse = keys.of(rows)
    columns = keys.columns
    weights = np.ones(rows.num_rows) if columns.weight is None else to_floats(rows.column(columns.weight))
    y = np.zeros(rows.num_rows) if columns.classifies else to_floats(rows.column(columns.label))
    terms = (np.ones(rows.num_rows), weights > 0.0, weights, weights**2, weights * y, weights * y**2)
    sums = np.array([np.bincount(inverse, term, minlength=len(present)) for term in terms])
    return dict(zip(present, sums.T, strict=True))


def merge_keys(parts: Iterable[dict[tuple[Any, ...], Floats]]) -> dict[tuple[Any, ...], Floats]:
    """Return the sums over all parts, in an order that does not depend on theirs."""
    merged: dict[tuple[Any, ...], Floats] = {}
    for part in parts:
        for key, sums in part.items():
            merged[key] = merged[key] + sums if key in merged else sums
        if len(merged) > _MOST_CELLS:
            raise ValueError(
                f"Groups, strata and labels have more than {_MOST_CELLS:,} combinations: perhaps a column is an "
                "identifier."
            )
    return dict(sorted(merged.items(), key=lambda item: repr(item[0])))


# Third pass: encoding.


def scaled_features(
    rows: Any, columns: TableColumns, scaling: Scaling
) -> tuple[NDArray[np.float32], NDArray[np.int32] | None]:
    """Return numbers in units of their columns, and the indicators of categories that are 1, or -1."""
    numbers, codes = columns.read(rows)
    n = numbers.shape[1]
    X = ((numbers - scaling.origin[:n]) / scaling.unit[:n]).astype(np.float32)
    return X, None if codes is None else codes.astype(np.int32)


@dataclass(frozen=True, eq=False)
class RowEncoder:
    """Encodes the rows of a part, once cells and units are known."""

    keys: CellKeys
    numbers: Mapping[tuple[Any, ...], int]
    scaling: Scaling
    response: Response

    def __call__(self, rows: Any) -> EncodedRows:
        """Return encoded rows; ValueError for a key that the passes before have not seen."""
        columns, (present, inverse) = self.keys.columns, self.keys.of(rows)
        unseen = sum(key not in self.numbers for key in present)
        if unseen:
            names = say_columns((*columns.sensitive, *columns.strata, columns.label))
            raise ValueError(
                f"{unseen} combinations of {names} were not there when the table was first read: it has changed "
                "meanwhile. Train again on a table that does not."
            )
        X, codes = scaled_features(rows, columns, self.scaling)
        if not np.isfinite(X).all():
            raise ValueError("A feature is missing or infinite that was not when the table was first read.")
        cells = np.array([self.numbers[key] for key in present], dtype=np.int32)[inverse]
        outcomes = None if columns.classifies else self.response.outcomes(to_floats(rows.column(columns.label)))
        weights = None if columns.weight is None else to_floats(rows.column(columns.weight))
        return EncodedRows(X, cells, outcomes, weights, codes, columns.n_features - X.shape[1])


# The small table of slices that represent the cells of rows.


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of rows: the sums of `count_keys` for each, and the number of slices that represent it."""

    keys: list[tuple[Any, ...]]
    sums: Floats
    n_slices: Ints

    @property
    def counts(self) -> Floats:
        """Number of rows of each cell."""
        return self.sums[:, 0]

    @property
    def weights(self) -> Floats:
        """Weight of each cell."""
        return self.sums[:, 2]

    @property
    def first(self) -> Ints:
        """Index of the first slice of each cell."""
        return np.cumsum(self.n_slices) - self.n_slices

    def repeated(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a value of each cell for each of its slices."""
        return np.repeat(values, self.n_slices)


@dataclass(frozen=True, eq=False)
class TableReading:
    """A table after its first reading: what its columns contain, its cells, and their slices as rows of training."""

    scaling: Scaling
    deviation: Floats  # of each feature, its unit where it is constant
    keys: CellKeys
    cells: Cells
    data: TrainingData


def read_cells(
    source: RawParts, columns: TableColumns, options: TrainingOptions, response: type[Response], owner: str
) -> TableReading:
    """Read a table for the first time."""
    summaries = iter(source.summaries(partial(summarise, columns=columns), columns.names))
    summary = next(summaries, None)
    if summary is None:
        raise ValueError("The table has no rows.")
    summary = reduce(Summary.merged, summaries, summary)
    check_columns(summary, columns)
    keys = _find_cuts(source, columns, summary, needs_labels(options.criterion))
    scaling = scaling_of(summary, centred=bool(getattr(options.estimator, "fit_intercept", True)))
    if options.group_specific or summary.n_rows < CHECKED_ROWS * columns.n_features:
        keys = replace(keys, folds=scaling)
    needed = columns.names if keys.folds is not None else replace(columns, features=(), encoder=None).names
    merged = merge_keys(source.summaries(partial(count_keys, keys=keys), needed))
    most = np.clip(_MOST_SLICES // len(merged), 64, N_SLICES)
    # Rounded, so that the order in which parts were added does not matter.
    sums = np.array([[float(f"{value:.13g}") for value in each] for each in merged.values()])
    cells = Cells(list(merged), sums, np.minimum(sums[:, 0], most).astype(np.int64))
    if summary.counted_weights:
        cells.sums[:, 3] = cells.weights  # weights that are counts of copies
    data = _slices_of(cells, keys, options, response, owner)
    deviation = np.sqrt(summary.squares / summary.weight)
    deviation = np.where(deviation > 1e-7 * summary.peak, deviation, scaling.unit)
    return TableReading(scaling, deviation, keys, cells, data)


def _find_cuts(source: RawParts, columns: TableColumns, summary: Summary, by_label: bool) -> CellKeys:
    """Return how rows are told apart, with the quantiles at which strata of many numbers and a real y are cut."""
    cut = [name for name in columns.strata if len(summary.few.get(name, ())) > MOST_VALUES]
    if columns.classifies and not cut:
        return CellKeys(columns, {})
    whole = tuple(name for name in columns.strata if name not in cut)
    only = CellKeys(TableColumns((), columns.sensitive[0], columns.sensitive, whole), {})
    known, n = merge_keys(source.summaries(partial(count_keys, keys=only), only.columns.names)), len(columns.sensitive)
    n_groups, n_others = (len({key[part] for key in known}) for part in (slice(n), slice(n, -1)))
    n_ranges = count_ranges(summary.n_rows, n_groups, n_cut=max(1, len(cut)), n_others=n_others)
    levels = {name: np.arange(1, n_ranges) / n_ranges for name in cut}
    n_y = 1
    if not columns.classifies:
        n_cells = n_groups * n_others * n_ranges ** len(cut)
        n_y = count_ranges(summary.n_rows, n_cells) if by_label else 1
        fine = np.arange(1, _Y_RANGES) / _Y_RANGES if n_cells * n_y <= _FEW_CELLS else np.arange(1, 8) / 8
        levels[columns.label] = np.concatenate((np.arange(1, n_y) / n_y, fine, _TAILS, 1.0 - _TAILS))
    found = column_quantiles(source, levels)
    cuts = {name: np.unique(found[name]) for name in cut}
    if columns.classifies:
        return CellKeys(columns, cuts)
    of_y = found[columns.label]
    return CellKeys(columns, cuts, np.unique(of_y), np.unique(of_y[: n_y - 1]))


def _slices_of(
    cells: Cells, keys: CellKeys, options: TrainingOptions, response: type[Response], owner: str
) -> TrainingData:
    """Return the slices of all cells as rows of training without features."""
    columns, values = keys.columns, [_objects(each) for each in zip(*cells.keys, strict=True)]
    if keys.folds is not None:
        del values[0]
    named = dict(zip((*columns.sensitive, *columns.strata), values, strict=False))
    sensitive = {name: named[name] for name in columns.sensitive}
    gaps = {name: np.array([each is None for each in column]) for name, column in sensitive.items()}
    if options.groups.missing == "error" and any(gap.any() for gap in gaps.values()):
        raise missing_values_error({name: int(cells.counts[gap].sum()) for name, gap in gaps.items()})
    groups = read_groups(sensitive, options.groups)
    sizes = [float(cells.sums[rows, 1].sum()) for rows in groups.rows]
    groups = groups.settle(options.groups.small, options.groups.min_size, sizes)
    groups.require()
    groups.to_spec()  # raises for labels that a model file cannot store
    if options.group_specific and groups.overlapping:
        raise ValueError("group_specific=True needs groups that do not overlap: use crossed=True.")
    layers = None
    if columns.strata:
        of_strata = build_groups({name: named[name] for name in columns.strata}, max_groups=1000, of="strata")
        layers = Strata(of_strata, tuple(keys.cuts.get(name) for name in columns.strata))
    weights = cells.repeated(cells.weights / cells.n_slices)
    if keys.y_cuts is None or keys.compared_y is None:
        y = cells.repeated(np.array(values[-1].tolist()))
    else:
        total = np.maximum(cells.weights, 1e-300)
        mean = cells.sums[:, 4] / total
        deviation = np.sqrt(np.maximum(cells.sums[:, 5] / total - mean**2, 0.0))
        # Neighbouring slices lie to both sides of the mean, so that mean and variance of y are those of the rows.
        index = np.arange(len(weights)) - cells.repeated(cells.first)
        n, unpaired = cells.n_slices, cells.n_slices % 2
        sides = np.where(index < cells.repeated(n - unpaired), 2.0 * (index % 2) - 1.0, 0.0)
        y = cells.repeated(mean) + cells.repeated(deviation * np.sqrt(n / np.maximum(n - unpaired, 1))) * sides
        if needs_labels(options.criterion):
            lower = np.concatenate(([-np.inf], keys.y_cuts))[values[-1].astype(np.int64)]
            numbers = np.searchsorted(keys.compared_y, lower, side="right")
            ranges = build_groups({Y_COLUMN: numbers}, max_groups=1000, of="strata")
            layers = (
                Strata(ranges, (keys.compared_y,))
                if layers is None
                else cross_strata(Strata(ranges, (keys.compared_y,)), layers)
            )
    made = response.of(y, weights, owner)
    check_target(groups, cells.weights, options, made)
    index = cells.repeated(np.arange(len(cells.keys)))
    data = TrainingData(
        None,
        y,
        made,
        groups.select(index),
        weights,
        None if columns.encoder is not None else np.array(columns.features, dtype=object),
        None if layers is None else layers.select(index),
        Represented(int(cells.counts.sum()), cells.repeated(cells.sums[:, 3] / cells.n_slices)),
    )
    data.resolve(options)  # raises where there is nothing to compare
    return data


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
