"""SQL queries for some columns of files, or for all; columns are numbered, since names may differ in case only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport.tables.files._layouts import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairtransport.tables.column_roles import Columns
    from fairtransport.tables.files._layouts import Layout

__all__ = ["guessed_type", "query_all", "query_used"]

_READ_AS_TEXT = frozenset({"numbers", "text", "BOOLEAN", "JSON"})  # kinds of groups in files without types
_NUMBERS = frozenset({"BIGINT", "INTEGER", "HUGEINT", "DOUBLE", "FLOAT"})


def query_used(layouts: Sequence[Layout], columns: Columns, *, as_text: bool, numeric_strata: bool = False) -> str:
    """Return a query for columns, as c0, c1, ...; with ``as_text``, groups are cast to text.

    With ``numeric_strata`` columns of strata that contain numbers are read as such, not as text.
    """
    parts = []
    for layout in layouts:
        chosen = []
        for number, name in enumerate(columns):
            column = quoted(layout.engine_names[layout.names.index(name)])
            if as_text and name in columns.sensitive_features:
                column = f"CAST({column} AS VARCHAR)"
            chosen.append(f"{column} AS c{number}")
        parts.append(_select(chosen, layout.source(_types(layouts, layout, columns, numeric_strata=numeric_strata))))
    return "\nUNION ALL\n".join(parts)


def query_all(layouts: Sequence[Layout], columns: Columns | None, *, as_text: bool, guess: bool) -> str:
    """Return a query for all columns, as n0, n1, ..., and then for the named columns, as u0, u1, ..."""
    names = layouts[0].names
    parts = []
    for layout in layouts:
        types: dict[int, str | None] = dict.fromkeys(range(len(layout.names)))
        if guess:
            types |= enumerate(layout.guess())
        if columns is not None:
            types |= _types(layouts, layout, columns)
        identifiers = {name: quoted(layout.engine_names[layout.names.index(name)]) for name in names}
        chosen = [f"{identifiers[name]} AS n{index}" for index, name in enumerate(names)]
        if columns is not None:
            casts = _cast(columns, identifiers, as_text=as_text)
            chosen += [f"{column} AS u{index}" for index, column in enumerate(casts)]
        parts.append(_select(chosen, layout.source(types)))
    return "\nUNION ALL\n".join(parts)


def _cast(columns: Columns, identifiers: Mapping[str, str], *, as_text: bool) -> Iterator[str]:
    for name in columns:
        if name in {columns.score, columns.weight}:
            yield f"CAST({identifiers[name]} AS DOUBLE)"
        elif as_text and name in columns.sensitive_features:
            yield f"CAST({identifiers[name]} AS VARCHAR)"
        else:
            yield identifiers[name]


def _select(chosen: Sequence[str], source: str) -> str:
    return f"SELECT {', '.join(chosen)} FROM {source}"  # noqa: S608 - names are quoted


def guessed_type(layouts: Sequence[Layout], name: str) -> str:
    """Return the type of a column in the first file, inferred where the file does not store it."""
    return layouts[0].guess()[layouts[0].names.index(name)]


def _types(
    layouts: Sequence[Layout], layout: Layout, columns: Columns, *, numeric_strata: bool = False
) -> dict[int, str | None]:
    """Return the indices of the columns, and the type that each is read as; None for its own type."""
    types: dict[int, str | None] = {layout.names.index(name): None for name in columns}
    if layout.typed:
        return types
    if columns.label is not None:
        types[layout.names.index(columns.label)] = guessed_type(layouts, columns.label)
    for name in (*columns.sensitive_features, *columns.strata):
        if layout.kind(name) in _READ_AS_TEXT:
            guess = guessed_type(layouts, name) if numeric_strata and name in columns.strata else "VARCHAR"
            types[layout.names.index(name)] = guess if guess in _NUMBERS else "VARCHAR"
    for name in filter(None, (columns.score, columns.weight)):
        if layout.files[0].format == "csv" or layout.kind(name) in {"numbers", "JSON"}:
            types[layout.names.index(name)] = "DOUBLE"
    return types
