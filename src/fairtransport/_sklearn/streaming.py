"""Parameters shared by all ``partial_fit`` methods: the half-life of rows and the treatment of unseen groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._validation import check_choice, check_real

if TYPE_CHECKING:
    from fairtransport.groups import Groups

__all__ = ["NEW_GROUPS", "NEW_GROUP_ROWS", "check_stream_parameters", "encode_batch_groups"]

#: Treatments of a group that occurs for the first time.
NEW_GROUPS = ("error", "adopt")

#: Weight, in rows, of the prior of a new group.
NEW_GROUP_ROWS = 10.0


def check_stream_parameters(half_life: Any, new_groups: Any, *, name: str = "half_life") -> None:
    """Raise ValueError for an invalid half-life or treatment of new groups."""
    check_real(half_life, name=name, strict=True, finite=False)
    check_choice(new_groups, NEW_GROUPS, name="new_groups")


def encode_batch_groups(groups: Groups, sensitive_features: Any, new_groups: str) -> Groups:
    """Return the groups of a batch; new ones raise, or are appended to the known ones."""
    if sensitive_features is None:
        raise ValueError("partial_fit needs sensitive_features: the column or columns that define groups.")
    if new_groups == "adopt":
        return groups.adopt(sensitive_features)
    return groups.encode(sensitive_features)
