"""Parameters shared by all ``partial_fit`` methods: the half-life of rows and the treatment of unseen groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_choice, check_real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["NEW_GROUPS", "NEW_GROUP_ROWS", "check_classes", "check_stream_parameters", "encode_batch_groups"]

#: Treatments of a group that occurs for the first time.
NEW_GROUPS = ("error", "adopt")

#: Weight, in rows, of the prior of a new group.
NEW_GROUP_ROWS = 10.0


def check_stream_parameters(half_life: Any, new_groups: Any, *, name: str = "half_life") -> None:
    """Raise ValueError for an invalid half-life or treatment of new groups."""
    check_real(half_life, name=name, strict=True, finite=False)
    check_choice(new_groups, NEW_GROUPS, name="new_groups")


def check_classes(classes: Any, known: NDArray[Any]) -> None:
    """Raise ValueError unless ``classes``, where given, are the two classes of the model."""
    if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
        raise ValueError("classes must be the two classes of the first call's y; leave it out, or pass both.")


def encode_batch_groups(groups: Groups, sensitive_features: Any, new_groups: str) -> Groups:
    """Return the groups of a batch; new ones raise, or are appended to the known ones."""
    if sensitive_features is None:
        raise ValueError("partial_fit needs sensitive_features: the column or columns that define groups.")
    if new_groups == "adopt":
        return groups.adopt(sensitive_features)
    return groups.encode(sensitive_features)
