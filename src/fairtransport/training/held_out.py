"""Do no harm: what became of scores, on rows that neither the plain nor the changed model was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._warnings import FairnessWarning, warn_caller
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.training.outcome import parity_evidence
from fairtransport.training.weight_path import MIN_INFORMATION

if TYPE_CHECKING:
    from fairtransport._arrays import Floats
    from fairtransport.criteria.comparisons import Comparisons
    from fairtransport.training.outcome import ParityEvidence

_ABOVE_FLOOR = 1.5  # times the disparity that chance shows: what is left is said


@dataclass(frozen=True)
class HeldOutChange:
    """Error and mean rank disparity of the plain and the changed scores of the same rows.

    The error is the share of wrong decisions at one half, or the mean squared error as a share of the variance of y.
    """

    error: tuple[float, float]
    error_noise: float  # one standard error of the change
    rank_disparity: tuple[float, float]
    evidence: ParityEvidence  # of the changed scores, in ranks
    information_kept: float
    is_full: bool
    rows: str
    error_name: str

    @property
    def is_harm(self) -> bool:
        """Whether groups did not come closer, while the error rose by more than one standard error or they parted."""
        before, after = self.rank_disparity
        error_rose = self.error[1] - self.error[0] > self.error_noise
        return after >= before and (error_rose or after - before > self.evidence.floor)

    def warn(self, owner: str, advice: str) -> None:
        """Warn where error and disparity are no better than before, or where more than chance is left."""
        (error, error_after), (before, after), found = self.error, self.rank_disparity, self.evidence
        figures = (
            f"on {found.n_rows:,} {self.rows}, the mean rank disparity between groups goes from "
            f"{before:.3f} to {after:.3f} (at most {found.limit:.3f} with 95 % confidence; chance alone shows "
            f"{found.floor:.3f}), and the {self.error_name} from {error:.3f} to {error_after:.3f}"
        )
        if self.is_harm:
            warn_caller(f"{owner} does not help: {figures}. {advice}", FairnessWarning)
        elif self.is_full and after > _ABOVE_FLOOR * found.floor and found.shows_difference:
            warn_caller(f"{owner} leaves more than chance: {figures}. {advice}", FairnessWarning)
        elif self.information_kept < MIN_INFORMATION:
            warn_caller(
                f"{owner} keeps {max(self.information_kept, 0.0):.0%} of what the plain model explains: {figures}. An "
                "amount below 1 keeps more.",
                FairnessWarning,
            )


def held_out_change(
    before: Floats,
    after: Floats,
    outcomes: Floats,
    pairs: Comparisons,
    *,
    classifies: bool,
    is_full: bool = True,
    rows: str = "rows that it was not fitted to",
    min_size: int = 30,
) -> HeldOutChange:
    """Compare two scores of the same rows; ``outcomes`` are 0 and 1, or numbers.

    Groups with fewer than ``min_size`` rows are left out of disparities where two are larger: audits do not judge them.
    """
    judged = pairs.weights * (pairs.sizes >= min_size)[pairs.pairs].all(axis=1)
    pairs = pairs.reweighted(judged) if judged.any() else pairs
    shares = np.ones(outcomes.size) if pairs.row_weights is None else pairs.row_weights
    shares = shares / shares.sum()
    variance = float(shares @ (outcomes - shares @ outcomes) ** 2)
    squared = [float(shares @ (scores - outcomes) ** 2) / variance for scores in (before, after)]
    each = [(s > 0.5) != (outcomes > 0.5) if classifies else (s - outcomes) ** 2 / variance for s in (before, after)]
    change = each[1].astype(float) - each[0]
    mean = float(shares @ change)
    plain, changed = (parity_evidence(pooled_ranks(s, pairs.row_weights), pairs) for s in (before, after))
    return HeldOutChange(
        error=(float(shares @ each[0]), float(shares @ each[1])),
        error_noise=float(np.sqrt(shares**2 @ (change - mean) ** 2)),
        rank_disparity=(plain.disparity, changed.disparity),
        evidence=changed,
        information_kept=share_kept(*squared),
        is_full=is_full,
        rows=rows,
        error_name="error rate" if classifies else "unexplained share of the variance of y",
    )


def share_kept(before: float, after: float) -> float:
    """Return the share of what a model explains of y that a change keeps, from unexplained shares of the variance.

    It is at most 1, and negative where the changed model is worse than a constant; 1 where there was nothing to lose.
    """
    return 1.0 if before >= 1.0 else min((1.0 - after) / (1.0 - before), 1.0)
