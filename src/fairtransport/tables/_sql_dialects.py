"""Dialects of SQL: identifiers, literals, types, and how text and numbers compare.

Each dialect is written so that it does not depend on settings of the server, such as whether a backslash escapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIALECTS", "Dialect"]

_TYPES = ((bool, "BOOLEAN"), (int, "BIGINT"), (float, "DOUBLE PRECISION"), (str, "VARCHAR"))
_INT64 = 1 << 63


@dataclass(frozen=True)
class Dialect:
    """Standard SQL, as DuckDB reads it.

    Attributes
    ----------
    name : str
    mark : str
        Quotation mark of identifiers, doubled within them.
    most : int or None
        Largest length of an identifier; longer ones would be truncated or refused.
    """

    name: str
    mark: str = '"'
    most: int | None = None

    def identifier(self, name: str) -> str:
        """Return a name as a quoted identifier."""
        if not name or "\0" in name:
            raise ValueError(f"{self.name} has no column or table named {name!r}; rename it.")
        if self.most is not None and self._length(name) > self.most:
            raise ValueError(
                f"{name[: self.most]!r}... is longer than the {self.most} that a name may have in {self.name}; "
                "rename it."
            )
        return self.mark + name.replace(self.mark, 2 * self.mark) + self.mark

    def _length(self, name: str) -> int:
        return len(name)

    def literal(self, value: Any) -> str:
        """Return text, a number or a boolean as a literal."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return str(value).upper()
        return self.number(value) if isinstance(value, float) else repr(int(value))

    def text(self, value: str) -> str:
        """Return text as a literal."""
        return "'" + value.replace("'", "''") + "'"

    def number(self, value: float) -> str:
        """Return a finite number as a literal; with an exponent, since other literals would be decimal numbers."""
        shown = repr(float(value))
        return shown if "e" in shown else f"{shown}e0"

    def column_type(self, values: Sequence[Any], name: str) -> str:
        """Return the type of a column with these values."""
        kinds = {type(value) for value in values}
        if kinds == {int} and not all(-_INT64 <= value < _INT64 for value in values):
            raise ValueError(
                f"Groups of column {name!r} are whole numbers beyond 64 bits, which databases do not have."
            )
        for kind, word in _TYPES:
            if kinds == {kind}:
                return self.text_type(values) if kind is str else word
        raise TypeError(f"Groups of column {name!r} are not text, whole numbers, numbers or booleans alone.")

    def text_type(self, values: Sequence[str]) -> str:  # noqa: ARG002 - others need the longest
        """Return the type of a column of text, which compares character by character."""
        return "VARCHAR"

    def as_text(self, column: str) -> str:
        """Return a column of text in the form in which groups are compared; its own collation may ignore case."""
        return f'CAST({column} AS VARCHAR) COLLATE "C"'

    def as_number(self, column: str) -> str:
        """Return a column of numbers in double precision; NaN becomes missing."""
        number = f"CAST({column} AS DOUBLE PRECISION)"
        return f"NULLIF({number}, CAST('NaN' AS DOUBLE PRECISION))"

    def ceiling(self, number: str) -> str:
        """Return the least whole number that is not below another one, which is above -1."""
        return f"CAST(CEIL({number}) AS INTEGER)"


class _PostgreSql(Dialect):
    def _length(self, name: str) -> int:
        return len(name.encode())

    def text(self, value: str) -> str:
        if "\0" in value:
            raise ValueError("A group contains the character U+0000, which PostgreSQL does not have.")
        plain = super().text(value)
        return "E" + plain.replace("\\", "\\\\") if "\\" in value else plain


class _Sqlite(Dialect):
    def as_text(self, column: str) -> str:
        return column  # compared by the collation of the column on the left, that of the lookup table

    def text(self, value: str) -> str:
        return f"CAST(X'{value.encode().hex()}' AS TEXT)" if "\0" in value else super().text(value)

    def as_number(self, column: str) -> str:
        return column  # SQLite has no NaN

    def ceiling(self, number: str) -> str:
        """Return it without CEIL, which not every build has."""
        return f"CAST({number} AS INTEGER) + (({number}) > CAST({number} AS INTEGER))"


class _MySql(Dialect):
    """Text is compared as bytes: collations of MySQL ignore spaces at the end, and most ignore case."""

    def text(self, value: str) -> str:
        if value.isascii() and value.isprintable() and "\\" not in value:
            return super().text(value)
        return f"X'{value.encode().hex()}'"  # independent of NO_BACKSLASH_ESCAPES and of the client's character set

    def text_type(self, values: Sequence[str]) -> str:
        return f"VARBINARY({max(1, *(len(value.encode()) for value in values))})"

    def as_text(self, column: str) -> str:
        return f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)"

    def as_number(self, column: str) -> str:
        return f"({column} + 0e0)"  # MySQL has no NaN

    def ceiling(self, number: str) -> str:
        return f"CAST(CEIL({number}) AS SIGNED)"


#: Dialects by name.
DIALECTS: dict[str, Dialect] = {
    "duckdb": Dialect("DuckDB"),
    "mysql": _MySql("MySQL", mark="`", most=64),
    "postgresql": _PostgreSql("PostgreSQL", most=63),
    "sqlite": _Sqlite("SQLite"),
}
