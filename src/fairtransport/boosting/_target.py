"""The fixed distribution that groups are compared with, if they are not compared with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.criteria import resolve_group_target
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["fixed_target"]


def fixed_target(
    target: Any, scores: NDArray[np.float64], groups: Groups, weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return scores of equal mass that represent the distribution that groups are compared with."""
    return resolve_group_target(target, scores, groups, weights).equal_mass(TARGET_SIZE)
