"""The parameter ``target`` of estimators, resolved for the groups of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    target: Any, scores: NDArray[np.float64], groups: Groups, weights: NDArray[np.float64] | None
) -> Sample:
    """Return the distribution that a ``target`` names, for groups with these scores.

    Parameters
    ----------
    target : str, label or array-like
        As in `fairtransport.transport.targets.resolve_target`.
    scores : ndarray of shape (n_rows,)
    groups : Groups
    weights : ndarray of shape (n_rows,) or None

    Returns
    -------
    Sample

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.groups import make_groups
    >>> resolve_group_target("b", np.array([0.1, 0.5]), make_groups(["a", "b"]), None).values
    array([0.5])
    """

    def sample(rows: Any) -> Sample:
        return Sample.from_values(scores[rows], None if weights is None else weights[rows])

    return resolve_target(
        target,
        [sample(rows) for rows in groups.rows],
        [rows.size if weights is None else weights[rows].sum() for rows in groups.rows],
        labels=groups.labels,
        names=groups.names,
        everyone=sample(slice(None)),
    )
