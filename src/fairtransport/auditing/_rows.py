"""The validated rows of an audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._evidence import RowEvidence
from fairtransport.auditing._rank_scale import RankScale
from fairtransport.auditing._within_strata import AlikeRows
from fairtransport.auditing.errors._residual_moments import moments_of_rows
from fairtransport.histograms import Grid, count_entries
from fairtransport.metrics import pooled_ranks
from fairtransport.tables.residual_sums import decile_edges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing.errors._residual_moments import ResidualMoments
    from fairtransport.auditing.options import Options
    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms
    from fairtransport.strata import Strata

__all__ = ["Rows", "choose_grid", "labels_of"]

# Probabilities that are rounded to single precision may lie slightly outside [0, 1].
_ROUNDING = 1e-6


def choose_grid(values: NDArray[np.float64], n_bins: int, options: Options, *, is_regression: bool) -> Grid:
    """Return the grid of scores whose range is not given: [0, 1] where they lie within, or nodes of their own."""
    within = bool(np.all((values >= -_ROUNDING) & (values <= 1 + _ROUNDING)))
    if within and not is_regression:
        return Grid(n_bins=n_bins)
    return Grid.covering(values, n_bins, extra=[each for each in options.requested if isinstance(each, float)])


def labels_of(criterion: str) -> tuple[int | None, ...]:
    """Return the labels within which a criterion compares rows."""
    return {"equalized_odds": (0, 1), "equal_opportunity": (1,)}.get(criterion, (None,))


@dataclass(frozen=True, eq=False)
class Rows:
    """The validated rows of an audit.

    Parameters
    ----------
    grid : Grid
    scores : array of shape (n,)
    positive : array of bool of shape (n,), or None
        Which rows have the positive label; None without labels of classes.
    labels : array of shape (n,), or None
        Real-valued labels.
    weights : array of shape (n,), or None
    groups : Groups
    strata : Strata or None
    rank_scale : RankScale, optional
        Of scores without known bounds.
    ranks : array of shape (n,), optional
        Of these scores, among all rows.
    """

    grid: Grid
    scores: NDArray[np.float64]
    positive: NDArray[np.bool_] | None
    labels: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    groups: Groups
    strata: Strata | None
    rank_scale: RankScale | None = None
    ranks: NDArray[np.float64] | None = None

    def select(self, rows: NDArray[np.int64]) -> Rows:
        """Return some of the rows."""
        return replace(
            self,
            scores=self.scores[rows],
            positive=None if self.positive is None else self.positive[rows],
            labels=None if self.labels is None else self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=self.groups.select(rows),
            strata=None if self.strata is None else self.strata.select(rows),
            ranks=None if self.ranks is None else self.ranks[rows],
        )

    def with_ranks(self) -> Rows:
        """Return the rows with their ranks, where scores have no known bounds."""
        if not self.grid.positions:
            return self
        scale = RankScale.of(self._histograms())
        return replace(self, rank_scale=scale, ranks=pooled_ranks(self.scores, self.weights))

    def alike(self, criterion: str) -> Iterator[AlikeRows]:
        """Yield the rows that a criterion compares groups in, by label and stratum; those without rows are left out."""
        unlabelled = replace(self, positive=None, strata=None)
        names: Sequence[str | None] = [None] if self.strata is None else self.strata.names
        for number, name in enumerate(names):
            inside = np.ones(self.scores.size, np.bool_) if self.strata is None else self.strata.codes == number
            for label in labels_of(criterion) if self.labels is None else (None,):
                matches = inside if label is None or self.positive is None else inside & (self.positive == bool(label))
                rows = np.flatnonzero(matches)
                if rows.size:
                    yield AlikeRows(label, name, unlabelled.select(rows).evidence())

    def evidence(self) -> RowEvidence:
        """Return the rows as evidence, with their histograms."""
        return RowEvidence(
            self._histograms(),
            self.grid.to_unit(self.scores),
            self.positive,
            self.weights,
            self.groups,
            self.rank_scale,
            self.ranks,
        )

    def residuals(self, histograms: GroupHistograms) -> ResidualMoments | None:
        """Return the sums of residuals by group and decile of the prediction; None without real-valued labels."""
        if self.labels is None:
            return None
        return moments_of_rows(self.labels, self.scores, self.weights, self.groups, decile_edges(histograms))

    def _histograms(self) -> GroupHistograms:
        weights = self.weights
        return count_entries(
            self.grid,
            self.groups,
            nodes=self.grid.place_checked(self.scores),
            masses=np.ones(self.scores.size) if weights is None else weights,
            squares=None if weights is None else weights**2,
            rows=None if weights is None else np.ones(self.scores.size),
            labels=self.positive,
        )
