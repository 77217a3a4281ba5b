"""Whether files have the columns that are named, once each, and hold the same kind of values in them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fairtransport.tables.column_roles import suggest_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.tables.column_roles import Columns
    from fairtransport.tables.files._layouts import Layout

__all__ = ["check_all", "check_used"]


def check_used(layouts: Sequence[Layout], columns: Columns) -> None:
    """Raise when a column is not there once, in every file, with the same kind of values."""
    for layout in layouts:
        counts = Counter(layout.names)
        for name in columns:
            if name not in counts:
                raise ValueError(_say_absent(name, layout))
            if counts[name] > 1:
                raise ValueError(f"{layout.files[0].path} has {counts[name]} columns named {name!r}; rename them.")
    _check_kinds(layouts, list(columns))
    if len({name.casefold() for name in columns}) < len(list(columns)):
        raise ValueError("Two of the columns that are named differ in capital letters only; rename one.")


def check_all(layouts: Sequence[Layout], columns: Columns | None) -> None:
    """Raise when files differ in their columns, two columns are named alike, or scores are no numbers."""
    first = layouts[0]
    for layout in layouts:
        alike = [name for name, count in Counter(layout.names).items() if count > 1]
        if alike:
            raise ValueError(f"{layout.files[0].path} has several columns named {_say(alike[0])}; rename them.")
        for name in sorted({*first.names} ^ {*layout.names}):
            with_it, without = (first, layout) if name in first.names else (layout, first)
            raise ValueError(f"{with_it.files[0].path} has a column {_say(name)}, and {without.files[0].path} has not.")
    _check_kinds(layouts, first.names)
    for name in filter(None, (columns.score, columns.weight) if columns is not None else ()):
        kind = first.kind(name)
        if first.files[0].format != "csv" and kind not in {"numbers", "JSON"}:
            raise TypeError(f"Column {name!r} holds {kind}, not numbers. Cast it first, or name another column.")


def _check_kinds(layouts: Sequence[Layout], names: Sequence[str]) -> None:
    first = layouts[0]
    for layout in layouts[1:]:
        for name in names:
            ours, theirs = first.kind(name), layout.kind(name)
            if first.typed and ours != theirs:
                raise ValueError(
                    f"Column {_say(name)} holds {ours} in {first.files[0].path} and {theirs} in {layout.files[0].path}."
                )


def _say_absent(name: str, layout: Layout) -> str:
    told = f"{layout.files[0].path} has no column {name!r}"
    if any(_is_number(one) for one in layout.names):  # then it is a row, and rows are not shown
        return f"{told}; its first line holds numbers, and should hold the names of the columns."
    if any(_is_long(one) for one in layout.names):  # then it may hold rows
        return f"{told}; a name in its first line goes on over several lines: perhaps a quote is not closed."
    return f"{told}; {suggest_names(name, list(layout.names))}"


def _say(name: str) -> str:
    return "of several lines" if _is_long(name) else repr(name)


def _is_long(name: str) -> bool:
    return len(name.splitlines()) > 1


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
