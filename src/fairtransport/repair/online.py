"""The state of a quantile repair that follows a stream: histograms that forget, and the maps computed from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport._labels import is_positive
from fairtransport._sklearn import encode_batch_groups
from fairtransport._validation import check_length, check_vector, check_weights
from fairtransport.criteria.criterion import needs_labels
from fairtransport.groups import NEW_GROUP_ROWS, Groups
from fairtransport.histograms import Grid, GroupHistograms, count_scores
from fairtransport.repair.group_checks import check_compared_counts, require_labels
from fairtransport.repair.group_maps import GroupMaps, positives_of
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from fairtransport.repair.group_maps import MapOptions

_BINS = 1024
_LEARNED_BINS = 4096  # of a range three times as wide as nearly all scores


@dataclass(frozen=True, eq=False)
class OnlineRepairState:
    r"""Histograms of a stream of scores, in which old rows count less and less, and the maps computed from them.

    A state never changes: `update` returns the next one. Its size does not grow with the stream.

    Notes
    -----
    With the weight n of a batch, the histograms become

    .. math:: 2^{-n / \mathrm{half\_life}} \cdot \mathrm{histograms} + \mathrm{batch}.

    A group keeps at least the weight of ten rows, however long it is absent, and a new group starts with ten rows
    that are distributed like the target. A group gets a map of its own when ``min_size`` of its rows have been
    seen, however old they are; until then ``small`` says which map it uses.

    Scores are counted at 1,025 nodes of the range. A range that is learned extends from the first to the last
    percentile of the first rows and as far again on both sides, with 4,097 nodes; scores beyond count at its ends.

    A repair that was fitted to rows continues from those that its maps were computed from; a group without a map of its
    own continues from as many rows as it had (at least ten), distributed like those that its map was computed from. All
    together they count as no more rows than an endless stream would leave: ``half_life / log(2)``.
    """

    histograms: GroupHistograms
    maps: GroupMaps
    options: MapOptions
    half_life: float
    new_groups: str

    @classmethod
    def from_first_batch(
        cls,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        groups: Groups,
        options: MapOptions,
        half_life: float,
        new_groups: str,
        sample_weight: ArrayLike | None = None,
    ) -> OnlineRepairState:
        """Return the state after the first batch, which has rows of at least two groups."""
        values = check_vector(scores, name="scores")
        if np.ptp(values) == 0:
            raise ValueError(
                f"All {values.size} scores of the first batch are equal, so there is nothing to repair: check that the "
                "model that made them was able to learn, or begin with more rows."
            )
        weights = check_weights(sample_weight, size=values.size)
        grid = _grid_of(options, values, weights)
        histograms = _count_batch(_on_grid(grid, values, options), y, groups, weights, options=options, grid=grid)
        check_compared_counts([histograms], options.criterion)
        if options.criterion == "equal_opportunity":
            histograms = positives_of(histograms)
        return cls(histograms, GroupMaps.from_histograms(histograms, options), options, half_life, new_groups)

    @classmethod
    def from_maps(
        cls, maps: GroupMaps, *, grid: Grid | None, options: MapOptions, half_life: float, new_groups: str
    ) -> OnlineRepairState:
        """Return the state of a repair that was not fitted to a stream, from the rows of its maps."""
        if options.criterion == "equalized_odds":
            raise ValueError(
                "This repair was not fitted to a stream, and its maps do not tell which rows had which label. With "
                "criterion='equalized_odds', begin with partial_fit, or fit the repair again."
            )
        if grid is None:
            knots = np.concatenate([one.knots for one in maps.maps])
            grid = _grid_of(options, knots, np.concatenate(maps.rows_at_knots).astype(np.float64))
        histograms = _count_knots(maps, grid)
        keep = min(1.0, half_life / np.log(2.0) / float(histograms.weights.sum()))
        return cls(histograms.forget(keep), maps, options, half_life, new_groups)

    def update(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> OnlineRepairState:
        """Return the state after one more batch."""
        grid = self.histograms.grid
        values = _on_grid(grid, scores, self.options)
        groups = encode_batch_groups(self.maps.groups, sensitive_features, self.new_groups)
        check_length(range(groups.n_rows), size=values.size, name="sensitive_features")
        weights = check_weights(sample_weight, size=values.size)
        batch = _count_batch(values, y, groups, weights, options=self.options, grid=grid)
        if self.options.criterion == "equal_opportunity":
            batch = positives_of(batch)
        size = float(batch.weights.sum())
        before = _discount(_add_groups(self.histograms, groups, self.maps), 0.5 ** (size / self.half_life))
        return self._with(before + batch)

    def forget(self, keep: float) -> OnlineRepairState:
        """Return the state in which every row counts ``keep`` times what it counted."""
        return self._with(self.histograms.forget(keep))

    def add_groups(self, groups: Groups) -> OnlineRepairState:
        """Return the state with further groups, which start like the target."""
        return self._with(_add_groups(self.histograms, groups, self.maps))

    def refit(self) -> OnlineRepairState:
        """Return the state with maps computed anew from the histograms; those in a model file are rounded."""
        return self._with(self.histograms)

    def _with(self, histograms: GroupHistograms) -> OnlineRepairState:
        return replace(self, histograms=histograms, maps=GroupMaps.from_histograms(histograms, self.options))


def _grid_of(options: MapOptions, values: Floats, weights: Floats | None) -> Grid:
    """Return the grid of the range of scores, or, where that is learned, one around those of the first rows."""
    if options.score_range is not None:
        return Grid(*options.score_range, n_bins=_BINS)
    low, high = Sample.from_values(values, weights).quantile([0.01, 0.99]).tolist()
    if low == high:
        low, high = float(values.min()), float(values.max())
    return Grid(low - (high - low), high + (high - low), n_bins=_LEARNED_BINS)


def _on_grid(grid: Grid, scores: ArrayLike, options: MapOptions) -> Floats:
    """Return scores within the range of a grid; those outside count at its ends if it was learned, and raise if not."""
    if options.score_range is not None:
        return grid.check(scores)
    return np.clip(check_vector(scores, name="scores"), grid.low, grid.high)


def _count_batch(
    scores: Floats, y: ArrayLike | None, groups: Groups, weights: Floats | None, *, options: MapOptions, grid: Grid
) -> GroupHistograms:
    """Return the histograms of a batch, with labels where the criterion needs them."""
    labels = None
    if needs_labels(options.criterion):
        require_labels(y, options.criterion)
        labels = is_positive(np.asarray(y), size=scores.size, name="y").astype(np.int64)
    return count_scores(
        scores,
        labels,
        sensitive_features=groups,
        sample_weight=weights,
        range=(grid.low, grid.high),
        n_bins=grid.n_bins,
    )


def _count_knots(maps: GroupMaps, grid: Grid) -> GroupHistograms:
    """Count the rows that maps were computed from, at the nodes of a grid.

    A group without a map of its own gets as many rows as it had, and at least ten, distributed like the rows that its
    map was computed from.
    """
    knots = [one.knots for one in maps.maps]
    masses = [
        rows if own else rows * (max(float(size), NEW_GROUP_ROWS) / rows.sum())
        for rows, own, size in zip(maps.rows_at_knots, maps.own_map, maps.group_sizes, strict=True)
    ]
    counts = GroupHistograms.from_cells(
        grid,
        maps.groups,
        cells=np.repeat(np.arange(len(knots)), [one.size for one in knots]),
        nodes=grid.place_checked(np.clip(np.concatenate(knots), grid.low, grid.high)),
        masses=np.concatenate(masses),
    )
    return replace(counts, rows=np.asarray(maps.group_sizes, dtype=np.int64))


def _add_groups(histograms: GroupHistograms, groups: Groups, maps: GroupMaps) -> GroupHistograms:
    n_new = len(groups) - len(histograms.groups)
    if n_new == 0:
        return histograms
    wide = histograms.with_groups(groups.select(np.empty(0, dtype=np.int64)))
    grid, target = histograms.grid, maps.target
    inside = np.clip(target, grid.low, grid.high)
    prior = np.bincount(grid.place_checked(inside), minlength=grid.n_nodes) * (NEW_GROUP_ROWS / target.size)
    masses, squares = wide.masses.copy(), wide.squares_by_class.copy()
    masses[:, -n_new:], squares[:, -n_new:] = prior, prior
    return replace(wide, masses=masses, squares=squares)


def _discount(histograms: GroupHistograms, keep: float) -> GroupHistograms:
    """Multiply the weights by ``keep``, but reduce none below the least weight that a group keeps."""
    share = np.maximum(keep, np.minimum(1.0, NEW_GROUP_ROWS / histograms.weights))[None, :, None]
    return replace(histograms, masses=share * histograms.masses, squares=share**2 * histograms.squares_by_class)
