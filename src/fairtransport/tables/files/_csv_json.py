"""CSV and JSON lines: text, in which columns hold what we say they hold."""

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

_LINES = "format = 'newline_delimited'"
_LOOKED_AT = 1 << 16


@dataclass(frozen=True)
class CsvOptions:
    """What a CSV file does not say about itself.

    Parameters
    ----------
    delimiter : str or None
        Found when None.
    encoding : str
    null : tuple of str
        Texts that mean a missing value, besides nothing at all.
    decimal : str
        The sign before decimals.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    null: tuple[str, ...] = ()
    decimal: str = "."

    def dialect(self, head: Head) -> str:
        """Return what the engine is to know, as SQL."""
        return (
            f"header = true, skip = {head.skipped}, delim = {literal(head.delimiter)}, quote = '\"', escape = '\"', "
            f"strict_mode = true, nullstr = {literals(('', *self.null))}, encoding = {literal(self.encoding)}, "
            f"decimal_separator = {literal(self.decimal)}"
        )


@dataclass(frozen=True, eq=False)
class _Csv(Layout):
    """The engine calls columns c0, c1 and so on: it does not tell names apart that differ in case only."""

    dialect: str
    connection: Any

    typed = False

    def source(self, wanted: Mapping[int, str | None]) -> str:
        columns = _struct((name, wanted.get(place) or "VARCHAR") for place, name in enumerate(self.engine_names))
        return f"read_csv({paths_of(self.files)}, auto_detect = false, columns = {columns}, {self.dialect})"

    def guess(self) -> tuple[str, ...]:
        looked = (
            f"read_csv({paths_of(self.files[:1])}, names = {literals(self.engine_names)}, {self.dialect}, "
            f"sample_size = {SAMPLE}, auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR'])"
        )
        return describe(self.connection, looked)[1]


def csv_layouts(files: Sequence[FoundFile], connection: Any, options: CsvOptions) -> Iterator[Layout]:
    """Read the first line of each file."""

    def look(file: FoundFile) -> Head:
        return read_head(file, delimiter=options.delimiter, encoding=options.encoding)

    for head, alike in runs(files, look):
        own = tuple(f"c{place}" for place in range(len(head.names)))
        yield _Csv(alike, head.names, own, ("VARCHAR",) * len(own), options.dialect(head), connection)


@dataclass(frozen=True, eq=False)
class _Json(Layout):
    typed = False

    def source(self, wanted: Mapping[int, str | None]) -> str:
        columns = _struct((self.names[place], kind or self.types[place]) for place, kind in wanted.items())
        return f"read_json({paths_of(self.files)}, {_LINES}, columns = {columns})"


def json_layouts(files: Sequence[FoundFile], connection: Any) -> Iterator[Layout]:
    """Look at the first objects of each file."""

    def look(file: FoundFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
        _check_keys(file)
        return describe(connection, f"read_json({paths_of([file])}, {_LINES}, sample_size = {SAMPLE})")

    for (names, types), alike in runs(files, look):
        yield _Json(alike, names, names, types)


def _check_keys(file: FoundFile) -> None:
    """Raise when the first objects have keys that differ in case only: the engine renames one, and reads nothing."""
    keys: set[str] = set()
    for line in first_bytes(file, _LOOKED_AT).splitlines():
        with contextlib.suppress(ValueError, RecursionError):  # broken, or too deep: the engine says so
            found = json.loads(line)
            keys.update(found if isinstance(found, dict) else ())
    if len({key.casefold() for key in keys}) < len(keys):
        raise ValueError(f"{file.path} has names that differ in capital letters only; rename one.")


def _struct(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in pairs) + "}"
