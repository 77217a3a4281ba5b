"""Layouts of CSV and JSON lines files, whose columns have no types of their own."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtransport.tables.files._csv_head import first_bytes, read_head
from fairtransport.tables.files._layouts import SAMPLE, Layout, describe, literal, literals, paths_of, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairtransport.tables.files._csv_head import Head
    from fairtransport.tables.files.paths import FoundFile

__all__ = ["CsvOptions", "csv_layouts", "json_layouts"]

_LINES = "format = 'newline_delimited', records = true, map_inference_threshold = -1"
_SAMPLED_BYTES = 1 << 16


@dataclass(frozen=True)
class CsvOptions:
    """Options of CSV files that the files themselves do not state.

    Parameters
    ----------
    delimiter : str or None
        Inferred when None.
    encoding : str
    null : tuple of str
        Texts that mean a missing value, besides the empty text.
    decimal : str
        Decimal separator.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    null: tuple[str, ...] = ()
    decimal: str = "."

    def dialect(self, head: Head) -> str:
        """Return the options as arguments of ``read_csv`` in SQL."""
        return (
            f"header = true, skip = {head.skipped}, delim = {literal(head.delimiter)}, quote = '\"', escape = '\"', "
            f"strict_mode = true, nullstr = {literals(('', *self.null))}, encoding = {literal(self.encoding)}, "
            f"decimal_separator = {literal(self.decimal)}"
        )


@dataclass(frozen=True, eq=False)
class _Csv(Layout):
    """CSV files; the engine names columns c0, c1, ..., since it ignores the case of names."""

    dialect: str
    connection: Any

    typed = False

    def source(self, types: Mapping[int, str | None]) -> str:
        columns = _struct((name, types.get(index) or "VARCHAR") for index, name in enumerate(self.engine_names))
        return f"read_csv({paths_of(self.files)}, auto_detect = false, columns = {columns}, {self.dialect})"

    def guess(self) -> tuple[str, ...]:
        sample = (
            f"read_csv({paths_of(self.files[:1])}, names = {literals(self.engine_names)}, {self.dialect}, "
            f"sample_size = {SAMPLE}, auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR'])"
        )
        return describe(self.connection, sample)[1]


def csv_layouts(files: Sequence[FoundFile], connection: Any, options: CsvOptions) -> Iterator[Layout]:
    """Yield the layouts of CSV files, from their first lines."""

    def inspect(file: FoundFile) -> Head:
        return read_head(file, delimiter=options.delimiter, encoding=options.encoding)

    for head, same_files in runs(files, inspect):
        engine_names = tuple(f"c{index}" for index in range(len(head.names)))
        types = ("VARCHAR",) * len(engine_names)
        yield _Csv(same_files, head.names, engine_names, types, options.dialect(head), connection)


@dataclass(frozen=True, eq=False)
class _Json(Layout):
    typed = False

    def source(self, types: Mapping[int, str | None]) -> str:
        columns = _struct((self.names[index], kind or self.types[index]) for index, kind in types.items())
        return f"read_json({paths_of(self.files)}, {_LINES}, columns = {columns})"


def json_layouts(files: Sequence[FoundFile], connection: Any) -> Iterator[Layout]:
    """Yield the layouts of JSON lines files, from their first objects."""

    def inspect(file: FoundFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
        _check_keys(file)
        return describe(connection, f"read_json({paths_of([file])}, {_LINES}, sample_size = {SAMPLE})")

    for (names, types), same_files in runs(files, inspect):
        yield _Json(same_files, names, names, types)


def _check_keys(file: FoundFile) -> None:
    """Raise when the engine could not tell the keys of the first objects apart, or could not address one."""
    keys: set[str] = set()
    for number, line in enumerate(first_bytes(file, _SAMPLED_BYTES).splitlines(), start=1):
        record: Any = {}
        with contextlib.suppress(ValueError, RecursionError):  # the engine reports malformed lines
            record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError(f"{file.path}, line {number}: the line is not a JSON object.")  # noqa: TRY004
        keys.update(record)
    if len({key.casefold() for key in keys}) < len(keys):
        raise ValueError(f"{file.path} has names that differ only in case; rename one.")
    if "" in keys:
        raise ValueError(f"{file.path} has a column whose name is empty; rename it.")


def _struct(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in pairs) + "}"
