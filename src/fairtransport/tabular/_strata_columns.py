"""Columns of a raw table that define strata: numbers as numbers, everything else as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.estimator_calls import take_rows
from fairtransport.tabular.column_plans import ColumnRules, LeftOut, plan_column
from fairtransport.tabular.value_parsing import encode_text, has_numeric_type, parse_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

__all__ = ["find_numeric", "read_strata"]


def find_numeric(
    columns: dict[str, Any], names: Sequence[str], *, categorical: Collection[str], decimal: str
) -> list[str]:
    """Return which of the columns contain numbers that are amounts, not codes; `TableEncoder` decides the same."""
    numeric = []
    for name in names:
        try:
            plan, _ = plan_column(name, columns[name], ColumnRules(decimal=decimal), categorical=name in categorical)
            is_number = plan.kind == "number"
        except LeftOut:  # constant, for instance
            is_number = has_numeric_type(columns[name]) and name not in categorical
        if is_number:
            numeric.append(name)
    return numeric


def read_strata(
    columns: dict[str, Any], names: Sequence[str], rows: NDArray[np.int64], *, numeric: Collection[str], decimal: str
) -> dict[str, NDArray[Any]]:
    """Return some rows of these columns as `fairtransport.strata.make_strata` takes them, missing values as such."""
    strata: dict[str, NDArray[Any]] = {}
    for name in names:
        column = take_rows(columns[name], rows)
        if name in numeric:
            strata[name] = parse_numbers(column, name, decimal)[0]
        else:
            words, codes = encode_text(column, name)
            strata[name] = np.array([*words, None], dtype=object)[codes]
    return strata
