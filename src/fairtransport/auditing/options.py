"""The options of an audit, validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_choice, check_count, check_real
from fairtransport.criteria import CRITERIA
from fairtransport.groups import MIN_GROUP_SIZE, SMALL_GROUP_POLICIES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fairtransport.histograms import Grid

__all__ = ["FAVOURABLE", "MATERIALITY", "Options", "check_options"]

#: Differences below this share of the range of scores are small, unless users say otherwise.
MATERIALITY = 0.02

#: Which scores are to a person's advantage.
FAVOURABLE = ("high", "low")


@dataclass(frozen=True, eq=False)
class Options:
    """Validated options of `fairtransport.audit`. ``unit_thresholds`` are the thresholds rescaled to [0, 1]."""

    target: Any
    thresholds: tuple[float, ...]
    unit_thresholds: tuple[float, ...]
    confidence: float
    n_bootstrap: int
    n_permutations: int
    min_judged_rows: int
    materiality: float
    small_groups: str
    min_group_size: int
    favourable: str = "high"
    reference: Any = None
    criterion: str = "demographic_parity"


def check_options(
    grid: Grid,
    *,
    target: Any,
    thresholds: ArrayLike | None,
    confidence: float,
    n_bootstrap: int,
    n_permutations: int,
    min_judged_rows: int,
    materiality: float = MATERIALITY,
    small_groups: str = "keep",
    min_group_size: int = MIN_GROUP_SIZE,
    favourable: str = "high",
    reference: Any = None,
    criterion: str = "demographic_parity",
) -> Options:
    """Validate the options of an audit; parameters as in `fairtransport.audit`."""
    level = check_real(confidence, name="confidence", strict=True)
    if level >= 1:
        raise ValueError(f"confidence must be below 1; got {level:g}. For 95%, pass 0.95.")
    cuts = (grid.low + grid.high) / 2 if thresholds is None else thresholds
    vector = grid.check(np.atleast_1d(np.asarray(cuts, dtype=np.float64)), name="thresholds")
    return Options(
        target=target,
        thresholds=tuple(vector.tolist()),
        unit_thresholds=tuple(grid.to_unit(vector).tolist()),
        confidence=level,
        n_bootstrap=check_count(n_bootstrap, name="n_bootstrap", least=20),
        n_permutations=check_count(n_permutations, name="n_permutations", least=20),
        min_judged_rows=check_count(min_judged_rows, name="min_judged_rows"),
        materiality=check_real(materiality, name="materiality", most=1.0),
        small_groups=check_choice(small_groups, SMALL_GROUP_POLICIES, name="small_groups"),
        min_group_size=check_count(min_group_size, name="min_group_size"),
        favourable=check_choice(favourable, FAVOURABLE, name="favourable"),
        reference=reference,
        criterion=check_choice(criterion, CRITERIA, name="criterion"),
    )
