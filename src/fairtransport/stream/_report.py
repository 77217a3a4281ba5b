"""Report on one batch of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["AdjustmentReport", "GroupReading"]


@dataclass(frozen=True)
class GroupReading:
    """Disparity of one group, as the monitor sees it.

    Attributes
    ----------
    name : str
        Name of the group.
    rows : int
        Rows of the group in this batch.
    size : float
        Effective sample size of the group's histogram.
    before, after : float or None
        Wasserstein-1 distance to the target, of the original model's scores and of the scores that were returned; None
        as long as no row of the group was seen.
    """

    name: str
    rows: int
    size: float
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False)
class AdjustmentReport:
    """Result of `ContinualAdjuster.adjust` for one batch.

    Attributes
    ----------
    batch, rows : int
        Number of the batch, from 1, and rows seen so far.
    rows_without_group : int
        Those of them that belong to no group that the model knows: they were scored, but neither monitored nor learned
        from.
    scores : ndarray of shape (n_rows,)
        Scores of this batch, by the model before it was adjusted to the batch.
    disparity_before, disparity_after : float
        Sum over groups of the Wasserstein-1 distance to the target, of the original model's scores and of the scores
        that were returned. Both are estimated from the monitor's histograms, not from this batch alone.
    noise_floor : float
        Expected disparity of groups of these sizes that all have the same distribution.
    groups : tuple of GroupReading
        The same for each group.
    alarm : bool
        Whether the drift alarm was raised by this batch.
    evidence : float
        Evidence for drift, as a share of what raises the alarm.
    updates : int
        Updates of the model for this batch.
    moved : float
        Distance to the last accepted model, in the unit of ``trust_radius`` of `ContinualAdjuster`.
    at_border : bool
        Whether the trust region limited the update.
    mean_change, agreement : float
        Mean absolute difference between the scores that were returned and the original model's, and share of rows for
        which both lie on the same side of the middle of the range.
    frozen : bool
        Whether adjusting is suspended.
    """

    batch: int
    rows: int
    rows_without_group: int
    scores: NDArray[np.float64] = field(repr=False)  # a repr may end up in a log
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
        """Return everything but the scores and the names of groups, as JSON can represent it."""
        names = (
            *("batch", "rows", "rows_without_group", "disparity_before", "disparity_after", "noise_floor", "alarm"),
            *("evidence", "updates", "moved", "at_border", "mean_change", "agreement", "frozen"),
        )
        sizes = [round(group.size, 1) for group in self.groups]
        return {**{name: getattr(self, name) for name in names}, "sizes": sizes}
