"""What a page is made of: several methods on the same test rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_length, check_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["METRICS", "Comparison", "MethodOutcome"]

METRICS = {
    "error_rate": "Err-.5",
    "wasserstein_disparity": "Wass1",
    "strong_demographic_disparity": "SDD",
    "strong_pairwise_disparity": "SPDD",
}
"""The four metrics by name, with the paper's word for each; the lower, the better."""


@dataclass(frozen=True, eq=False)
class MethodOutcome:
    """One method on one split.

    Parameters
    ----------
    name : str
        Short name: ``"LR"``, ``"DPP"``, ``"DOT"``, ``"COT"``.
    title : str
        The method in a few words: ``"Logistic regression, no parity"``.
    metrics : dict of str to float
        ``error_rate``, ``wasserstein_disparity``, ``strong_demographic_disparity`` and
        ``strong_pairwise_disparity`` on the test rows.
    seconds : float
        How long training took.
    scores : array of shape (n,)
        Scores of the test rows, within [0, 1].
    note : str, default ""
        What a reader should know about these figures.
    """

    name: str
    title: str
    metrics: dict[str, float]
    seconds: float
    scores: NDArray[np.float64]
    note: str = ""

    def __post_init__(self) -> None:
        absent = [metric for metric in METRICS if metric not in self.metrics]
        if absent:
            raise ValueError(f"metrics of {self.name!r} lacks {', '.join(absent)}.")
        _check_numbers({**self.metrics, "seconds": self.seconds}, name=f"metrics of {self.name!r}")
        object.__setattr__(self, "scores", check_scores(self.scores, name=f"scores of {self.name!r}"))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several methods on the same test rows.

    Parameters
    ----------
    dataset : str
        Name of the data, for headings.
    groups : Groups
        The groups of the test rows; two or more, each with rows.
    y_true : array of shape (n,)
        The test rows' labels.
    target : array
        The fixed target distribution, as scores of equal mass.
    outcomes : tuple of MethodOutcome
        The method without parity first, the method that the page is about last: `verdict` compares the two.
    floor : dict of str to float
        The noise floor of each metric that has one; see `fairtransport.metrics.noise_floor`.
    settings : dict of str to str
        What was measured how: splits, parameters, versions.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import make_groups
    >>> metrics = dict.fromkeys(METRICS, 0.25)
    >>> outcome = MethodOutcome("LR", "Logistic regression", metrics, 0.5, np.array([0.1, 0.9]))
    >>> comparison = Comparison(
    ...     "toy", make_groups(["a", "b"]), np.array([0, 1]), np.array([0.5]), (outcome,), {}, {}
    ... )
    >>> comparison.baseline.name
    'LR'
    """

    dataset: str
    groups: Groups
    y_true: NDArray[np.int64]
    target: NDArray[np.float64]
    outcomes: tuple[MethodOutcome, ...]
    floor: dict[str, float]
    settings: dict[str, str]

    def __post_init__(self) -> None:
        if not self.outcomes:
            raise ValueError("outcomes is empty; a comparison needs one method or more.")
        self.groups.require(min_size=1, at_least=2)
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

    def best(self, metric: str) -> frozenset[str]:
        """Names of the methods with the lowest value, equal up to the three digits that are shown.

        Parameters
        ----------
        metric : str
            One of `METRICS`.

        Returns
        -------
        frozenset of str
        """
        shown = {outcome.name: round(outcome.metrics[metric], 3) for outcome in self.outcomes}
        lowest = min(shown.values())
        return frozenset(name for name, value in shown.items() if value == lowest)


def _check_numbers(values: dict[str, float], *, name: str) -> None:
    """Refuse NaN and infinite values: no table or JSON file can show them."""
    bad = [key for key, value in values.items() if not math.isfinite(value)]
    if bad:
        raise ValueError(f"{name} has no finite number for {', '.join(bad)}.")
