"""The fixed distribution that groups are compared with, if they are not compared with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_SIZE, resolve_target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["fixed_target"]


def fixed_target(
    target: Any, scores: NDArray[np.float64], groups: Groups, weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return scores of equal mass that represent the distribution that groups are compared with."""

    def sample(rows: Any) -> Sample:
        return Sample.from_values(scores[rows], None if weights is None else weights[rows])

    resolved = resolve_target(
        target,
        [sample(rows) for rows in groups.rows],
        [rows.size if weights is None else weights[rows].sum() for rows in groups.rows],
        labels=groups.labels,
        names=groups.names,
        everyone=sample(slice(None)),
    )
    return resolved.equal_mass(TARGET_SIZE)
