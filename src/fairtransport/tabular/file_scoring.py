"""Scores for the rows of files: one pass over the rows, in their order, with bounded memory."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from fairtransport._validation import check_real
from fairtransport.tables import FileTable, open_files
from fairtransport.tables.files import check_open, table_writer
from fairtransport.tabular._model import TableModel
from fairtransport.tabular._row_scorer import RowScorer
from fairtransport.tabular.rows import by_kind


def collect_file(
    table: FileTable | str | os.PathLike[str],
    *,
    guess: bool = False,
    most: float = math.inf,
    on_progress: Callable[[float], None] | None = None,
) -> Any:
    """Read all rows of a file into memory.

    Parameters
    ----------
    table : FileTable or path
        An open file, as from `fairtransport.tables.open_files`, or its path.
    guess : bool, default=False
        Infer which columns of a CSV file are numbers; all are text otherwise, as models of raw tables read them.
    most : float, optional
        Largest number of cells, rows times columns.
    on_progress : callable, optional
        Called with the share of the file that has been read.

    Returns
    -------
    pyarrow.Table or None
        None where there are more cells than ``most``.
    """
    if isinstance(table, str | os.PathLike):
        with open_files([table]) as file:
            return collect_file(file, guess=guess, most=most, on_progress=on_progress)
    arrow: Any = import_module("pyarrow")
    batches, rows, n_cells = table.batches(guess=guess), [], 0
    for batch in _report_progress(batches, table, on_progress):
        n_cells += batch.num_rows * batch.num_columns
        if n_cells > most:
            return None
        rows.append(batch)
    return arrow.Table.from_batches(rows, schema=batches.schema)


@dataclass
class FileScores:
    """The result of `score_file`."""

    rows: int = 0
    scored: int = 0
    positive: int | None = None
    set_aside: dict[str, int] = field(default_factory=dict)
    replaced: Counter[tuple[str, str]] = field(default_factory=Counter)  # cells, by kind and column

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Numbers of cells that were replaced, by kind and column."""
        return by_kind(self.replaced)


def score_file(
    scorer: RowScorer | TableModel,
    table: FileTable | str | os.PathLike[str],
    out: str | os.PathLike[str] | Callable[[Any], AbstractContextManager[Callable[[Any], None]]],
    *,
    output: str = "score",
    decision: str | None = None,
    threshold: float = 0.5,
    on_set_aside: Callable[[int, str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> FileScores:
    """Write a table with a column of scores, and one of decisions where asked for; rows keep their order.

    Parameters
    ----------
    scorer : TableModel or RowScorer
        A fitted model, or one with settings of its own for unknown groups and names of columns.
    table : FileTable or path
        Open files, as from `fairtransport.tables.open_files`, or a path; they may be larger than memory.
    out : path, or callable
        The file to write, its format by its extension; it appears when all rows are written. Or a function of the
        schema that returns a context, within which batches are written.
    output, decision : str, optional
        Names of the columns of scores, and of decisions (1 above the ``threshold``).
    threshold : float, default=0.5
    on_set_aside : callable, optional
        Called with the number of a row without a score, and the reason.
    on_progress : callable, optional
        Called with the share of the files that has been read.

    Returns
    -------
    FileScores
        Counts of rows: all, scored, positive, set aside by reason.
    """
    arrow: Any = import_module("pyarrow")
    if isinstance(table, str | os.PathLike):
        called: Any = {"on_set_aside": on_set_aside, "on_progress": on_progress}
        with open_files(table) as file:
            return score_file(scorer, file, out, output=output, decision=decision, threshold=threshold, **called)
    check_open(table)
    scorer = scorer if isinstance(scorer, RowScorer) else RowScorer(scorer)
    open_output = out if callable(out) else _file_writer(table, out)
    check_real(threshold, name="threshold", most=1.0)
    scorer.check_columns(table.names, of="file")
    for name in [output] if decision is None else [output, decision]:
        table.check_new(name)
    if output == decision:
        raise ValueError(f"Scores and decisions cannot both be called {output!r}.")
    batches = table.batches()
    schema = batches.schema.append(arrow.field(output, arrow.float64()))
    if decision is not None:
        schema = schema.append(arrow.field(decision, arrow.int8()))
    done = FileScores(positive=None if decision is None else 0)
    with open_output(schema) as write:
        for rows in _report_progress(batches, table, on_progress):
            result = scorer.score_rows(arrow.Table.from_batches([rows]))
            missing = np.isnan(result.scores)
            added = [arrow.array(result.scores, mask=missing)]
            if decision is not None:
                above = result.scores > threshold
                done.positive = (done.positive or 0) + int(np.count_nonzero(above))
                added.append(arrow.array(above.astype(np.int8), mask=missing))
            for row, reason in result.reasons.items():
                done.set_aside[reason] = done.set_aside.get(reason, 0) + 1
                if on_set_aside is not None:
                    on_set_aside(done.rows + row + 1, reason)
            done.replaced.update({key: cells.size for key, cells in result.replaced.items()})
            done.rows += missing.size
            done.scored += int(missing.size - np.count_nonzero(missing))
            write(arrow.RecordBatch.from_arrays([*rows.columns, *added], schema=schema))
    return done


def _file_writer(table: FileTable, path: str | os.PathLike[str]) -> Callable[[Any], Any]:
    table.check_output(path)
    return partial(table_writer, path)


def _report_progress(batches: Any, table: FileTable, on_progress: Callable[[float], None] | None) -> Iterator[Any]:
    for rows, _ in batches:
        yield rows
        if on_progress is not None:
            on_progress(table.share())
