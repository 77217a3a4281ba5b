"""Values that a model knows, found from cells of any type: those of groups and of categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import distinct_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["group_values", "match_column", "values_of_texts"]


def group_values(groups: Groups, index: int) -> list[Any]:
    """Return the values of one sensitive column that occur in the labels of groups."""
    labels: list[Any] = [*groups.labels, *groups.pooled, *groups.dropped]
    labels = [label for label in labels if label not in groups.pools]
    if groups.grouping == "each":
        return [label[1] for label in labels if label[0] == groups.columns[index]]
    return [label[index] for label in labels] if len(groups.columns) > 1 else labels


def values_of_texts(values: Iterable[Any]) -> dict[str, Any]:
    """Return which known value a text stands for; empty where all of them are text.

    An empty text stands for a missing value.

    Examples
    --------
    >>> values_of_texts([1, True, None])
    {'1': True, '1.0': 1, 'True': True, 'true': True, '': None}
    """
    parsed: dict[str, Any] = {}
    for value in values:
        if value is None or value != value:  # noqa: PLR0124 - NaN
            parsed[""] = value
        elif isinstance(value, (bool, np.bool_)):
            parsed |= {str(value): value, str(value).lower(): value, str(int(value)): value}
        elif isinstance(value, (int, float)):
            parsed |= {repr(value): value, repr(float(value)): value}
            if float(value).is_integer():
                parsed[str(int(value))] = value
    return parsed


def match_column(
    column: Any, name: str, known: Iterable[Any] | None, missing: Any = None
) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the cells of a column as the values that a model knows.

    Parameters
    ----------
    column : column
    name : str
    known : iterable or None
        Values that the model knows; None where it does not tell.
    missing : object, default=None
        What a missing value becomes.

    Returns
    -------
    values : ndarray of object
        A text that stands for a known value is replaced by it, and a number whose text is known by that text; other
        cells stay as they are.
    is_missing, is_unknown : ndarray of bool
    """
    known = [] if known is None else [*known]
    exact = {value: value for value in known if value == value}  # noqa: PLR0124 - without NaN
    texts = values_of_texts(known)
    raw, codes = distinct_values(column, name)
    values: list[Any] = []
    unknown: list[bool] = []
    for cell in raw:
        if cell is None or (isinstance(cell, float) and cell != cell) or (cell == "" and "" not in exact):  # noqa: PLR0124
            values.append(missing)
        elif cell in exact:
            values.append(exact[cell])
        else:
            text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
            values.append(texts.get(text, text if text in exact else cell))
        found = values[-1]
        unknown.append(found is not missing and found not in exact)
    table = np.empty(len(values) + 1, dtype=object)
    table[:] = [*values, missing]
    gaps = np.array([value is missing for value in values] + [True])
    return table[codes], gaps[codes], np.array([*unknown, False])[codes]
