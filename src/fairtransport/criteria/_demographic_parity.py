"""Strong demographic parity: the scores of all groups have the same distribution."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.penalties.comparisons import Comparisons

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["demographic_parity"]

# The number of pairs is quadratic in the number of groups. Beyond this many, each group is compared with all rows,
# which has the same solutions.
_MAX_PAIRED = 20


def demographic_parity(
    groups: Groups, *, target: NDArray[np.float64] | None = None, row_weights: NDArray[np.float64] | None = None
) -> Comparisons:
    """Return the comparisons of strong demographic parity for the rows of a table.

    Parameters
    ----------
    groups : Groups
        Groups without rows, or whose rows have no weight, are left out. Groups may overlap.
    target : ndarray, optional
        Scores of a fixed distribution that every group is compared with, as in the paper; by default groups are
        compared with each other: all pairs of up to 20 groups, and each group with all rows beyond that.
    row_weights : ndarray of shape (n_rows,), optional

    Returns
    -------
    Comparisons
        All pairs have weight 1; see `weigh_by_reliability`.

    Examples
    --------
    >>> from fairtransport.groups import make_groups
    >>> demographic_parity(make_groups(["a", "b", "c", "a"])).pairs.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    used = [
        number
        for number, rows in enumerate(groups.rows)
        if rows.size and (row_weights is None or row_weights[rows].sum() > 0.0)
    ]
    # Sums of floating-point numbers depend on their order, which must not depend on the groups' names.
    used.sort(key=lambda number: (groups.rows[number].size, int(groups.rows[number][0])))
    cells = [groups.rows[number] for number in used]
    names: list[int | None] = [*used]
    n = len(cells)
    if target is not None:
        pairs = [(cell, n) for cell in range(n)]
    elif n <= _MAX_PAIRED:
        pairs = list(combinations(range(n), 2))
    else:
        pairs = [(cell, n) for cell in range(n)]
        cells, names = [*cells, np.unique(np.concatenate(cells))], [*names, None]
    return Comparisons.of_cells(
        groups.n_rows,
        cells,
        pairs,
        targets=() if target is None else (target,),
        row_weights=row_weights,
        names=names,
    )
