"""Repair of scores in files: one pass over the rows, in their order, with bounded memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from itertools import product
from operator import add
from typing import Any

import numpy as np
from sklearn.base import clone

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._labels import positive_label
from fairtransport.criteria.criterion import needs_labels
from fairtransport.groups import Groups, make_groups
from fairtransport.histograms import Grid, GroupHistograms
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.repair.randomized_maps import SPLIT_MIX, mixed_bits
from fairtransport.repair.stratum_maps import CountedCells, cells_of
from fairtransport.tables import Columns, FileTable, TableCounts, count_table, open_files
from fairtransport.tables.files import check_open, table_writer

# What a repair does to rows that it was not fitted to, estimated from histograms of folds.

_FOLDS, _FEW_FOLDS, _MANY_GROUPS = 5, 2, 50
_DRAWS = 16  # of each counted score, of a randomised repair


def _n_folds(n_groups: int) -> int:
    """Return the number of folds; few where there are many groups, because each fold has histograms of all of them."""
    return _FOLDS if n_groups <= _MANY_GROUPS else _FEW_FOLDS


def _cross_fitted_histograms(
    folds: Sequence[GroupHistograms], repair: QuantileRepair, strata: Sequence[str]
) -> tuple[GroupHistograms, ...]:
    """Return the histograms of the repaired scores of each fold, by maps fitted to the other folds; or none.

    Distances have to be measured fold by fold and averaged. Summed over the folds, the scores would look as equal as
    those of the rows that the maps were fitted to: what a fold has more of in some bin, the others have less of.
    """
    parts = []
    for index, fold in enumerate(folds):
        others = reduce(add, [*folds[:index], *folds[index + 1 :]])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has issued it
                fitted = clone(repair).fit_counts(TableCounts(others.filled(), {}, {}), strata=strata)
        except ValueError:  # a fold holds all rows of the target, or of all groups but one
            return ()
        parts.append(_repair(fold, fitted))
    return tuple(parts)


def _repair(fold: GroupHistograms, fitted: QuantileRepair) -> GroupHistograms:
    cells = cells_of(fitted.groups_, fitted.strata_)
    index_of = {label: index for index, label in enumerate(cells.labels)}
    cell_of_group = np.array([index_of.get(label, -1) for label in fold.groups.labels])
    labels, groups, nodes = np.nonzero(fold.masses)
    # A randomised repair spreads the rows of a node over as many scores as there are draws.
    n_draws = _DRAWS if hasattr(fitted, "randomized_maps_") else 1
    labels, groups, nodes = (np.repeat(one, n_draws) for one in (labels, groups, nodes))
    scores, moved = fold.grid.nodes[nodes], fold.grid.nodes[nodes]
    known = cell_of_group[groups] >= 0
    strata, codes = np.divmod(cell_of_group[groups[known]], len(fitted.groups_))
    if n_draws > 1:
        draws = np.tile((np.arange(n_draws) + 0.5) / n_draws, nodes.size // n_draws)[known]
        drawn = fitted.randomized_maps_.draw(scores[known], codes, draws)
        moved[known] = (1.0 - fitted.amount) * scores[known] + fitted.amount * drawn
    else:
        within = None if fitted.strata_ is None else strata
        moved[known] = fitted.move(scores[known], codes.astype(np.uint32), within)
    images = fold.grid.place_checked(np.clip(moved, fold.grid.low, fold.grid.high))
    repaired = GroupHistograms.from_cells(
        fold.grid,
        fold.groups,
        cells=groups,
        nodes=images,
        masses=fold.masses[labels, groups, nodes] / n_draws,
        squares=None if fold.squares is None else fold.squares[labels, groups, nodes] / n_draws,
        labels=labels if fold.has_labels else None,
    )
    return replace(repaired, rows=fold.rows)


_UNKNOWN, _MISSING = -1, -2


@dataclass(frozen=True, eq=False)
class FileRepair:
    """The result of `repair_file`."""

    counts: dict[str, int]
    before: GroupHistograms
    after: GroupHistograms
    held_out: tuple[GroupHistograms, ...] = ()
    strata: tuple[str, ...] = ()
    positive: Any = None  # the label that counts as positive

    def by_stratum(self, histograms: GroupHistograms) -> CountedCells:
        """Split histograms of cells by stratum."""
        return CountedCells.split(histograms, self.strata)


def repair_file(
    repair: QuantileRepair,
    table: FileTable | str | os.PathLike[str],
    columns: Columns,
    path: str | os.PathLike[str],
    *,
    output: str,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    as_text: bool = False,
    guess: bool = False,
    pos_label: Any = None,
    cross_fit: bool = False,
    on_progress: Callable[[float], None] | None = None,
) -> FileRepair:
    """Write a table with the repaired scores in one more column; rows keep their order.

    Parameters
    ----------
    repair : QuantileRepair
        One that is not fitted is fitted to the counts of the table first.
    table : FileTable or path
        Open files, as from `fairtransport.tables.open_files`, or a path; they may be larger than memory.
    columns : Columns
        Scores, sensitive features, labels and strata.
    path : path
        The file to write, its format by its extension; it appears when all rows are written.
    output : str
        Name of the new column.
    range : pair of float, optional
        Lowest and highest score that there may be, for a repair that is not fitted; [0, 1] when omitted.
    as_text, guess : bool, default=False
        Read groups as text; infer which columns of a CSV file are numbers.
    pos_label : label, optional
        The positive one, as ``table.read_label`` reads it; of a path also as the text that the file has.
    cross_fit : bool, default=False
        Also repair each of several parts of the rows by maps of the others.
    on_progress : callable, optional
        Called with the share of the files that has been read.

    Returns
    -------
    FileRepair
        Counts of rows, and histograms of scores before and after.

    Notes
    -----
    The maps are those of `TableRepair.transform`, which joins on the engine that holds the table. A join does not keep
    the order of rows; here each batch is repaired in memory, by the compiled loop of `QuantileRepair.transform`. The
    draw of a row in a randomised repair depends on its number in the table, so that two runs agree.
    """
    if not isinstance(repair, QuantileRepair):
        raise TypeError(f"repair must be a QuantileRepair; got {type(repair).__name__}.")
    if isinstance(table, str | os.PathLike):
        options: Any = {"as_text": as_text, "guess": guess, "cross_fit": cross_fit, "on_progress": on_progress}
        with open_files(table) as file:
            positive = None if pos_label is None else file.read_label(columns, str(pos_label))
            options |= {"output": output, "range": range, "pos_label": positive}
            return repair_file(repair, file, columns, path, **options)
    check_open(table)
    table.check_output(path)
    table.check_new(output)
    arrow: Any = import_module("pyarrow")
    if not hasattr(repair, "maps_"):
        labelled = {"pos_label": pos_label} if needs_labels(repair.criterion) else {}
        counted = Columns(
            columns.score, (*columns.strata, *columns.sensitive_features), columns.label if labelled else None
        )
        fitted = table.run(count_table, counted, range=range, groups=repair.groups, as_text=as_text, **labelled)
        repair.fit_counts(fitted, strata=columns.strata)
    batches = table.batches(columns, as_text=as_text, guess=guess)
    schema = batches.schema.append(arrow.field(output, arrow.float64()))
    repairer = _BatchRepairer(repair)
    keys = [*columns.strata, *columns.sensitive_features]
    repairer.check_keys(len(keys))
    counts = dict.fromkeys(("rows", "clamped", "no score", "no group", "unknown group"), 0)
    sums = _HistogramSums(repairer.grid, repairer.cells, columns, _n_folds(len(repairer.cells)) if cross_fit else 1)
    with table_writer(path, schema) as write:
        for rows, used in batches:
            scores = _floats(used[columns.score])
            codes = repairer.codes([used[name] for name in keys])
            numbers = counts["rows"] + np.arange(scores.size)
            kept = repairer.count(scores, codes, counts)
            before, after = repairer.repair(scores[kept], codes[kept], numbers[kept])
            images = np.full(scores.size, np.nan)
            images[kept] = after
            column = arrow.array(images, mask=~kept)
            write(arrow.RecordBatch.from_arrays([*rows.columns, column], schema=schema))
            sums.add(kept, codes[kept], before, after, used)
            if on_progress is not None:
                on_progress(table.share())
        folds, total, positive = sums.histograms(pos_label)  # invalid labels raise before the file appears
    held_out = _cross_fitted_histograms(folds, repair, columns.strata) if cross_fit else ()
    return FileRepair(counts, reduce(add, folds), total, held_out, columns.strata, positive)


class _BatchRepairer:
    """The maps of a fitted repair, for rows that may be outside its range or of an unknown group."""

    def __init__(self, repair: QuantileRepair) -> None:
        if repair.grid_ is None:
            raise ValueError("This repair was fitted to arrays; files need maps of counts (QuantileRepair.fit_counts).")
        self.grid: Grid = repair.grid_
        self.cells = cells_of(repair.groups_, repair.strata_)
        self._repair = repair
        labels = [label if isinstance(label, tuple) else (label,) for label in self.cells.labels]
        self._values = [list(dict.fromkeys(column)) for column in zip(*labels, strict=True)]
        indices = {label: index for index, label in enumerate(labels)}
        table = [indices.get(label, _UNKNOWN) for label in product(*self._values)]
        self._table = np.array(table, dtype=np.int64).reshape([len(values) for values in self._values])

    def check_keys(self, n_keys: int) -> None:
        """Raise unless there are as many columns of strata and groups as in training."""
        if n_keys != len(self._values):
            raise ValueError(
                f"The repair was fitted to {len(self._values)} columns of strata and groups, and {n_keys} are named."
            )

    def codes(self, columns: list[Any]) -> Ints:
        """Return the index of the group of each row, or a code for unknown or missing groups."""
        parts = np.stack([_value_codes(column, values) for column, values in zip(columns, self._values, strict=True)])
        codes = self._table[tuple(np.maximum(parts, 0))]
        codes[(parts == _UNKNOWN).any(axis=0)] = _UNKNOWN
        codes[(parts == _MISSING).any(axis=0)] = _MISSING
        return codes

    def count(self, scores: Floats, codes: Ints, counts: dict[str, int]) -> Bools:
        """Count the rows by what happens to them, and return which get a repaired score."""
        absent = np.isnan(scores)
        missing = ~absent & (codes == _MISSING)
        unknown = ~absent & (codes == _UNKNOWN)
        kept: Bools = ~(absent | missing | unknown)
        clamped = kept & ((scores < self.grid.low) | (scores > self.grid.high))
        found = {"clamped": clamped, "no score": absent, "no group": missing, "unknown group": unknown}
        for name, rows in found.items():
            counts[name] += int(np.count_nonzero(rows))
        counts["rows"] += scores.size
        return kept

    def repair(self, scores: Floats, codes: Ints, numbers: Ints) -> tuple[Floats, Floats]:
        """Return the scores, clamped to the range, and the repaired scores; ``numbers`` are those of the rows."""
        clamped = np.clip(scores, self.grid.low, self.grid.high)
        strata, groups = np.divmod(codes, len(self._repair.groups_))
        repaired = self._repair.move(
            clamped,
            groups.astype(np.uint32),
            None if self._repair.strata_ is None else strata,
            keys=numbers if hasattr(self._repair, "randomized_maps_") else None,
        )
        return clamped, np.clip(repaired, self.grid.low, self.grid.high)


class _HistogramSums:
    """Histograms of the scores before repair, by fold, and after it, summed over batches."""

    def __init__(self, grid: Grid, groups: Groups, columns: Columns, n_folds: int) -> None:
        self._grid, self._groups, self._columns = grid, groups, columns
        self._labels: list[Any] = []
        self._sums: list[GroupHistograms | None] = [None] * (n_folds + 1)  # of each fold before repair; of all after it
        self._n_rows = 0

    def add(self, kept: Bools, codes: Ints, before: Floats, after: Floats, used: dict[str, Any]) -> None:
        counted = np.ones(codes.size, dtype=np.bool_)
        weights = labels = None
        if self._columns.weight is not None:
            weights = _floats(used[self._columns.weight])[kept]
            counted &= np.isfinite(weights) & (weights >= 0)
        if self._columns.label is not None:
            labels = self._label_codes(used[self._columns.label])[kept]
            counted &= labels >= 0
        n_folds = len(self._sums) - 1
        # A hash of a row's number, so that any order of the rows gives balanced folds.
        numbers = np.arange(self._n_rows, self._n_rows + codes.size, dtype=np.uint64) * SPLIT_MIX
        folds = mixed_bits(numbers) % np.uint64(n_folds)
        self._n_rows += codes.size
        for fold, total in enumerate(self._sums):
            rows, scores = (counted & (folds == fold), before) if fold < n_folds else (counted, after)
            masses = np.ones(np.count_nonzero(rows)) if weights is None else weights[rows]
            part = GroupHistograms.from_cells(
                self._grid,
                self._groups,
                cells=codes[rows],
                nodes=self._grid.place_checked(scores[rows]),
                masses=masses,
                squares=None if weights is None else masses**2,
                rows=None if weights is None else np.ones(masses.size),
                labels=None if labels is None else labels[rows],
            )
            self._sums[fold] = part if total is None else total + part

    def _label_codes(self, column: Any) -> Ints:
        """Return the index of each label among those seen so far; negative where it is missing."""
        encoded = column.dictionary_encode()
        for value in encoded.dictionary.to_pylist():
            if value is not None and value == value and value not in self._labels:  # noqa: PLR0124 - NaN
                self._labels.append(value)
        if len(self._labels) > 2:
            positive_label(self._labels, source=f"Column {self._columns.label!r}")  # raises
        return _value_codes(column, self._labels)

    def histograms(self, pos_label: Any) -> tuple[list[GroupHistograms], GroupHistograms, Any]:
        """Return the histograms of each fold before repair, and of all rows after it, and the positive label."""
        summed = [one for one in self._sums if one is not None]
        if not summed or not summed[-1].rows.any():
            raise ValueError("No row gets a repaired score: none has both a score and a group that the fit has seen.")
        *folds, after = summed
        if self._columns.label is None or not self._labels:
            return folds, after, None
        ordered = make_groups({self._columns.label: self._labels}).labels
        positive = positive_label(ordered, pos_label, source=f"Column {self._columns.label!r}")
        if positive == self._labels[0]:  # it was counted as the negative one
            return [*map(_swap_classes, folds)], _swap_classes(after), positive
        return folds, after, positive


def _swap_classes(histograms: GroupHistograms) -> GroupHistograms:
    squares = None if histograms.squares is None else histograms.squares[::-1].copy()
    return replace(histograms, masses=histograms.masses[::-1].copy(), squares=squares)


def _floats(column: Any) -> Floats:
    """Return a column as floats, with NaN for missing values."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _value_codes(column: Any, values: list[Any]) -> Ints:
    """Return the index of the value of each row in ``values``, or a code for unknown or missing values."""
    encoded = column.dictionary_encode()
    indices = {value: index for index, value in enumerate(values)}
    seen = encoded.dictionary.to_pylist()
    missing = [value is None or value != value for value in seen]  # noqa: PLR0124 - NaN
    codes = [_MISSING if gone else indices.get(value, _UNKNOWN) for value, gone in zip(seen, missing, strict=True)]
    rows = encoded.indices.fill_null(len(seen)).to_numpy(zero_copy_only=False)
    return np.array([*codes, _MISSING], dtype=np.int64)[rows]
