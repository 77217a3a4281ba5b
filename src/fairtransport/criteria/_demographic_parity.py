"""Strong demographic parity: the scores of all groups have the same distribution."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.penalties.comparisons import Comparisons

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["MAX_PAIRED_GROUPS", "demographic_parity", "pairs_of_groups"]

#: Largest number of groups of which all pairs are compared; beyond it each group is compared with everyone.
MAX_PAIRED_GROUPS = 20


def pairs_of_groups(n_groups: int) -> list[tuple[int, int]]:
    """Return the pairs of groups that are compared where there is no target.

    Parameters
    ----------
    n_groups : int

    Returns
    -------
    list of pairs of int
        All pairs of up to 20 groups. Their number is quadratic, so beyond that each group is compared with everyone,
        who has the index ``n_groups``. Both sums are zero exactly where all groups have the same distribution.

    Examples
    --------
    >>> pairs_of_groups(3)
    [(0, 1), (0, 2), (1, 2)]
    >>> len(pairs_of_groups(20)), len(pairs_of_groups(21)), pairs_of_groups(21)[-1]
    (190, 21, (20, 21))
    """
    if n_groups > MAX_PAIRED_GROUPS:
        return [(group, n_groups) for group in range(n_groups)]
    return list(combinations(range(n_groups), 2))


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
        compared with each other; see `pairs_of_groups`.
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
    pairs = pairs_of_groups(n) if target is None else [(cell, n) for cell in range(n)]
    if target is None and n > MAX_PAIRED_GROUPS:
        cells, names = [*cells, np.unique(np.concatenate(cells))], [*names, None]
    return Comparisons.of_cells(
        groups.n_rows,
        cells,
        pairs,
        targets=() if target is None else (target,),
        row_weights=row_weights,
        names=names,
    )
