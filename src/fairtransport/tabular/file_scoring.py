"""Files of raw rows -> files with scores: one pass over the rows, in their order, with bounded memory."""

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


def collect_file(table: FileTable, *, tell: Callable[[float], None] | None = None) -> Any:
    """Read all rows of files into memory.

    Parameters
    ----------
    table : FileTable
    tell : callable, optional
        Takes the share that is read.

    Returns
    -------
    pyarrow.Table
        Text as text: what a column holds is the model's to find out.
    """
    arrow: Any = import_module("pyarrow")
    batches = table.batches()
    return arrow.Table.from_batches(list(_telling(batches, table, tell)), schema=batches.schema)


def score_file(
    model: TableModel,
    table: FileTable,
    open_output: Callable[[Any], AbstractContextManager[Callable[[Any], None]]],
    *,
    output: str = "score",
    decision: str | None = None,
    threshold: float = 0.5,
    sensitive_features: Sequence[str] | None = None,
    tell: Callable[[float], None] | None = None,
) -> dict[str, int]:
    """Write a table with one or two more columns; rows keep their order.

    Parameters
    ----------
    model : TableModel
    table : FileTable
    open_output : callable
        Takes a `pyarrow.Schema` and returns a context of a function that writes a `pyarrow.RecordBatch`; see
        `fairtransport.tables.files.writers`.
    output : str, default "score"
        Name of the column of scores.
    decision : str, optional
        Name of a column that is 1 where the score is above the threshold, 0 where not.
    threshold : float, default 0.5
    sensitive_features : sequence of str, optional
        What the sensitive columns are called here; see `fairtransport.tabular.score_rows`.
    tell : callable, optional
        Takes the share of the table that is done.

    Returns
    -------
    dict of str to int
        ``rows`` and ``scored``, ``positive`` decisions where they are asked for, and the counts of `RowScores`.
    """
    arrow: Any = import_module("pyarrow")
    check_real(threshold, name="threshold", most=1.0)
    given = dict(zip(model.sensitive_features, sensitive_features or model.sensitive_features, strict=False))
    absent = [name for name in model.columns if name not in table.names and given.get(name) not in table.names]
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
        for rows in _telling(batches, table, tell):
            found = model.score_rows(arrow.Table.from_batches([rows]), sensitive_features=sensitive_features)
            gone = np.isnan(found.scores)
            added = [arrow.array(found.scores, mask=gone)]
            counts["rows"] += gone.size
            counts["scored"] += int(gone.size - np.count_nonzero(gone))
            if decision is not None:
                above = found.scores > threshold
                counts["positive"] += int(np.count_nonzero(above))
                added.append(arrow.array(above.astype(np.int8), mask=gone))
            for reason, cells in found.counts.items():
                counts[reason] = counts.get(reason, 0) + cells
            write(arrow.RecordBatch.from_arrays([*rows.columns, *added], schema=schema))
    return counts


def _telling(batches: Any, table: FileTable, tell: Callable[[float], None] | None) -> Iterator[Any]:
    for rows, _ in batches:
        yield rows
        if tell is not None:
            tell(table.share())
