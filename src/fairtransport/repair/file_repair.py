"""Files of scores -> files of repaired scores: one pass over the rows, in their order, with bounded memory."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config

from fairtransport._labels import positive_label
from fairtransport._validation import check_real
from fairtransport.groups import make_groups
from fairtransport.histograms import GroupHistograms
from fairtransport.tables.files.writers import table_writer
from fairtransport.transport.many_maps import move_by_code

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.histograms import Grid
    from fairtransport.repair.quantile import QuantileRepair
    from fairtransport.tables import Columns, FileTable

__all__ = ["FileRepair", "repair_file"]

_UNKNOWN, _MISSING = -1, -2


@dataclass(frozen=True, eq=False)
class FileRepair:
    """What `repair_file` wrote.

    Parameters
    ----------
    counts : dict of str to int
        ``rows``, all of them; ``clamped``, scores outside the fitted range; and ``no score``, ``no group`` and
        ``unknown group``, which have no repaired score.
    before, after : GroupHistograms
        Of the rows with a repaired score, counted as they were written.
    """

    counts: dict[str, int]
    before: GroupHistograms
    after: GroupHistograms


def repair_file(
    repair: QuantileRepair,
    table: FileTable,
    columns: Columns,
    path: str | os.PathLike[str],
    *,
    output: str,
    as_text: bool = False,
    guess: bool = False,
    pos_label: Any = None,
    tell: Callable[[float], None] | None = None,
) -> FileRepair:
    """Write a table with one more column, the repaired scores; rows keep their order.

    Parameters
    ----------
    repair : QuantileRepair
        Fitted to counts: `QuantileRepair.fit_counts`.
    table : FileTable
    columns : Columns
        ``score`` and ``sensitive_features``, in the order of the fit; ``label`` and ``weight`` for ``before`` and
        ``after``.
    path : path
        Its end says the format.
    output : str
        Name of the new column.
    as_text, guess : bool
        As in `FileTable.batches`.
    pos_label : label, optional
        The positive one.
    tell : callable, optional
        Takes the share of the table that is done.

    Returns
    -------
    FileRepair

    Notes
    -----
    The same map as `TableRepair.transform`, which joins on the engine of the user. A join does not keep the
    order of rows; here each part is moved in memory, by the compiled loop of `QuantileRepair.transform`.
    """
    table.check_new(output)
    arrow: Any = import_module("pyarrow")
    batches = table.batches(columns, as_text=as_text, guess=guess)
    schema = batches.schema.append(arrow.field(output, arrow.float64()))
    mover = _Mover(repair)
    counts = dict.fromkeys(("rows", "clamped", "no score", "no group", "unknown group"), 0)
    tally = _Tally(mover.grid, repair, columns)
    with ExitStack() as stack:
        write = stack.enter_context(table_writer(path, schema))
        for rows, used in batches:
            scores = _floats(used[columns.score])
            codes = mover.codes([used[name] for name in columns.sensitive_features])
            kept = mover.count(scores, codes, counts)
            before, after = mover.move(scores[kept], codes[kept])
            images = np.full(scores.size, np.nan)
            images[kept] = after
            column = arrow.array(images, mask=~kept)
            write(arrow.RecordBatch.from_arrays([*rows.columns, column], schema=schema))
            tally.add(kept, codes[kept], before, after, used)
            if tell is not None:
                tell(table.share())
        found = tally.histograms(pos_label)  # before the file appears: labels may be wrong
    return FileRepair(counts, *found)


class _Mover:
    """The maps of a fitted repair, for rows that may be outside its range or of no group that it knows."""

    def __init__(self, repair: QuantileRepair) -> None:
        if repair.grid_ is None:
            raise ValueError("This repair was fitted to arrays; files need the maps that fit_counts learns.")
        self.grid: Grid = repair.grid_
        self._maps, self._amount = repair.maps_, check_real(repair.amount, name="amount", most=1.0)
        labels = [label if isinstance(label, tuple) else (label,) for label in repair.groups_.labels]
        self._values = [list(dict.fromkeys(column)) for column in zip(*labels, strict=True)]
        places = {label: place for place, label in enumerate(labels)}
        table = [places.get(label, _UNKNOWN) for label in product(*self._values)]
        self._table = np.array(table, dtype=np.int64).reshape([len(values) for values in self._values])

    def codes(self, columns: list[Any]) -> NDArray[np.int64]:
        """Return the group of each row: its place, or that it is unknown or missing."""
        parts = [_places(column, values) for column, values in zip(columns, self._values, strict=True)]
        whole = np.stack(parts)
        codes = self._table[tuple(np.maximum(whole, 0))]
        codes[(whole == _UNKNOWN).any(axis=0)] = _UNKNOWN
        codes[(whole == _MISSING).any(axis=0)] = _MISSING
        return codes

    def count(self, scores: NDArray[np.float64], codes: NDArray[np.int64], counts: dict[str, int]) -> NDArray[np.bool_]:
        """Add up what happens to the rows, and return those that get a repaired score."""
        absent = np.isnan(scores)
        missing = ~absent & (codes == _MISSING)
        unknown = ~absent & (codes == _UNKNOWN)
        kept: NDArray[np.bool_] = ~(absent | missing | unknown)
        clamped = kept & ((scores < self.grid.low) | (scores > self.grid.high))
        for name, rows in (
            ("clamped", clamped),
            ("no score", absent),
            ("no group", missing),
            ("unknown group", unknown),
        ):
            counts[name] += int(np.count_nonzero(rows))
        counts["rows"] += scores.size
        return kept

    def move(
        self, scores: NDArray[np.float64], codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the scores, clamped to the range, and their images."""
        within = np.clip(scores, self.grid.low, self.grid.high)
        moved = move_by_code(
            within, codes.astype(np.uint32), self._maps, self._amount, n_threads=config.NUMBA_NUM_THREADS
        )
        return within, np.clip(moved, self.grid.low, self.grid.high)


class _Tally:
    """Histograms before and after, added up part by part."""

    def __init__(self, grid: Grid, repair: QuantileRepair, columns: Columns) -> None:
        self._grid, self._groups, self._columns = grid, repair.groups_, columns
        self._labels: list[Any] = []
        self._sums: list[GroupHistograms | None] = [None, None]

    def add(
        self,
        kept: NDArray[np.bool_],
        codes: NDArray[np.int64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        used: dict[str, Any],
    ) -> None:
        counted = np.ones(codes.size, dtype=np.bool_)
        weights = labels = None
        if self._columns.weight is not None:
            weights = _floats(used[self._columns.weight])[kept]
            counted &= np.isfinite(weights) & (weights >= 0)
        if self._columns.label is not None:
            labels = self._label_codes(used[self._columns.label])[kept]
            counted &= labels >= 0
        held = None if weights is None else weights[counted]
        for number, scores in enumerate((before, after)):
            part = GroupHistograms.from_cells(
                self._grid,
                self._groups,
                cells=codes[counted],
                nodes=self._grid.place_checked(scores[counted]),
                masses=np.ones(np.count_nonzero(counted)) if held is None else held,
                squares=None if held is None else held**2,
                rows=None if held is None else np.ones(held.size),
                labels=None if labels is None else labels[counted],
            )
            total = self._sums[number]
            self._sums[number] = part if total is None else total + part

    def _label_codes(self, column: Any) -> NDArray[np.int64]:
        """Return the place of each label among those seen so far; missing ones have none."""
        encoded = column.dictionary_encode()
        for value in encoded.dictionary.to_pylist():
            if value is not None and value == value and value not in self._labels:  # noqa: PLR0124 - NaN
                self._labels.append(value)
        if len(self._labels) > 2:
            positive_label(self._labels, source=f"Column {self._columns.label!r}")  # raises
        return _places(column, self._labels)

    def histograms(self, pos_label: Any) -> tuple[GroupHistograms, GroupHistograms]:
        before, after = self._sums
        if before is None or after is None or not before.rows.any():
            raise ValueError("No row gets a repaired score: none has both a score and a group that the fit has seen.")
        if self._columns.label is None or not self._labels:
            return before, after
        ordered = make_groups({self._columns.label: self._labels}).labels
        positive = positive_label(ordered, pos_label, source=f"Column {self._columns.label!r}")
        if positive == self._labels[0]:  # it was counted as the negative one
            return _swap_classes(before), _swap_classes(after)
        return before, after


def _swap_classes(histograms: GroupHistograms) -> GroupHistograms:
    squares = None if histograms.squares is None else histograms.squares[::-1].copy()
    return replace(histograms, masses=histograms.masses[::-1].copy(), squares=squares)


def _floats(column: Any) -> NDArray[np.float64]:
    """Return a column of floats; a missing one is NaN."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _places(column: Any, values: list[Any]) -> NDArray[np.int64]:
    """Return the place of each row's value among ``values``, or that it is unknown or missing."""
    encoded = column.dictionary_encode()
    known = {value: place for place, value in enumerate(values)}
    seen = encoded.dictionary.to_pylist()
    absent = [value is None or value != value for value in seen]  # noqa: PLR0124 - NaN
    places = [_MISSING if gone else known.get(value, _UNKNOWN) for value, gone in zip(seen, absent, strict=True)]
    indices = encoded.indices.fill_null(len(seen)).to_numpy(zero_copy_only=False)
    return np.array([*places, _MISSING], dtype=np.int64)[indices]
