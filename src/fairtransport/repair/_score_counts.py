"""The scores of a group with each label, however its rows are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport.histograms import GroupHistograms
from fairtransport.transport.line import Sample

# Scores that differ only by rounding.

_ROUNDING = 16 * np.finfo(np.float64).eps


def tie_starts(values: Floats, *, probabilities: bool = True) -> Bools:
    """Return which of ascending scores differ from the one before by more than rounding.

    Equal rows can get scores that differ in the last bits: libraries add in another order in a batch of another
    size, or on another thread. Taken as different, two such scores would split the mass of a tie between them,
    and their images could lie far apart. The tolerance of probabilities follows the rounding error of a logistic
    function, that of other scores their interquartile range.
    """
    spread = values * (1.0 - values) if probabilities else values[(3 * values.size) // 4] - values[values.size // 4]
    tolerance = 1e-12 * spread + _ROUNDING * np.abs(values)
    return np.append(True, np.diff(values) > tolerance[1:])


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """The weight of rows with each label at each distinct score."""

    values: Floats
    masses: Floats
    rows: Ints

    @classmethod
    def from_rows(
        cls,
        scores: Floats,
        labels: Ints,
        weights: Floats | None = None,
        *,
        n_labels: int = 2,
        probabilities: bool = True,
    ) -> ScoreCounts:
        """Return the counts of rows, whose labels are 0 to ``n_labels - 1``."""
        values, index = np.unique(scores, return_inverse=True)
        starts = tie_starts(values, probabilities=probabilities)
        values, index = values[starts], (np.cumsum(starts) - 1)[index]
        masses = [np.bincount(index[labels == y], _at(weights, labels == y), values.size) for y in range(n_labels)]
        return cls(values, np.array(masses, dtype=np.float64), np.bincount(index, minlength=values.size))

    @classmethod
    def from_histograms(cls, histograms: GroupHistograms, members: Sequence[int]) -> ScoreCounts:
        """Return the counts of some groups together, at the nodes where they have rows."""
        masses = histograms.by_class[:, list(members)].sum(axis=1)
        squares = histograms.squares_by_class[:, list(members)].sum(axis=(0, 1))
        at = np.flatnonzero(masses.sum(axis=0) > 0)
        least = masses.sum(axis=0)[at] ** 2 / squares[at]
        rows = np.maximum(1, np.floor(least * (1 + 1e-9))).astype(np.int64)
        return cls(histograms.grid.nodes[at], masses[:, at], rows)

    @property
    def mass(self) -> float:
        """Weight of all rows."""
        return float(self.masses.sum())

    @property
    def shares(self) -> Floats:
        """Share of each label's weight at each score, 0 for labels without rows: shape (n_labels, n)."""
        totals = self.masses.sum(axis=1, keepdims=True)
        return np.divide(self.masses, totals, out=np.zeros_like(self.masses), where=totals > 0)

    @property
    def has_label(self) -> Bools:
        """True if there are rows with each label."""
        return np.asarray(self.masses.sum(axis=1) > 0)

    def sample(self, label: int | None = None) -> Sample:
        """Return the distribution of all rows, or of those with one label."""
        masses = self.masses.sum(axis=0) if label is None else self.masses[label]
        at = masses > 0
        return Sample.from_sorted(self.values[at], masses[at])

    def moved(self, images: Floats, label: int) -> Sample:
        """Return the distribution of the rows with one label after each score was moved to its image."""
        at = self.masses[label] > 0
        return Sample.from_sorted(images[at], self.masses[label][at])

    def sliced(self, n_slices: int, min_rows: int = 1) -> Ints:
        """Return the slice of each score: about ``n_slices`` runs of neighbouring scores, fine for all labels.

        A score is never split. With ``min_rows``, neighbouring slices are joined until each has so many rows, or so
        much weight: weight k is k copies, unless the mean weight is below 1.
        """
        share = self.shares[self.has_label].mean(axis=0)
        level = np.cumsum(share) - share / 2
        slices = np.minimum((level * n_slices).astype(np.int64), n_slices - 1)
        if self.values.size <= n_slices:
            slices = np.arange(self.values.size)
        slices = np.unique(slices, return_inverse=True)[1]
        if min_rows == 1:
            return slices
        copies = self.masses.sum(axis=0) * max(self.rows.sum() / self.mass, 1.0)
        return _joined(np.bincount(slices, copies).tolist(), min_rows * (1.0 - 1e-9))[slices]


def _joined(rows: list[float], min_rows: float) -> Ints:
    """Return the number of the run that each slice belongs to, where every run has enough rows."""
    runs, number, total = np.empty(len(rows), dtype=np.int64), 0, 0.0
    for index, count in enumerate(rows):
        runs[index], total = number, total + count
        if total >= min_rows:
            number, total = number + 1, 0.0
    return np.minimum(runs, max(0, number - 1))  # what is left at the end joins the last run


def _at(weights: Floats | None, rows: Bools) -> Floats | None:
    return None if weights is None else weights[rows]
