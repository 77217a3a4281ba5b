"""Scores for the rows of files: one pass over the rows, in their order, with bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from fairtransport._validation import check_real
from fairtransport.tables import FileTable, open_files
from fairtransport.tabular._row_scorer import RowScorer
from fairtransport.tabular.rows import by_kind


def collect_file(
    table: FileTable | str,
    *,
    guess: bool = False,
    most: float = math.inf,
    on_progress: Callable[[float], None] | None = None,
) -> Any:
    """Read all rows of files, or of the file of a path, into memory; ``guess`` which columns of text are numbers.

    None where there are more than ``most`` cells (rows times columns).
    """
    if isinstance(table, str):
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
    scorer: RowScorer,
    table: FileTable,
    open_output: Callable[[Any], AbstractContextManager[Callable[[Any], None]]],
    *,
    output: str = "score",
    decision: str | None = None,
    threshold: float = 0.5,
    on_set_aside: Callable[[int, str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> FileScores:
    """Write a table with a column of scores, and one of decisions where asked for; rows keep their order."""
    arrow: Any = import_module("pyarrow")
    check_real(threshold, name="threshold", most=1.0)
    scorer.check_columns(table.names, of="file")
    for name in filter(None, (output, decision)):
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


def _report_progress(batches: Any, table: FileTable, on_progress: Callable[[float], None] | None) -> Iterator[Any]:
    for rows, _ in batches:
        yield rows
        if on_progress is not None:
            on_progress(table.share())
