"""Columns -> codes: which groups the rows of a table form, and which of them each row belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import Coded, check_number, code_column, cross_codes, short_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.groups._labels import GroupLabel

__all__ = ["code_groups"]


def code_groups(
    columns: Mapping[str, Any], *, grouping: str, missing: str, max_groups: float
) -> tuple[tuple[GroupLabel, ...], tuple[NDArray[Any], ...]]:
    """Return the labels of the groups and the memberships of the rows; see `Groups` for both.

    Parameters
    ----------
    columns : mapping of str to column
    grouping, missing : str
        As in `make_groups`.
    max_groups : float
        Largest number of groups.

    Returns
    -------
    labels : tuple
    memberships : tuple of arrays of unsigned integers
    """
    coded = {name: code_column(column, name, max_groups) for name, column in columns.items()}
    gaps = {
        name: int(np.count_nonzero(codes == len(values) - 1))
        for name, (values, codes) in coded.items()
        if None in values
    }
    if gaps and missing == "error":
        counts = " and ".join(f"{size} rows of column {name!r}" for name, size in gaps.items())
        raise ValueError(
            f"sensitive_features has missing values in {counts}. Drop these rows, fill the values, or make "
            'them a group of their own with missing="group".'
        )
    if grouping == "crossed":
        labels, codes = _cross(list(coded.values()))
        memberships = [codes]
    else:
        labels = [(name, value) for name, (values, _) in coded.items() for value in values]
        before = np.cumsum([0, *(len(values) for values, _ in coded.values())])
        kind = short_type(len(labels))
        memberships = [codes + start.astype(kind) for (_, codes), start in zip(coded.values(), before, strict=False)]
    check_number(len(labels), columns, max_groups)
    return tuple(labels), tuple(memberships)


def _cross(coded: list[Coded]) -> Coded:
    """Return the combinations of values that occur, in the order of the values, and the code of each row."""
    if len(coded) == 1:
        return coded[0]
    values, codes = coded[0]
    labels: list[Any] = [(value,) for value in values]
    for values, column_codes in coded[1:]:
        size = len(values)
        present, codes = cross_codes(codes, column_codes, size)
        labels = [(*labels[pair // size], values[pair % size]) for pair in present.tolist()]
    return labels, codes
