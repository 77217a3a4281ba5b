"""Settings of boosted trees by the size of the table, where the user chose none."""

from __future__ import annotations

import math

__all__ = ["ROUNDS", "column_share", "is_small", "n_leaves"]

#: The largest number of rounds, and the learning rate.
ROUNDS = {"n_estimators": 200, "learning_rate": 0.1}

_FEWEST_LEAVES, _MOST_LEAVES = 4, 31
_ROWS_OF_LEAVES = 36  # a tree has a leaf for each of this many rows, under the root
_SMALL_TABLE = 5_000
_FEW_COLUMNS = 8  # up to which each tree sees all


def n_leaves(n_rows: int) -> int:
    """Return the leaves of a tree: 4 for 500 rows, 31, as in LightGBM, from 35,000 on.

    Examples
    --------
    >>> [n_leaves(n) for n in (100, 500, 2_000, 5_000, 20_000, 100_000)]
    [4, 4, 7, 12, 24, 31]
    """
    return min(max(round(math.sqrt(n_rows / _ROWS_OF_LEAVES)), _FEWEST_LEAVES), _MOST_LEAVES)


def is_small(n_rows: int) -> bool:
    """Whether a table is so small that a second thread costs more than it gains."""
    return n_rows <= _SMALL_TABLE


def column_share(n_columns: int) -> float:
    """Return the share of the columns that each tree sees."""
    return 0.5 if n_columns > _FEW_COLUMNS else 1.0
