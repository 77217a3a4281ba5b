"""``partial_fit`` of `QuantileRepair`: histograms that forget, and maps that follow them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.streaming import NEW_GROUP_ROWS, encode_batch_groups
from fairtransport._validation import check_length, check_weights
from fairtransport.histograms import Grid, GroupHistograms, count_scores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["RepairsStreams", "widened_counts"]

_BINS = 1024


class RepairsStreams:
    """What a repair does with a stream; `QuantileRepair` has the parameters and learns the maps."""

    def partial_fit(
        self: Any,
        scores: ArrayLike,
        y: Any = None,  # noqa: ARG002 - the place scikit-learn gives to labels; repair needs none
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Count one batch of a stream and let the maps follow; no labels are needed.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores of the model as it is, not repaired ones, from a single row on; within [0, 1], or within the range
            of `fit_table`.
        y : ignored
            Here for scikit-learn's sake.
        sensitive_features : column, table or Groups
            The columns of ``fit``. Groups may be absent. One that was not seen before raises, or is adopted: see
            ``new_groups``.
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
            Without a ``fit`` before, the first batch needs what ``fit`` needs: rows of two groups.

        Notes
        -----
        Scores are counted at 1,025 nodes (at those of `fit_table`, where that was used), and a row of ``half_life``
        rows ago counts half. The target and the maps are those of these counts, as after `fit_table`, which says how
        far maps of counts can be from maps of rows: with bins of 1/1024 the score and its image move by no more than
        two bins and one, where every bin has rows.

        A group keeps at least the weight of ten rows, however long it is absent. An adopted one begins with ten that
        are distributed like the target. A group gets a map of its own when ``min_group_size`` of its rows have been
        seen, however old they are; until then ``small_groups`` says which map it uses.

        A repair that was fitted goes on from the rows that its maps were made from; a group without a map of its own
        goes on from as many rows as it had (at least ten), distributed like those that its map was made from. All
        together they count as no more rows than an endless stream would leave: ``half_life / log(2)``.
        """
        self._check_parameters()
        if not hasattr(self, "maps_"):
            counted = self._first_counts(scores, sensitive_features, sample_weight)
        else:
            counted = self._next_counts(scores, sensitive_features, sample_weight)
        return self.follow_counts(counted)

    def follow_counts(self: Any, counted: GroupHistograms) -> Any:
        """Make the maps those of these counts, which a stream goes on from; `partial_fit` ends with it.

        Examples
        --------
        >>> import numpy as np
        >>> from fairtransport import QuantileRepair
        >>> scores, sex = np.linspace(0, 1, 200), ["F", "M"] * 100
        >>> repair = QuantileRepair().fit(scores, sensitive_features=sex).partial_fit(scores, sensitive_features=sex)
        >>> repair = repair.follow_counts(repair.counted_.forget(0.5))
        >>> bool(repair.counted_.weights.sum() < 200)
        True
        """
        # A copy of the estimator must not be moved along: everything is made anew.
        self._learn_counts(counted)
        grid: Any = counted.grid
        self.grid_, self.set_aside_, self.counted_ = grid, vars(self).get("set_aside_", {}), counted
        return self

    def _first_counts(self: Any, scores: ArrayLike, sensitive_features: Any, sample_weight: Any) -> GroupHistograms:
        grid = Grid(n_bins=_BINS)
        values = grid.check(scores)
        weights = check_weights(sample_weight, size=values.size)
        groups = self._groups_of(sensitive_features, values.size, weights)
        if np.ptp(values) == 0:
            raise ValueError(
                f"All {values.size} scores of the first batch are equal, so there is nothing to repair: check that the "
                "model that made them was able to learn, or begin with more rows."
            )
        return count_scores(values, sensitive_features=groups, sample_weight=weights, n_bins=_BINS)

    def _next_counts(self: Any, scores: ArrayLike, sensitive_features: Any, sample_weight: Any) -> GroupHistograms:
        before = vars(self).get("counted_")
        grid = (self.grid_ or Grid(n_bins=_BINS)) if before is None else before.grid
        values = grid.check(scores)
        groups = encode_batch_groups(self.groups_, sensitive_features, self.new_groups)
        check_length(range(groups.n_rows), size=values.size, name="sensitive_features")
        weights = check_weights(sample_weight, size=values.size)
        new = count_scores(
            values,
            sensitive_features=groups,
            sample_weight=weights,
            range=(grid.low, grid.high),
            n_bins=grid.n_bins,
        )
        if before is None:
            before = _counts_of_maps(self, grid)
            before = before.forget(min(1.0, self.half_life / np.log(2.0) / float(before.weights.sum())))
        before = widened_counts(before, groups, self.target_)
        size = float(values.size if weights is None else weights.sum())
        return _faded(before, 0.5 ** (size / self.half_life)) + new


def _counts_of_maps(repair: Any, grid: Grid) -> GroupHistograms:
    """Count the rows that the maps were made from, at the nodes of the grid."""
    knots = [carry.knots for carry in repair.maps_]
    masses = [
        rows if own else rows * (max(float(size), NEW_GROUP_ROWS) / rows.sum())
        for rows, own, size in zip(repair.rows_at_knots_, repair.own_map_, repair.group_sizes_, strict=True)
    ]
    cells = np.repeat(np.arange(len(knots)), [own.size for own in knots])
    counts = GroupHistograms.from_cells(
        grid,
        repair.groups_,
        cells=cells,
        nodes=grid.places(np.concatenate(knots)),
        masses=np.concatenate(masses),
    )
    return replace(counts, rows=np.asarray(repair.group_sizes_, dtype=np.int64))


def widened_counts(counts: GroupHistograms, groups: Groups, target: NDArray[np.float64]) -> GroupHistograms:
    """Make room for new groups, which begin like the target."""
    n_new = len(groups) - len(counts.groups)
    if n_new == 0:
        return counts
    wide = counts.with_groups(groups.select(np.empty(0, dtype=np.int64)))
    like = np.bincount(counts.grid.places(target), minlength=counts.grid.n_nodes) * (NEW_GROUP_ROWS / target.size)
    masses, squares = wide.masses.copy(), wide.squares_by_class.copy()
    masses[:, -n_new:], squares[:, -n_new:] = like, like
    return replace(wide, masses=masses, squares=squares)


def _faded(counts: GroupHistograms, keep: float) -> GroupHistograms:
    """Forget, but no group below the weight that it may keep."""
    share = np.maximum(keep, np.minimum(1.0, NEW_GROUP_ROWS / counts.weights))[None, :, None]
    return replace(counts, masses=share * counts.masses, squares=share**2 * counts.squares_by_class)
