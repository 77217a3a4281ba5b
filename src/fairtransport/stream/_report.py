"""What one batch came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["AdjustmentReport", "GroupReading"]


@dataclass(frozen=True)
class GroupReading:
    """One group in the monitor's memory.

    Attributes
    ----------
    name : str
    rows : int
        Of this batch.
    size : float
        Rows that its histogram is worth.
    before, after : float or None
        Distance to the target of the original model's scores and of those given out; None for a group that nobody was
        seen of yet.
    """

    name: str
    rows: int
    size: float
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False)
class AdjustmentReport:
    """What `ContinualAdjuster.adjust` returns for one batch.

    Attributes
    ----------
    batch, rows : int
        Number of the batch, from 1, and rows seen so far.
    scores : ndarray of shape (n_rows,)
        Of this batch, by the model as it was when the batch came.
    disparity_before, disparity_after : float
        Sum over groups of the distance to the target: of what the original model would have given out, and of what was
        given out. Both over the monitor's memory, not over this batch alone, which would be noise.
    noise_floor : float
        What the disparity would read if groups were drawn by lot.
    groups : tuple of GroupReading
        The same for each group.
    alarm : bool
        Whether the drift alarm rang.
    evidence : float
        How near it is to ringing, as a share.
    updates : int
        Spent on this batch.
    moved : float
        Distance to the last accepted model; see `ContinualAdjuster`.
    at_border : bool
        Whether the trust region held the model back.
    mean_change, agreement : float
        Mean distance of scores to the original model's, and share of rows on the same side of the middle of the range.
    frozen : bool
    """

    batch: int
    rows: int
    scores: NDArray[np.float64] = field(repr=False)  # people's scores: a repr ends up in logs
    disparity_before: float
    disparity_after: float
    noise_floor: float
    groups: tuple[GroupReading, ...] = field(repr=False)
    alarm: bool
    evidence: float
    updates: int
    moved: float
    at_border: bool
    mean_change: float
    agreement: float
    frozen: bool

    def to_dict(self) -> dict[str, Any]:
        """Return all but the scores, as JSON can hold it; no group is named."""
        names = (
            *("batch", "rows", "disparity_before", "disparity_after", "noise_floor", "alarm", "evidence", "updates"),
            *("moved", "at_border", "mean_change", "agreement", "frozen"),
        )
        sizes = [round(group.size, 1) for group in self.groups]
        return {**{name: getattr(self, name) for name in names}, "sizes": sizes}
