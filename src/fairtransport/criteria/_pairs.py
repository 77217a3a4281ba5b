"""Which groups are compared with which, where there is no target."""

from __future__ import annotations

from itertools import combinations

__all__ = ["MAX_PAIRED_GROUPS", "pairs_of_groups"]

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
