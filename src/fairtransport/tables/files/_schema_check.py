"""Checks that files have the named columns, once each, with the same kinds of values."""

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
    """Raise unless every file has each named column once, with the same kind of values."""
    for layout in layouts:
        counts = Counter(layout.names)
        for name in columns:
            if name not in counts:
                raise ValueError(_repeated_message(name, layout) or _absent_message(name, layout))
            if counts[name] > 1:
                raise ValueError(f"{layout.files[0].path} has {counts[name]} columns named {name!r}; rename them.")
    _check_kinds(layouts, list(columns))


def check_all(layouts: Sequence[Layout], columns: Columns | None) -> None:
    """Raise when files have different columns, two columns have the same name, or scores are not numbers."""
    first = layouts[0]
    for layout in layouts:
        repeated = [name for name, count in Counter(layout.names).items() if count > 1]
        if repeated:
            raise ValueError(f"{layout.files[0].path} has several columns named {_show(repeated[0])}; rename them.")
        for name in sorted({*first.names} ^ {*layout.names}):
            with_it, without = (first, layout) if name in first.names else (layout, first)
            raise ValueError(
                f"{with_it.files[0].path} has a column {_show(name)}, and {without.files[0].path} has not."
            )
    _check_kinds(layouts, first.names)
    for name in filter(None, (columns.score, columns.weight) if columns is not None else ()):
        kind = first.kind(name)
        if first.files[0].format != "csv" and kind not in {"numbers", "JSON"}:
            raise TypeError(f"Column {name!r} contains {kind}, not numbers. Cast it first, or name another column.")


def _check_kinds(layouts: Sequence[Layout], names: Sequence[str]) -> None:
    first = layouts[0]
    for layout in layouts[1:]:
        for name in names:
            kind, other = first.kind(name), layout.kind(name)
            if first.typed and kind != other:
                raise ValueError(
                    f"Column {_show(name)} contains {kind} in {first.files[0].path} and {other} in "
                    f"{layout.files[0].path}."
                )


def _repeated_message(name: str, layout: Layout) -> str | None:
    """Return how to choose one of several columns of the same name; None where there are none."""
    known = [other for other in layout.names if other.rpartition("#")[0] == name]
    if len(known) < 2:
        return None
    return (
        f"{layout.files[0].path} has {len(known)} columns named {name!r}; choose one by its position: "
        f"{' or '.join(map(repr, known))}."
    )


def _absent_message(name: str, layout: Layout) -> str:
    message = f"{layout.files[0].path} has no column {name!r}"
    if any(map(_is_number, layout.names)):  # a row of data, which must not be shown
        return f"{message}; its first line contains numbers, and should contain the names of the columns."
    if any(map(_has_lines, layout.names)):  # may contain rows of data
        return f"{message}; a name in its first line extends over several lines: perhaps a quote is not closed."
    return f"{message}; {suggest_names(name, list(layout.names))}"


def _show(name: str) -> str:
    return "of several lines" if _has_lines(name) else repr(name)


def _has_lines(name: str) -> bool:
    return len(name.splitlines()) > 1


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
