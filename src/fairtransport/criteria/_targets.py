"""The parameter ``target`` of estimators, resolved for the groups of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.criteria._criterion import ComparedStratum
    from fairtransport.groups import Groups

__all__ = ["EACH_OTHER", "compares_each_other", "resolve_group_target"]

#: The value of ``target`` with which groups are compared with each other.
EACH_OTHER = "each_other"


def compares_each_other(target: Any) -> bool:
    """Return whether a ``target`` means that groups are compared with each other.

    Examples
    --------
    >>> compares_each_other("each_other"), compares_each_other([0.1, 0.9])
    (True, False)
    """
    return isinstance(target, str) and target == EACH_OTHER


def resolve_group_target(
    target: Any,
    scores: NDArray[np.float64],
    groups: Groups,
    weights: NDArray[np.float64] | None,
    stratum: ComparedStratum | None = None,
    *,
    score_range: tuple[float, float] | None = (0.0, 1.0),
) -> Sample:
    """Return the distribution that a ``target`` names, for groups with these scores.

    Parameters
    ----------
    target : str, label or array-like
        As in `fairtransport.transport.targets.resolve_target`.
    scores : ndarray of shape (n_rows,)
    groups : Groups
    weights : ndarray of shape (n_rows,) or None
    stratum : ComparedStratum, optional
        Use only the rows of this stratum.
    score_range : pair of float or None, default (0, 1)
        Range within which scores that are the target must lie; None for any.

    Returns
    -------
    Sample

    Examples
    --------
    >>> from fairtransport.groups import make_groups
    >>> resolve_group_target("b", np.array([0.1, 0.5]), make_groups(["a", "b"]), None).values
    array([0.5])
    """

    def sample(rows: Any) -> Sample:
        return Sample.from_values(scores[rows], None if weights is None else weights[rows])

    rows_by_group, members = groups.rows, tuple(range(len(groups)))
    everyone: Any = slice(None)
    if stratum is not None and not (stratum.label is None and stratum.stratum is None):
        rows_by_group, members, everyone = stratum.rows, stratum.groups, np.unique(np.concatenate(stratum.rows))
    return resolve_target(
        target,
        [sample(rows) for rows in rows_by_group],
        [rows.size if weights is None else weights[rows].sum() for rows in rows_by_group],
        labels=[groups.labels[group] for group in members],
        names=[groups.names[group] for group in members],
        everyone=sample(everyone),
        score_range=score_range,
    )
