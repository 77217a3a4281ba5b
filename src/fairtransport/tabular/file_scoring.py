"""Scores for the rows of files: one pass over the rows, in their order, with bounded memory."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport._validation import check_real
from fairtransport.tables.column_roles import suggest_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from fairtransport.tables import FileTable
    from fairtransport.tabular._model import TableModel

__all__ = ["collect_file", "score_file"]


def collect_file(table: FileTable, *, on_progress: Callable[[float], None] | None = None) -> Any:
    """Read all rows of files into memory.

    Parameters
    ----------
    table : FileTable
    on_progress : callable, optional
        Called with the share that is read.

    Returns
    -------
    pyarrow.Table
        Columns of text files are text: `TableModel` infers what they contain.
    """
    arrow: Any = import_module("pyarrow")
    batches = table.batches()
    return arrow.Table.from_batches(list(_report_progress(batches, table, on_progress)), schema=batches.schema)


def score_file(
    model: TableModel,
    table: FileTable,
    open_output: Callable[[Any], AbstractContextManager[Callable[[Any], None]]],
    *,
    output: str = "score",
    decision: str | None = None,
    threshold: float = 0.5,
    sensitive_features: Sequence[str] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, int]:
    """Write a table with a column of scores, and one of decisions where asked for; rows keep their order.

    Parameters
    ----------
    model : TableModel
    table : FileTable
    open_output : callable
        Called with a `pyarrow.Schema`; returns a context manager whose value is a function that writes a
        `pyarrow.RecordBatch`. See `fairtransport.tables.files.table_writer`.
    output : str, default "score"
        Name of the column of scores.
    decision : str, optional
        Name of a column that is 1 where the score is above the threshold and 0 elsewhere.
    threshold : float, default 0.5
    sensitive_features : sequence of str, optional
        Names of the sensitive columns in this table; see `fairtransport.tabular.score_rows`.
    on_progress : callable, optional
        Called with the share of the table that is done.

    Returns
    -------
    dict of str to int
        ``rows`` and ``scored``, ``positive`` decisions with ``decision``, and the counts of `RowScores`.
    """
    arrow: Any = import_module("pyarrow")
    check_real(threshold, name="threshold", most=1.0)
    names = dict(zip(model.sensitive_features, sensitive_features or model.sensitive_features, strict=False))
    absent = [name for name in model.columns if name not in table.names and names.get(name) not in table.names]
    if absent:
        close = f" {suggest_names(absent[0], list(table.names))}" if len(absent) == 1 else ""
        raise ValueError(f"The file has no {say_columns(absent)}, which the model needs.{close}")
    for name in filter(None, (output, decision)):
        table.check_new(name)
    if output == decision:
        raise ValueError(f"Scores and decisions cannot both be called {output!r}.")
    batches = table.batches()
    schema = batches.schema.append(arrow.field(output, arrow.float64()))
    if decision is not None:
        schema = schema.append(arrow.field(decision, arrow.int8()))
    counts = {"rows": 0, "scored": 0, **({"positive": 0} if decision is not None else {})}
    with open_output(schema) as write:
        for rows in _report_progress(batches, table, on_progress):
            result = model.score_rows(arrow.Table.from_batches([rows]), sensitive_features=sensitive_features)
            missing = np.isnan(result.scores)
            added = [arrow.array(result.scores, mask=missing)]
            counts["rows"] += missing.size
            counts["scored"] += int(missing.size - np.count_nonzero(missing))
            if decision is not None:
                above = result.scores > threshold
                counts["positive"] += int(np.count_nonzero(above))
                added.append(arrow.array(above.astype(np.int8), mask=missing))
            for reason, cells in result.counts.items():
                counts[reason] = counts.get(reason, 0) + cells
            write(arrow.RecordBatch.from_arrays([*rows.columns, *added], schema=schema))
    return counts


def _report_progress(batches: Any, table: FileTable, on_progress: Callable[[float], None] | None) -> Iterator[Any]:
    for rows, _ in batches:
        yield rows
        if on_progress is not None:
            on_progress(table.share())
