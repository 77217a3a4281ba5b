"""Files that are alike, as one source of the engine: their columns, and the SQL that reads them.

Names of files and columns enter SQL only through `quoted` and `literal`.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fairtransport.tables.files.paths import FoundFile

__all__ = ["SAMPLE", "Layout", "describe", "kind_of", "literal", "literals", "paths_of", "quoted", "runs"]

#: Rows that types are guessed from, in formats that do not tell them.
SAMPLE = 20_480

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BIGNUM")


@dataclass(frozen=True, eq=False)
class Layout:
    """Files with the same columns.

    Parameters
    ----------
    files : tuple of FoundFile
    names : tuple of str
        Of the columns, as the files have them.
    engine_names : tuple of str
        What the engine calls them.
    types : tuple of str
        The engine's types.
    """

    files: tuple[FoundFile, ...]
    names: tuple[str, ...]
    engine_names: tuple[str, ...]
    types: tuple[str, ...]

    #: Whether the files themselves say what their columns hold.
    typed = True

    def kind(self, name: str) -> str:
        """Return what a column holds, in a word."""
        return kind_of(self.types[self.names.index(name)])

    def source(self, wanted: Mapping[int, str | None]) -> str:
        """Return the SQL of a table with, at least, the columns at these places, of these types (None: their own)."""
        raise NotImplementedError

    def guess(self) -> tuple[str, ...]:
        """Return the types of the columns, by the first rows where the files do not say them."""
        return self.types

    def share(self) -> float | None:
        """Return how much of the running scan is done; None where the engine knows it."""
        return None


def quoted(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Return a list of texts as SQL."""
    return f"[{', '.join(map(literal, texts))}]"


def paths_of(files: Iterable[FoundFile]) -> str:
    """Return files as SQL. The engine takes every name for a pattern, so the signs of patterns are masked."""
    names = (str(file.path) for file in files)
    return literals(glob.escape(name) if glob.has_magic(name) else name for name in names)


def kind_of(type_name: str) -> str:
    """Return what a type of the engine holds, in a word.

    Examples
    --------
    >>> kind_of("UINTEGER"), kind_of("DECIMAL(9,2)"), kind_of("VARCHAR"), kind_of("DOUBLE[]")
    ('numbers', 'numbers', 'text', 'DOUBLE[]')
    """
    word = type_name if type_name.endswith("]") else type_name.partition("(")[0]
    if word in _NUMBERS or word.removeprefix("U") in _NUMBERS:
        return "numbers"
    return "text" if word in {"VARCHAR", "ENUM"} else type_name


def runs(files: Sequence[FoundFile], look: Callable[[FoundFile], Any]) -> Iterator[tuple[Any, tuple[FoundFile, ...]]]:
    """Put neighbours together that look alike. Others may not pass each other, for the order of the rows."""
    for seen, pairs in groupby(((look(file), file) for file in files), key=lambda pair: pair[0]):
        yield seen, tuple(file for _, file in pairs)


def describe(connection: Any, source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and types that the engine sees."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 - quoted
    return tuple(row[0] for row in rows), tuple(row[1] for row in rows)
