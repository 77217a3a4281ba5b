"""The data of an audit: rows, for exact figures, or histograms, for figures at their resolution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairtransport.auditing.decisions import Decisions
from fairtransport.metrics import disparities, kolmogorov_smirnov_disparity, pairwise_distances
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing._rank_scale import RankScale
    from fairtransport.auditing.proportions import Tally
    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms

__all__ = ["EVERYONE", "Evidence", "HistogramEvidence", "RowEvidence", "with_label"]

#: The group index of all rows.
EVERYONE = -1


def with_label(histograms: GroupHistograms, label: int) -> GroupHistograms:
    """Return the histograms of the rows with one label.

    With weights the numbers of rows by label are not known; they are taken to be in proportion to the weights.
    """
    masses = histograms.masses[label]
    totals = histograms.masses.sum(axis=(0, 2))
    shares = np.divide(masses.sum(axis=1), totals, out=np.zeros_like(totals), where=totals > 0)
    return replace(
        histograms,
        masses=masses[None],
        squares=None if histograms.squares is None else histograms.squares[label][None],
        rows=np.rint(histograms.rows * shares).astype(np.int64),
    )


def _scale(evidence: Evidence) -> RankScale:
    if evidence.rank_scale is None:
        raise ValueError("The scores have known bounds.")
    return evidence.rank_scale


class Evidence(Protocol):
    """The data of an audit. Groups are given by index, all rows by `EVERYONE`; scores are rescaled to [0, 1]."""

    @property
    def histograms(self) -> GroupHistograms:
        """The binned scores, for resampling."""
        ...

    @property
    def rank_scale(self) -> RankScale | None:
        """The ranks of the scores among all rows of the audit; None where scores have known bounds."""
        ...

    @property
    def exact(self) -> bool:
        """Whether figures are computed from rows rather than bins."""
        ...

    def ranked(self) -> Evidence:
        """Return the same rows with ranks instead of scores; only where there is a rank scale."""
        ...

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a threshold (Kolmogorov-Smirnov)."""
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

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are strictly above a threshold."""
        ...

    def only(self, groups: NDArray[np.intp]) -> Evidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        ...


@dataclass(frozen=True, eq=False)
class HistogramEvidence:
    """Evidence from histograms; exact for scores and thresholds on nodes."""

    histograms: GroupHistograms
    rank_scale: RankScale | None = None

    @property
    def exact(self) -> bool:
        """False, although figures are exact for scores that lie on nodes."""
        return False

    def ranked(self) -> HistogramEvidence:
        """Return the same rows with ranks instead of scores."""
        return HistogramEvidence(_scale(self).of_histograms(self.histograms))

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a node."""
        cdf = self.histograms.cdf
        return float(np.max(cdf.max(axis=0) - cdf.min(axis=0)))

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
        return self.decisions(threshold, group).tally("selection_rate")

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of label 0 above and of label 1 at or below the threshold, and the rest."""
        return self.decisions(threshold, group).tally("error_rate")

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are above the threshold."""
        at = self._first_node_above(threshold)
        weights, squares = (
            np.stack([sums[:, :at].sum(axis=1), sums[:, at:].sum(axis=1)], axis=1) for sums in self._masses(group)
        )
        return Decisions(weights, squares)

    def only(self, groups: NDArray[np.intp]) -> HistogramEvidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        return HistogramEvidence(self.histograms.only(groups), self.rank_scale)

    def _masses(self, group: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums of weights and of squared weights of a group, by label and node."""
        histograms = self.histograms
        if group != EVERYONE:
            return histograms.by_class[:, group], histograms.squares_by_class[:, group]
        masses = histograms.masses.sum(axis=1)
        return masses, masses if histograms.squares is None else histograms.squares.sum(axis=1)

    def _first_node_above(self, threshold: float) -> int:
        grid = self.histograms.grid
        if grid.positions:
            return int(np.searchsorted(grid.unit_nodes, threshold, side="right"))
        return int(np.floor(threshold * grid.n_bins + 1e-9)) + 1


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
    rank_scale : RankScale, optional
        Where scores have no known bounds.
    ranks : array of shape (n,), optional
        Mid-ranks of the scores among all rows of the audit.
    """

    histograms: GroupHistograms
    scores: NDArray[np.float64]
    positive: NDArray[np.bool_] | None
    weights: NDArray[np.float64] | None
    groups: Groups
    rank_scale: RankScale | None = None
    ranks: NDArray[np.float64] | None = None

    @property
    def exact(self) -> bool:
        """True."""
        return True

    def ranked(self) -> RowEvidence:
        """Return the same rows with ranks instead of scores."""
        if self.ranks is None:
            raise ValueError("The scores have known bounds.")
        histograms = _scale(self).of_histograms(self.histograms)
        return RowEvidence(histograms, self.ranks, self.positive, self.weights, self.groups)

    def largest_gap(self) -> float:
        """Return the largest difference between two groups' shares above a threshold."""
        return kolmogorov_smirnov_disparity(self.scores, sensitive_features=self.groups, sample_weight=self.weights)

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
        if (label, group) not in self._class_samples:
            self._class_samples[label, group] = self._class_sample(label, group)
        return self._class_samples[label, group]

    @cached_property
    def _class_samples(self) -> dict[tuple[int, int], Sample | None]:
        return {}

    def _class_sample(self, label: int, group: int) -> Sample | None:
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
        return self.decisions(threshold, group).tally("selection_rate")

    def wrong(self, threshold: float, group: int) -> Tally:
        """Return the weight of the rows that a threshold misclassifies, and of the others."""
        return self.decisions(threshold, group).tally("error_rate")

    def decisions(self, threshold: float, group: int) -> Decisions:
        """Return the weight of a group's rows by label and by whether they are strictly above the threshold."""
        rows = self._rows(group)
        codes = (self.scores[rows] > threshold).astype(np.int8)
        n_classes = 1
        if self.positive is not None:
            n_classes = 2
            codes += 2 * self.positive[rows]
        shape = (n_classes, 2)
        if self.weights is None:
            counts = np.bincount(codes, minlength=2 * n_classes).astype(np.float64).reshape(shape)
            return Decisions(counts, counts)
        weights = self.weights[rows]
        sums, squares = (
            np.bincount(codes, mass, 2 * n_classes).astype(np.float64).reshape(shape) for mass in (weights, weights**2)
        )
        return Decisions(sums, squares)

    def only(self, groups: NDArray[np.intp]) -> RowEvidence:
        """Return the evidence of some groups alone: rows that belong to none of them are left out."""
        kept = np.isin(np.arange(len(self.groups)), groups)
        settled = self.groups.settle("drop", 1, kept)
        rows = np.flatnonzero(np.any([codes < len(settled) for codes in settled.memberships], axis=0))
        return RowEvidence(
            self.histograms.only(groups),
            self.scores[rows],
            None if self.positive is None else self.positive[rows],
            None if self.weights is None else self.weights[rows],
            settled.select(rows),
            self.rank_scale,
            None if self.ranks is None else self.ranks[rows],
        )

    def _rows(self, group: int) -> Any:
        return slice(None) if group == EVERYONE else self.groups.rows[group]
