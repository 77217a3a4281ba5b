"""What an audit is made from: rows, exactly, or histograms, at their resolution."""

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

__all__ = ["CountedEvidence", "Evidence", "RowEvidence"]

EVERYONE = -1


class Evidence(Protocol):
    """What the figures of an audit are read from. A group is its position; -1 is everyone. Scores lie on [0, 1]."""

    @property
    def histograms(self) -> GroupHistograms:
        """The counts, from which noise is drawn."""
        ...

    @property
    def exact(self) -> bool:
        """Whether figures are those of the rows, not of the nodes."""
        ...

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        ...

    def distances(self) -> NDArray[np.float64]:
        """Return the distance between every two groups."""
        ...

    def sample(self, group: int) -> Sample:
        """Return the scores of a group."""
        ...

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the scores of a group's rows of one label; None where there are none."""
        ...

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows above a threshold and of the others."""
        ...

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of a group's rows that are decided wrongly and of the others."""
        ...


@dataclass(frozen=True, eq=False)
class CountedEvidence:
    """Histograms; exact for scores and thresholds on nodes."""

    histograms: GroupHistograms

    @property
    def exact(self) -> bool:
        """Never taken for granted: nodes stand for the scores below them."""
        return False

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        return self.histograms.disparities(target)

    def distances(self) -> NDArray[np.float64]:
        """Return the distance between every two groups."""
        return self.histograms.distances()

    @cached_property
    def _samples(self) -> list[Sample]:
        return [*self.histograms.samples(unit=True), self.histograms.sample_of_everyone(unit=True)]

    def sample(self, group: int) -> Sample:
        """Return the scores of a group."""
        return self._samples[group]

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the scores of a group's rows of one label."""
        return self.histograms.class_sample(label, None if group == EVERYONE else group, unit=True)

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight above the threshold, moved down to a node where it is none, and at or below it."""
        held, squares = self._of(group)
        at = self._node_below(threshold)
        return _tally(held[:, at:].sum(), held[:, :at].sum(), squares[:, at:].sum(), squares[:, :at].sum())

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of label 0 above and of label 1 at or below the threshold, and the rest."""
        held, squares = self._of(group)
        at = self._node_below(threshold)
        wrong = (held[0, at:].sum() + held[1, :at].sum(), squares[0, at:].sum() + squares[1, :at].sum())
        return _tally(wrong[0], held.sum() - wrong[0], wrong[1], squares.sum() - wrong[1])

    def _of(self, group: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        counted = self.histograms
        if group != EVERYONE:
            return counted.by_class[:, group], counted.squares_by_class[:, group]
        held = counted.masses.sum(axis=1)
        return held, held if counted.squares is None else counted.squares.sum(axis=1)

    def _node_below(self, threshold: float) -> int:
        """First node above the threshold."""
        return int(np.floor(threshold * self.histograms.grid.n_bins + 1e-9)) + 1


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """The rows themselves.

    Parameters
    ----------
    histograms : GroupHistograms
        Their counts.
    scores : array of shape (n,)
        On [0, 1].
    positive : array of bool of shape (n,), or None
        Rows of label 1.
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
        """Whatever the scores are."""
        return True

    def disparities(self, target: Any) -> dict[str, float]:
        """Return the three disparities."""
        unit = self.histograms.unit_target(target)
        return disparities(self.scores, sensitive_features=self.groups, target=unit, sample_weight=self.weights)

    def distances(self) -> NDArray[np.float64]:
        """Return the distance between every two groups."""
        return pairwise_distances(self.scores, sensitive_features=self.groups, sample_weight=self.weights)

    def sample(self, group: int) -> Sample:
        """Return the scores of a group."""
        return self._everyone if group == EVERYONE else self._sample(group)

    @cached_property
    def _everyone(self) -> Sample:
        return self._sample(EVERYONE)

    def _sample(self, group: int) -> Sample:
        rows = self._rows(group)
        return Sample.from_values(self.scores[rows], None if self.weights is None else self.weights[rows])

    def class_sample(self, label: int, group: int) -> Sample | None:
        """Return the scores of a group's rows of one label."""
        rows = self._rows(group)
        if self.positive is None:
            raise ValueError("There are no labels.")
        mine = self.positive[rows] == bool(label)
        weights = None if self.weights is None else self.weights[rows][mine]
        if not mine.any() or (weights is not None and not weights.sum() > 0):
            return None
        return Sample.from_values(self.scores[rows][mine], weights)

    def selected(self, threshold: float, group: int) -> Tally:
        """Return the weight strictly above the threshold, and at or below it."""
        rows = self._rows(group)
        return self._count(self.scores[rows] > threshold, rows)

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of the rows that are decided wrongly, and of the others."""
        rows = self._rows(group)
        if self.positive is None:
            raise ValueError("There are no labels.")
        return self._count((self.scores[rows] > threshold) != self.positive[rows], rows)

    def _rows(self, group: int) -> Any:
        return slice(None) if group == EVERYONE else self.groups.rows[group]

    def _count(self, inside: NDArray[np.bool_], rows: Any) -> Tally:
        if self.weights is None:
            n_inside, n_outside = np.count_nonzero(inside), inside.size - np.count_nonzero(inside)
            return _tally(n_inside, n_outside, n_inside, n_outside)
        weights = self.weights[rows]
        squares = weights**2
        held, held_squares = weights @ inside, squares @ inside
        return _tally(held, weights @ ~inside, held_squares, squares @ ~inside)


def _tally(*sums: Any) -> Tally:
    inside, outside, inside_squares, outside_squares = (max(float(one), 0.0) for one in sums)
    return Tally(inside, outside, inside_squares, outside_squares)
