"""Layouts: files with the same columns, and the SQL that reads them.

Names of files and columns enter SQL only through `quoted` and `literal`.
"""

from __future__ import annotations

import glob
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fairtransport.tables.files.paths import FoundFile

__all__ = [
    "SAMPLE",
    "Layout",
    "describe",
    "kind_of",
    "literal",
    "literals",
    "paths_of",
    "quoted",
    "runs",
    "with_unique_names",
]

#: Number of rows from which types are inferred, in formats that do not store them.
SAMPLE = 20_480

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BIGNUM")


@dataclass(frozen=True, eq=False)
class Layout:
    """Files with the same columns.

    Parameters
    ----------
    files : tuple of FoundFile
    names : tuple of str
        Names of the columns in the files.
    engine_names : tuple of str
        Names of the columns in the engine.
    types : tuple of str
        Types of the columns in the engine.
    """

    files: tuple[FoundFile, ...]
    names: tuple[str, ...]
    engine_names: tuple[str, ...]
    types: tuple[str, ...]

    #: Whether the files store the types of their columns.
    typed = True

    def kind(self, name: str) -> str:
        """Return the kind of values of a column, as one word."""
        return kind_of(self.types[self.names.index(name)])

    def source(self, types: Mapping[int, str | None]) -> str:
        """Return the SQL of a table with at least the columns at these indices, of these types (None: unchanged)."""
        raise NotImplementedError

    def guess(self) -> tuple[str, ...]:
        """Return the types of the columns, inferred from the first rows where the files do not store them."""
        return self.types

    def share(self) -> float | None:
        """Return the share of the running scan that is done; None where the engine reports it."""
        return None


def with_unique_names(layout: Layout) -> Layout:
    """Tell columns of the same name apart by their positions: ``race#2`` and ``race#5``."""
    counts = Counter(layout.names)
    names = tuple(
        f"{name}#{position}" if counts[name] > 1 else name for position, name in enumerate(layout.names, start=1)
    )
    return layout if len({*names}) < len(names) else replace(layout, names=names)


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Return texts as an SQL list."""
    return f"[{', '.join(map(literal, texts))}]"


def paths_of(files: Iterable[FoundFile]) -> str:
    """Return files as an SQL list; pattern characters are escaped, since the engine treats names as patterns."""
    return literals(map(_escaped, files))


def _escaped(file: FoundFile) -> str:
    if not glob.has_magic(file.location):
        return file.location
    if "\\" in file.location:
        raise ValueError(f"{file.path} has a backslash and one of *?[ in its path, which the engine cannot open.")
    return glob.escape(file.location)


def kind_of(type_name: str) -> str:
    """Return the kind of values of a type of the engine, as one word.

    Examples
    --------
    >>> kind_of("UINTEGER"), kind_of("DECIMAL(9,2)"), kind_of("VARCHAR"), kind_of("DOUBLE[]")
    ('numbers', 'numbers', 'text', 'DOUBLE[]')
    """
    word = type_name if type_name.endswith("]") else type_name.partition("(")[0]
    if word in _NUMBERS or word.removeprefix("U") in _NUMBERS:
        return "numbers"
    return "text" if word in {"VARCHAR", "ENUM"} else type_name


def runs(
    files: Sequence[FoundFile], inspect: Callable[[FoundFile], Any]
) -> Iterator[tuple[Any, tuple[FoundFile, ...]]]:
    """Yield runs of consecutive files with the same properties; the order of the files is kept."""
    for properties, pairs in groupby(((inspect(file), file) for file in files), key=lambda pair: pair[0]):
        yield properties, tuple(file for _, file in pairs)


def describe(connection: Any, source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and types of the columns of a source in the engine."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 - quoted
    return tuple(row[0] for row in rows), tuple(row[1] for row in rows)
