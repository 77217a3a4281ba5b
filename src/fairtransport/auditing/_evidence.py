"""The data of an audit: rows, for exact figures, or histograms, for figures at their resolution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairtransport.auditing.proportions import Tally
from fairtransport.metrics import disparities, pairwise_distances
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms

__all__ = ["EVERYONE", "Evidence", "HistogramEvidence", "RowEvidence"]

#: The group index of all rows.
EVERYONE = -1


class Evidence(Protocol):
    """The data of an audit. Groups are given by index, all rows by `EVERYONE`; scores are rescaled to [0, 1]."""

    @property
    def histograms(self) -> GroupHistograms:
        """The binned scores, for resampling."""
        ...

    @property
    def exact(self) -> bool:
        """Whether figures are computed from rows rather than bins."""
        ...

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        ...

    def distances(self) -> NDArray[np.float64]:
        """Return the matrix of distances between groups."""
        ...

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        ...

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        ...

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows strictly above a threshold, and of the others."""
        ...

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows that a threshold misclassifies, and of the others."""
        ...


@dataclass(frozen=True, eq=False)
class HistogramEvidence:
    """Evidence from histograms; exact for scores and thresholds on nodes."""

    histograms: GroupHistograms

    @property
    def exact(self) -> bool:
        """False, although figures are exact for scores that lie on nodes."""
        return False

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        return self.histograms.disparities(target)

    def distances(self) -> NDArray[np.float64]:
        """Return the matrix of distances between groups."""
        return self.histograms.distances()

    @cached_property
    def _samples(self) -> list[Sample]:
        return [*self.histograms.samples(unit=True), self.histograms.sample_of_everyone(unit=True)]

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        return self._samples[group]

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        return self.histograms.class_sample(label, None if group == EVERYONE else group, unit=True)

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight above the threshold, rounded down to a node, and the weight at or below it."""
        masses, squares = self._masses(group)
        at = self._first_node_above(threshold)
        return _tally(masses[:, at:].sum(), masses[:, :at].sum(), squares[:, at:].sum(), squares[:, :at].sum())

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of label 0 above and of label 1 at or below the threshold, and the rest."""
        masses, squares = self._masses(group)
        at = self._first_node_above(threshold)
        wrong = masses[0, at:].sum() + masses[1, :at].sum()
        wrong_squares = squares[0, at:].sum() + squares[1, :at].sum()
        return _tally(wrong, masses.sum() - wrong, wrong_squares, squares.sum() - wrong_squares)

    def _masses(self, group: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums of weights and of squared weights of a group, by label and node."""
        histograms = self.histograms
        if group != EVERYONE:
            return histograms.by_class[:, group], histograms.squares_by_class[:, group]
        masses = histograms.masses.sum(axis=1)
        return masses, masses if histograms.squares is None else histograms.squares.sum(axis=1)

    def _first_node_above(self, threshold: float) -> int:
        return int(np.floor(threshold * self.histograms.grid.n_bins + 1e-9)) + 1


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Evidence from rows.

    Parameters
    ----------
    histograms : GroupHistograms
        The binned scores.
    scores : array of shape (n,)
        Rescaled to [0, 1].
    positive : array of bool of shape (n,), or None
        Whether each row has label 1; None without labels.
    weights : array of shape (n,), or None
    groups : Groups
    """

    histograms: GroupHistograms
    scores: NDArray[np.float64]
    positive: NDArray[np.bool_] | None
    weights: NDArray[np.float64] | None
    groups: Groups

    @property
    def exact(self) -> bool:
        """True."""
        return True

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        unit = self.histograms.unit_target(target)
        return disparities(self.scores, sensitive_features=self.groups, target=unit, sample_weight=self.weights)

    def distances(self) -> NDArray[np.float64]:
        """Return the matrix of distances between groups."""
        return pairwise_distances(self.scores, sensitive_features=self.groups, sample_weight=self.weights)

    def sample(self, group: int) -> Sample:
        """Return the distribution of a group's scores."""
        return self._everyone if group == EVERYONE else self._sample(group)

    @cached_property
    def _everyone(self) -> Sample:
        return self._sample(EVERYONE)

    def _sample(self, group: int) -> Sample:
        rows = self._rows(group)
        return Sample.from_values(self.scores[rows], None if self.weights is None else self.weights[rows])

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the distribution of a group's scores with one label; None where it has no such rows."""
        rows = self._rows(group)
        if self.positive is None:
            raise ValueError("The audit has no labels.")
        selected = self.positive[rows] == bool(label)
        weights = None if self.weights is None else self.weights[rows][selected]
        if not selected.any() or (weights is not None and not weights.sum() > 0):
            return None
        return Sample.from_values(self.scores[rows][selected], weights)

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight strictly above the threshold, and at or below it."""
        rows = self._rows(group)
        return self._count(self.scores[rows] > threshold, rows)

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of the rows that a threshold misclassifies, and of the others."""
        rows = self._rows(group)
        if self.positive is None:
            raise ValueError("The audit has no labels.")
        return self._count((self.scores[rows] > threshold) != self.positive[rows], rows)

    def _rows(self, group: int) -> Any:
        return slice(None) if group == EVERYONE else self.groups.rows[group]

    def _count(self, inside: NDArray[np.bool_], rows: Any) -> Tally:
        if self.weights is None:
            n_inside, n_outside = np.count_nonzero(inside), inside.size - np.count_nonzero(inside)
            return _tally(n_inside, n_outside, n_inside, n_outside)
        weights = self.weights[rows]
        squares = weights**2
        return _tally(weights @ inside, weights @ ~inside, squares @ inside, squares @ ~inside)


def _tally(*sums: Any) -> Tally:
    inside, outside, inside_squares, outside_squares = (max(float(value), 0.0) for value in sums)
    return Tally(inside, outside, inside_squares, outside_squares)
