"""Columns of files as SQL: those that are named, under their own names, or all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport.tables.files._layouts import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairtransport.tables.column_roles import Columns
    from fairtransport.tables.files._layouts import Layout

__all__ = ["guessed_type", "query_all", "query_used"]

_WORDS = frozenset({"numbers", "text", "BOOLEAN", "JSON"})  # kinds that are compared as text, where files are text


def query_used(layouts: Sequence[Layout], columns: Columns, *, as_text: bool) -> str:
    """Return a query for the columns, under their own names; ``as_text``: groups as text, whatever they hold."""
    parts = []
    for layout in layouts:
        wanted = _types(layouts, layout, columns)
        chosen = []
        for place in wanted:
            name, column = layout.names[place], quoted(layout.engine_names[place])
            if as_text and name in columns.sensitive_features:
                column = f"CAST({column} AS VARCHAR)"
            chosen.append(f"{column} AS {quoted(name)}")
        parts.append(_select(chosen, layout.source(wanted)))
    return "\nUNION ALL\n".join(parts)


def query_all(layouts: Sequence[Layout], columns: Columns | None, *, as_text: bool, guess: bool) -> str:
    """Return a query for all columns, called n0, n1 and so on, and then for those that are named, as u0, u1, ..."""
    names = layouts[0].names
    parts = []
    for layout in layouts:
        types: dict[int, str | None] = dict.fromkeys(range(len(layout.names)))
        if guess:
            types |= enumerate(layout.guess())
        if columns is not None:
            types |= _types(layouts, layout, columns)
        own = {name: quoted(layout.engine_names[layout.names.index(name)]) for name in names}
        chosen = [f"{own[name]} AS n{place}" for place, name in enumerate(names)]
        if columns is not None:
            chosen += [f"{column} AS u{place}" for place, column in enumerate(_cast(columns, own, as_text=as_text))]
        parts.append(_select(chosen, layout.source(types)))
    return "\nUNION ALL\n".join(parts)


def _cast(columns: Columns, own: Mapping[str, str], *, as_text: bool) -> Iterator[str]:
    for name in columns:
        if name in {columns.score, columns.weight}:
            yield f"CAST({own[name]} AS DOUBLE)"
        else:
            yield f"CAST({own[name]} AS VARCHAR)" if as_text and name in columns.sensitive_features else own[name]


def _select(chosen: Sequence[str], source: str) -> str:
    return f"SELECT {', '.join(chosen)} FROM {source}"  # noqa: S608 - all names went through quoted() and literal()


def guessed_type(layouts: Sequence[Layout], name: str) -> str:
    """Return the type of a column in the first file, by its first rows where the file does not say it."""
    return layouts[0].guess()[layouts[0].names.index(name)]


def _types(layouts: Sequence[Layout], layout: Layout, columns: Columns) -> dict[int, str | None]:
    """Return the places of the columns, and as what each is read; None: as what it is."""
    wanted: dict[int, str | None] = {layout.names.index(name): None for name in columns}
    if layout.typed:
        return wanted
    if columns.label is not None:
        wanted[layout.names.index(columns.label)] = guessed_type(layouts, columns.label)
    for name in (*columns.sensitive_features, *columns.strata):
        if layout.kind(name) in _WORDS:
            wanted[layout.names.index(name)] = "VARCHAR"
    for name in filter(None, (columns.score, columns.weight)):
        if layout.files[0].format == "csv" or layout.kind(name) in {"numbers", "JSON"}:
            wanted[layout.names.index(name)] = "DOUBLE"
    return wanted
