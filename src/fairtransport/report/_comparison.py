"""Results of several methods on the same test rows, as the comparison page shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_length, check_scores

if TYPE_CHECKING:
    from fairtransport.groups import Groups

METRICS = {
    "error_rate": "Err-.5",
    "wasserstein_disparity": "Wass1",
    "strong_demographic_disparity": "SDD",
    "strong_pairwise_disparity": "SPDD",
}
"""The metrics by name, with the paper's abbreviation of each; lower is better.

Err-.5 is the error rate at threshold 0.5, Wass1 the sum of the Wasserstein-1 distances to the target, SDD the strong
demographic disparity and SPDD the strong pairwise demographic disparity.
"""


@dataclass(frozen=True, eq=False)
class MethodOutcome:
    """Scores and metrics of one method on the test rows."""

    name: str
    title: str
    metrics: dict[str, float]
    seconds: float
    scores: Floats
    note: str = ""

    def __post_init__(self) -> None:
        missing = [metric for metric in METRICS if metric not in self.metrics]
        if missing:
            raise ValueError(f"metrics of {self.name!r} lacks {', '.join(missing)}.")
        _check_numbers({**self.metrics, "seconds": self.seconds}, name=f"metrics of {self.name!r}")
        object.__setattr__(self, "scores", check_scores(self.scores, name=f"scores of {self.name!r}"))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several methods on the same test rows."""

    dataset: str
    groups: Groups
    y_true: Ints
    target: Floats
    outcomes: tuple[MethodOutcome, ...]
    floor: dict[str, float]
    settings: dict[str, str]

    def __post_init__(self) -> None:
        if not self.outcomes:
            raise ValueError("outcomes is empty; a comparison needs one method or more.")
        self.groups.require()
        unknown = [metric for metric in self.floor if metric not in METRICS]
        if unknown:
            raise ValueError(f"floor has {', '.join(unknown)}; allowed are {', '.join(METRICS)}.")
        _check_numbers(self.floor, name="floor")
        check_length(self.y_true, size=self.groups.n_rows, name="y_true")
        for outcome in self.outcomes:
            check_length(outcome.scores, size=self.groups.n_rows, name=f"scores of {outcome.name!r}")
        object.__setattr__(self, "outcomes", tuple(self.outcomes))
        object.__setattr__(self, "target", np.sort(check_scores(self.target, name="target")))

    @property
    def baseline(self) -> MethodOutcome:
        """The method without parity: the first."""
        return self.outcomes[0]

    @property
    def featured(self) -> MethodOutcome:
        """The method that the page is about: the last."""
        return self.outcomes[-1]

    def mean_disparity(self, metrics: Mapping[str, float]) -> float:
        """Return the mean distance between the scores of two groups, over all pairs; 0 where it was not measured."""
        return metrics.get("strong_pairwise_disparity", 0.0) / max(math.comb(len(self.groups), 2), 1)

    def best(self, metric: str) -> frozenset[str]:
        """Return the names of the methods with the lowest value, up to the three decimals that are shown."""
        rounded = {outcome.name: round(outcome.metrics[metric], 3) for outcome in self.outcomes}
        lowest = min(rounded.values())
        return frozenset(name for name, value in rounded.items() if value == lowest)


def _check_numbers(values: dict[str, float], *, name: str) -> None:
    """Refuse NaN and infinite values, which no table or JSON file can show."""
    invalid = [key for key, value in values.items() if not math.isfinite(value)]
    if invalid:
        raise ValueError(f"{name} has no finite number for {', '.join(invalid)}.")
