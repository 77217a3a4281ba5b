"""Parameters of every ``partial_fit``: how long rows count, and what becomes of groups that ``fit`` did not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._validation import check_choice, check_real

if TYPE_CHECKING:
    from fairtransport.groups import Groups

__all__ = ["NEW_GROUPS", "NEW_GROUP_ROWS", "check_stream_parameters", "encode_batch_groups"]

#: What to do with a group that no batch had before.
NEW_GROUPS = ("error", "adopt")

#: Rows that the prior of a new group counts for.
NEW_GROUP_ROWS = 10.0


def check_stream_parameters(half_life: Any, new_groups: Any) -> None:
    """Raise for a half-life or a treatment of new groups that is not allowed."""
    check_real(half_life, name="half_life", strict=True, finite=False)
    check_choice(new_groups, NEW_GROUPS, name="new_groups")


def encode_batch_groups(groups: Groups, sensitive_features: Any, new_groups: str) -> Groups:
    """Find the groups of a batch; new ones raise, or are appended to the others."""
    if sensitive_features is None:
        raise ValueError("partial_fit needs sensitive_features: the column or columns that define groups.")
    if new_groups == "adopt":
        return groups.adopt(sensitive_features)
    return groups.encode(sensitive_features)
