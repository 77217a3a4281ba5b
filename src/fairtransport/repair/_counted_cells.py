"""Cells of a stratum and a group in counts: rows that were grouped by the columns of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.groups import Groups, make_groups
from fairtransport.strata import MOST_VALUES, Strata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.histograms import GroupHistograms

__all__ = ["CountedCells", "cells_of"]


@dataclass(frozen=True, eq=False)
class CountedCells:
    """Histograms of cells, apart: by group over all strata, and by group within each stratum.

    Parameters
    ----------
    groups : GroupHistograms
    strata : Strata
        Without rows.
    within : tuple of GroupHistograms
        Of each stratum, with all groups.
    """

    groups: GroupHistograms
    strata: Strata
    within: tuple[GroupHistograms, ...]

    @classmethod
    def split(cls, cells: GroupHistograms, columns: Sequence[str]) -> CountedCells:
        """Split histograms of rows that were grouped by the columns of strata and of groups.

        Parameters
        ----------
        cells : GroupHistograms
        columns : sequence of str
            Which of its columns are those of strata; the others are those of groups.

        Returns
        -------
        CountedCells
        """
        values = [label if isinstance(label, tuple) else (label,) for label in cells.groups.labels]
        table = dict(zip(cells.groups.columns, zip(*values, strict=True), strict=True))
        for name in columns:
            n_numbers = len({value for value in table[name] if _is_number(value)})
            if n_numbers > MOST_VALUES:
                raise ValueError(
                    f"Column {name!r} of the strata has {n_numbers} different numbers. Tables are compared within "
                    "the values of a column: add a column of ranges, or repair arrays, whose numbers are cut at "
                    "quantiles."
                )
        strata = make_groups({name: list(table[name]) for name in columns}, missing="group", max_groups=len(values))
        others = {name: list(column) for name, column in table.items() if name not in columns}
        groups = make_groups(others, missing="group", max_groups=len(values))
        in_cell = [np.full(len(groups), -1) for _ in range(len(strata))]
        for cell, (stratum, group) in enumerate(zip(strata.codes, groups.codes, strict=True)):
            in_cell[stratum][group] = cell
        nobody = np.empty(0, dtype=np.int64)
        parts = tuple(_select(cells, index, groups.select(nobody)) for index in in_cell)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return cls(total, Strata(strata.select(nobody), (None,) * len(columns)), parts)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, or the text of one: all values of CSV files are text."""
    if isinstance(value, bool) or value is None:
        return False
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _select(cells: GroupHistograms, index: NDArray[np.int64], groups: Groups) -> GroupHistograms:
    """Return the histograms of some cells as those of groups; the index of a cell without rows is negative."""
    found = index >= 0

    def expand(array: NDArray[Any], axis: int) -> NDArray[Any]:
        taken = np.take(array, np.maximum(index, 0), axis=axis)
        shape = [1] * array.ndim
        shape[axis] = index.size
        return np.asarray(taken * found.reshape(shape))

    squares = None if cells.squares is None else expand(cells.squares, 1)
    return replace(cells, groups=groups, masses=expand(cells.masses, 1), squares=squares, rows=expand(cells.rows, 0))


def cells_of(groups: Groups, strata: Strata | None) -> Groups:
    """Return the groups, or all cells of a stratum and a group, stratum by stratum, in columns of both; without rows.

    Examples
    --------
    >>> from fairtransport.strata import make_strata
    >>> cells = cells_of(make_groups({"sex": ["F", "M"]}), make_strata({"region": ["north", "south"]}))
    >>> cells.columns, cells.labels[:3]
    (('region', 'sex'), (('north', 'F'), ('north', 'M'), ('south', 'F')))
    """
    if strata is None:
        return groups
    if any(cuts is not None for cuts in strata.cuts):
        raise ValueError("The strata of this repair are ranges of numbers; a table has a column for each stratum.")
    first, second = (
        [label if isinstance(label, tuple) else (label,) for label in one.labels] for one in (strata.cells, groups)
    )
    spec = {
        "labels": [[*one, *other] for one, other in product(first, second)],
        "columns": [*strata.columns, *groups.columns],
        "grouping": "crossed",
        "missing": "group",
    }
    return Groups.from_spec(spec)
