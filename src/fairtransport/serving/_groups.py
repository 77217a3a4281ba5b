"""Groups of the rows of requests, for the figures by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.estimator_calls import last_step
from fairtransport.tabular import InputColumn, TableModel
from fairtransport.tabular.known_values import group_values, match_column
from fairtransport.tabular.value_parsing import normalize_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["GroupReader"]


class GroupReader:
    """Finder of the groups of rows.

    Parameters
    ----------
    groups : Groups
        Groups that the model knows.
    columns : sequence of str
        Sensitive columns.
    as_text : bool
        Whether values are compared as text, as a `TableModel` does.

    Attributes
    ----------
    names : tuple of str
        Names of the groups.
    """

    def __init__(self, groups: Groups, columns: Sequence[str], *, as_text: bool) -> None:
        self._groups, self._as_text = groups, as_text
        self.columns, self.names = tuple(columns), tuple(groups.names)
        self._codes: dict[tuple[Any, ...], tuple[int, ...]] = {}  # of known values, so it cannot grow without limit

    @classmethod
    def of_model(cls, model: Any) -> GroupReader | None:
        """Return the reader for a model; None if it knows no groups, or not the columns that define them."""
        if isinstance(model, TableModel):
            groups = model.known_groups
            return None if groups is None else cls(groups, model.sensitive_features, as_text=True)
        last = last_step(model)[1]
        holder = vars(last).get("repair_") or last
        groups = getattr(holder, "groups_", None)
        if groups is None or any(name.startswith("sensitive_feature_") for name in groups.columns):
            return None
        return cls(groups, groups.columns, as_text=False)

    def inputs(self) -> list[InputColumn]:
        """Return the sensitive columns, with the values that the model knows."""
        columns = []
        for index, name in enumerate(self.columns):
            values = dict.fromkeys(value for value in group_values(self._groups, index) if value is not None)
            is_text = not all(isinstance(value, (int, float)) for value in values)
            columns.append(InputColumn(name, "text" if is_text else "number", tuple(values)))
        return columns

    def codes(self, table: Any) -> NDArray[np.int64] | None:
        """Return the groups of each row, one column for each membership; ``len(names)`` means none.

        None if the table lacks a sensitive column.
        """
        names = table.column_names if hasattr(table, "column_names") else table
        if any(name not in names for name in self.columns):
            return None
        values = [*zip(*(_values(table[name]) for name in self.columns), strict=True)]
        unknown = {*values} - self._codes.keys()
        found = self._codes if not unknown else {**self._codes, **self._find([*unknown])}
        return np.array([found[value] for value in values], dtype=np.int64).reshape(len(values), -1)

    def _find(self, values: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[int, ...]]:
        """Return the groups of distinct values, and remember known ones."""
        table = {}
        for index, name in enumerate(self._groups.columns):
            column = np.empty(len(values), dtype=object)
            column[:] = [value[index] for value in values]
            if self._as_text:
                column[:] = [normalize_text(value) or "missing" for value in column]
            table[name] = match_column(column, name, group_values(self._groups, index))[0]
        memberships = self._groups.encode(table, unknown_group="pooled").memberships
        found = {value: tuple(int(codes[n]) for codes in memberships) for n, value in enumerate(values)}
        none = len(self.names)
        self._codes |= {value: codes for value, codes in found.items() if none not in codes}
        return found


def _values(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()
