"""Training on a table by the names of its columns: in memory where it is small, otherwise where its rows are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np

from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport._sklearn import few_threads
from fairtransport.linear._partitions import EncodedRows, FileParts, Journal, Partitions, RawParts
from fairtransport.linear._table_problem import build_table_problem
from fairtransport.linear._table_reading import TableColumns, check_columns, summarise, to_floats
from fairtransport.linear._training import FitResult, train_lbfgs, train_problem, train_sgd
from fairtransport.linear._training_data import TrainingOptions, validate_training_data
from fairtransport.tables import FileTable, open_files
from fairtransport.tables.column_roles import close_names
from fairtransport.training.responses import BinaryResponse, Response

__all__ = [
    "EncodedRows",
    "Journal",
    "Partitions",
    "RawParts",
    "TableColumns",
    "opened",
    "read_small",
    "train_parts",
    "train_table",
]

#: Numbers of a table (rows times columns) up to which it is read into memory: 400 MB in double precision.
MOST_IN_MEMORY = 50_000_000


def train_table(
    table: Any,
    options: TrainingOptions,
    response: type[Response],
    owner: str,
    *,
    label: str,
    sensitive_features: str | Sequence[str],
    features: Sequence[str] | None,
    strata: str | Sequence[str] | None,
    weight: str | None,
    checkpoint: str | os.PathLike[str] | None,
) -> tuple[tuple[str, ...], FitResult]:
    """Return the names of the features and the result of the training."""
    with opened(table) as source:
        names = source.names if isinstance(source, RawParts) else source.column_names
        roles = {"sensitive_features": sensitive_features, "strata": strata, "features": features}
        columns = _columns_of(tuple(names), label, roles, weight, classifies=issubclass(response, BinaryResponse))
        rows = read_small(source, columns.names)
        if rows is not None:
            return columns.features, _train_in_memory(rows, columns, options, response, owner)
        return columns.features, train_parts(source, columns, options, response, owner, checkpoint=checkpoint)


def train_parts(
    source: RawParts,
    columns: TableColumns,
    options: TrainingOptions,
    response: type[Response],
    owner: str,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
) -> FitResult:
    """Train on rows that stay where they are."""
    if options.sgd is not None:
        raise ValueError("solver='sgd' needs all rows in memory: this table stays where it is. Use fit.")
    journal = None if checkpoint is None else Journal(checkpoint)
    with few_threads(None):
        problem, parts = build_table_problem(source, columns, options, response, owner, journal=journal)
        try:
            result = train_problem(problem)
        finally:
            parts.close()
    if journal is not None:
        journal.remove()
    result.attributes.update({name: result.deferred.pop(name)() for name in list(result.deferred)})
    cells = problem.coarse_loss.cells
    members = problem.rows.groups.select(cells.first).rows
    result.attributes["group_sizes_"] = np.array([int(cells.counts[rows].sum()) for rows in members])
    return result


@contextmanager
def opened(table: Any, *, raw: bool = False) -> Iterator[Any]:
    """Open a table: as an Arrow table where it is in memory, as raw parts where it is not.

    With ``raw``, columns of files that do not store types are text.
    """
    if isinstance(table, (FileTable, RawParts)):
        yield table if isinstance(table, RawParts) else FileParts(table, raw=raw)
        return
    paths = [table] if isinstance(table, (str, os.PathLike)) else table
    if isinstance(paths, (list, tuple)) and paths and all(isinstance(path, (str, os.PathLike)) for path in paths):
        with open_files(paths) as files:
            yield FileParts(files, raw=raw)
        return
    try:
        frame = nw.from_native(table)
    except TypeError:
        raise TypeError(
            "table must be a path, a list of paths, or a table of pandas, polars, pyarrow, DuckDB, Dask or PySpark; "
            f"got a {type(table).__name__}."
        ) from None
    if isinstance(frame, nw.DataFrame):
        yield frame.to_arrow()
    elif frame.implementation.is_duckdb():
        yield FileParts(_Relation(table))
    elif frame.implementation.is_dask():
        from fairtransport.linear._dask_partitions import DaskParts  # noqa: PLC0415 - loads Dask

        yield DaskParts(table)
    elif frame.implementation.is_pyspark():
        from fairtransport.linear._spark_partitions import SparkParts  # noqa: PLC0415 - loads PySpark

        yield SparkParts(table)
    else:
        raise TypeError(f"A lazy table of {frame.implementation} cannot be trained on: write it to Parquet files.")


class _Relation:
    """A relation of DuckDB, read as files are."""

    def __init__(self, relation: Any) -> None:
        self._relation, self.names = relation, relation.columns

    def scan(self, names: Sequence[str], *, raw: bool = False) -> Iterator[tuple[Any, None]]:  # noqa: ARG002
        """Yield batches of some columns."""
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        for batch in self._relation.project(quoted).to_arrow_reader(1 << 17):
            yield batch, None


def _columns_of(
    names: tuple[str, ...], label: str, roles: dict[str, Any], weight: str | None, *, classifies: bool
) -> TableColumns:
    """Return the columns by their roles; by default features are all that have no other role than that of a stratum."""
    sensitive, strata, chosen = (
        () if value is None else (value,) if isinstance(value, str) else tuple(value) for value in roles.values()
    )
    others = {label, *sensitive, *(() if weight is None else (weight,))}
    if roles["features"] is None:
        chosen = tuple(name for name in names if name not in others)
    absent = [name for name in dict.fromkeys((*others, *strata, *chosen)) if name not in names]
    if absent:
        close = close_names(absent[0], names)  # not all names: those of a file without a header are a row
        raise ValueError(f"The table has no {say_columns(absent)}{f'; {close}' if close else '.'}")
    if not sensitive or not chosen:
        raise ValueError(f"{'features' if sensitive else 'sensitive_features'} must name at least one column.")
    if label in {*sensitive, *strata, *chosen, weight}:
        raise ValueError(f"Column {label!r} is the label and cannot have another role.")
    return TableColumns(chosen, label, sensitive, strata, weight, classifies)


def read_small(source: Any, names: Sequence[str]) -> Any:
    """Return the rows as an Arrow table, or None where they are too many for memory."""
    if not isinstance(source, RawParts):
        return source
    if not isinstance(source, FileParts):
        return _collect(source, names) if source.is_remote else None
    batches, n_numbers = [], 0
    for batch in source.batches(names):
        batches.append(batch)
        n_numbers += batch.num_rows * len(names)
        if n_numbers > MOST_IN_MEMORY:
            return None
    if not n_numbers:
        raise ValueError("The table has no rows.")
    return load_extra("pyarrow").Table.from_batches(batches)


def _collect(source: RawParts, names: Sequence[str]) -> Any:
    """Return the rows of workers, or None where they are too many, or of several types, which `read_cells` names."""
    arrow, n_rows = load_extra("pyarrow"), sum(source.summaries(_count_rows, names[:1]))
    if not 0 < n_rows * len(names) <= MOST_IN_MEMORY:
        return None
    try:
        return arrow.concat_tables(source.summaries(_all_rows, names), promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        return None


def _count_rows(rows: Any) -> int:
    return int(rows.num_rows)


def _all_rows(rows: Any) -> Any:
    return rows


def _train_in_memory(
    rows: Any, columns: TableColumns, options: TrainingOptions, response: type[Response], owner: str
) -> FitResult:
    """Train as ``fit`` does."""
    check_columns(summarise(rows, columns), columns)
    X = np.column_stack([to_floats(rows.column(name)) for name in columns.features])
    label = rows.column(columns.label)
    y = to_floats(label) if not columns.classifies else np.array(label.to_pylist())
    data = validate_training_data(
        X,
        response.read(y, owner),
        response=response,
        owner=owner,
        options=options,
        feature_names=np.array(columns.features, dtype=object),
        sensitive_features={name: rows.column(name) for name in columns.sensitive},
        strata={name: rows.column(name) for name in columns.strata} or None,
        sample_weight=None if columns.weight is None else to_floats(rows.column(columns.weight)),
    )
    with few_threads(X):
        return train_lbfgs(data, options) if options.sgd is None else train_sgd(data, options, options.sgd)
