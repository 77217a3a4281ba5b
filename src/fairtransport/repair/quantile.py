"""Quantile repair of scores: every group is mapped to one target distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport._validation import check_weights
from fairtransport.groups import MIN_GROUP_SIZE
from fairtransport.repair._counted_cells import CountedCells
from fairtransport.repair._criterion_checks import (
    check_cell_counts,
    check_label_counts,
    check_stream_criterion,
    strata_to_repair,
    training_labels,
)
from fairtransport.repair._fitted_repair import FittedRepair
from fairtransport.repair.group_checks import check_histograms, with_dropped_labels
from fairtransport.repair.group_maps import GroupMaps
from fairtransport.repair.online import OnlineRepairState
from fairtransport.repair.score_range import UNIT, check_in_range
from fairtransport.repair.stratum_maps import StratumMaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.tables import TableCounts

__all__ = ["QuantileRepair"]


class QuantileRepair(FittedRepair):
    r"""Quantile repair of scores: one increasing map for each group, from its distribution to a common target.

    With ``amount=1`` all groups have the same distribution of scores afterwards. This is demographic parity by
    postprocessing (DPP) of [2]_, with exact quantile functions.

    Parameters
    ----------
    target : {"barycenter_w2", "barycenter", "pooled"}, group label or array, default="barycenter_w2"
        The distribution that every group is mapped to. ``"barycenter_w2"``: the Wasserstein-2 barycenter weighted by
        group size, which changes the scores least in mean square and so usually costs the least accuracy.
        ``"barycenter"``: the Wasserstein-1 barycenter with equal weights, as in [1]_. ``"pooled"``: the distribution of
        all rows. A group label: the distribution of that group. An array: the distribution of these scores.
    amount : float, default=1.0
        How much to repair, from 0 (no change) to 1 (equal distributions). It may be set after ``fit``.
    range : pair of float or "learned", default=(0, 1)
        Lowest and highest possible score; a score outside raises. ``"learned"`` takes any scores, such as the
        predictions of a regression, logits or prices: those below the lowest and above the highest score of ``fit`` are
        shifted as far as the score at that end.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}, default="demographic_parity"
        Whose scores should have the same distribution in all groups: those of all people, of people with the same
        label or with similar ``y`` (equalized odds), or of people with the positive label (equal opportunity). Labels
        are needed in ``fit`` only. One map for each group reaches equal opportunity exactly, but equalized odds only as
        far as two conditions on one map allow; see ``randomize``.
    stratum_weight : {"equal", "share"}, optional
        Weight of the labels for ``criterion="equalized_odds"``: the same, which is the default, or by their shares of
        the rows.
    randomize : bool, default=False
        For ``criterion="equalized_odds"``: reach it exactly, at every threshold, by drawing scores at random. Scores
        then tell no more about the label in any group than in the group where they tell least.
    random_state : int, default=0
        Seed of the draws of ``randomize=True``. The same rows get the same scores in every call.
    grouping : {"crossed", "each"}, default="crossed"
        Several sensitive columns are crossed. ``"each"`` is for one column only: with several, groups overlap and a
        row would have more than one map.
    missing : {"error", "group"}, default="error"
        Whether a missing sensitive value raises or forms a group.
    small_groups : {"keep", "pool", "drop"}, default="keep"
        Treatment of groups with fewer than ``min_group_size`` rows; no map is computed from so few rows alone.
        ``"keep"``: each uses the map of all small groups together where these have at least ``min_group_size`` rows,
        and otherwise the common map, from the distribution of all rows to the target; a barycenter with equal weights
        leaves them out. ``"pool"``: the same maps, and the small groups enter the target as one group. ``"drop"``: they
        use the common map and are left out of the target.
    min_group_size : int, default=30
        A group with fewer rows (of positive weight) is small; for equal opportunity, with fewer rows of the positive
        label, and for equalized odds, of either of two labels. 1 gives every group a map of its own.
    stream_half_life : float, default=10000
        For ``partial_fit``: a row counts half after this many further rows of the stream, so that groups keep their
        shares.
    new_groups : {"error", "adopt"}, default="error"
        For ``partial_fit``: whether a group that was not seen before raises or is added.

    Attributes
    ----------
    maps_ : tuple of QuantileMap
        The full repair of each group, in the order of ``groups_.labels``. The knots are the distinct training scores of
        the rows that the map was computed from: protect a fitted repair as you would protect those scores.
        (`fairtransport.save` stores a summary of them.)
    rows_at_knots_ : tuple of ndarray of int
        Training rows that share each knot.
    target_ : ndarray of shape (4096,)
        Scores of equal mass that represent the target distribution.
    groups_ : Groups
        The groups seen in ``fit``, without their rows.
    group_sizes_ : ndarray of int of shape (n_groups,)
        Training rows of each group.
    own_map_ : ndarray of bool of shape (n_groups,)
        Whether the map of a group was computed from the rows of that group alone.
    small_groups_ : tuple
        Labels of the groups without a map of their own.
    strata_ : Strata or None
        The strata seen in ``fit``, without their rows.
    stratum_maps_ : StratumMaps
        The maps of each group within each stratum, and how many rows each was computed from; only after a fit with
        strata.
    randomized_maps_ : RandomizedMaps
        The probabilities of ``randomize=True``; ``maps_`` are then those of the expected scores.
    n_features_in_ : int
        Always 1.
    range_ : tuple of float
        Lowest and highest score: as given, of the counts, or, where it was learned, of the maps.
    grid_ : Grid or None
        The grid on which ``fit_counts`` or ``partial_fit`` counted scores; None after ``fit``.
    set_aside_ : dict of str to int
        Rows of a table that could not be counted, by reason.
    counted_ : GroupHistograms
        What ``partial_fit`` continues from, of a size that does not grow with the stream; only after ``partial_fit``.

    See Also
    --------
    QuantileRepairClassifier : Repairs the probabilities of a classifier.
    QuantileRepairRegressor : Repairs the predictions of a regressor.
    TableRepair : Repairs a column of a table, on the engine that holds the table.

    Notes
    -----
    With the distribution function :math:`F_a` of group a and the quantile function :math:`F_{\bar S}^{-1}` of the
    target, a score s of group a becomes

    .. math:: (1 - \mathrm{amount}) \, s + \mathrm{amount} \, F_{\bar S}^{-1}(F_a(s)).

    For ``amount=1`` this is the optimal transport map on the line. With ``amount`` between 0 and 1 the distribution of
    each group lies on the Wasserstein geodesic from its original one to the target: a share of
    :math:`(1 - \mathrm{amount})^2` of the squared Wasserstein-2 distance is left.

    The maps are computed from the training scores and then fixed, so the result of a row depends on that row only and
    is deterministic. A map is

    * at a training score: the mean of the target over the levels that the score fills, the same for all ties (scores
      that differ only by rounding are ties, so that equal rows scored in different batches stay equal);
    * between two neighbouring training scores: linear;
    * below the lowest and above the highest training score: constant, so that scores there keep their order but, with
      ``amount=1``, no longer differ from each other; or, with ``range="learned"``, shifted as far as that score.

    It is non-decreasing, so the order within a group is kept. A score that many rows share stays one score: such groups
    come as close to the target as that allows.

    *Equal opportunity.* The same, with the distributions of the rows with a positive label, and applied to all rows.
    Beyond the lowest and the highest of these scores the map is linear to the end of the range, if that is given.

    *Equalized odds.* The increasing maps that minimise the sum over labels and pairs of groups of Wasserstein-1
    distances, among those that keep the distribution of all repaired scores together. That distribution is the one
    of the best partial repair for demographic parity or equal opportunity, whatever its amount, so that the maps are
    never worse than it on the training rows. (Were it free, a constant would be best.) The minimum is a shortest path
    through the ways of merging the rankings of two groups, in up to 256 slices, and found for more than two groups by
    merging one pair after the other. Where ``y`` has more than two values, its labels are ranges between quantiles,
    as those of strata, and the partial repairs are those for demographic parity.

    *Randomised equalized odds.* The receiver operating characteristic (ROC) curve that all groups get is the pointwise
    minimum of the concave hulls of their curves, the highest that all can have [3]_; the distribution of all repaired
    scores is the target. With ``amount`` below 1, drawn and original scores are averaged.

    *Strata.* Each stratum has a target and maps of its own. Where a group has n < ``min_group_size`` rows in a stratum,
    its score there is the mean of this map's and the group's overall one, with weights n / ``min_group_size`` and the
    rest. A stratum with rows of one group only is left unchanged.

    References
    ----------
    .. [1] Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Sections "SDP-Fair Classification
           with OT" and "Results".
    .. [2] Jiang, Pacchiano, Stepleton, Jiang and Chiappa (2020), "Wasserstein Fair Classification", UAI.
    .. [3] Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning", NeurIPS.

    Examples
    --------
    >>> from fairtransport import QuantileRepair
    >>> scores, sex = [0.1, 0.3, 0.5, 0.7], ["F", "F", "M", "M"]
    >>> repair = QuantileRepair(min_group_size=1).fit(scores, sensitive_features=sex)
    >>> repair.transform(scores, sensitive_features=sex)
    array([0.3, 0.5, 0.3, 0.5])
    >>> repair.transform([0.2, 0.9], sensitive_features=["F", "M"])
    array([0.4, 0.5])

    Predictions of a regression, in units of y:

    >>> repair = QuantileRepair(range="learned", min_group_size=1).fit([10, 30, 50, 70], sensitive_features=sex)
    >>> repair.transform([0, 20, 90], sensitive_features=["F", "F", "M"])
    array([20., 40., 70.])
    """

    def __init__(
        self,
        target: Any = "barycenter_w2",
        amount: float = 1.0,
        *,
        range: Any = UNIT,  # noqa: A002 - the name that numpy.histogram has
        criterion: str = "demographic_parity",
        stratum_weight: str | None = None,
        randomize: bool = False,
        random_state: int = 0,
        grouping: str = "crossed",
        missing: str = "error",
        small_groups: str = "keep",
        min_group_size: int = MIN_GROUP_SIZE,
        stream_half_life: float = 10_000.0,
        new_groups: str = "error",
    ) -> None:
        self.target = target
        self.amount = amount
        self.range = range
        self.criterion = criterion
        self.stratum_weight = stratum_weight
        self.randomize = randomize
        self.random_state = random_state
        self.grouping = grouping
        self.missing = missing
        self.small_groups = small_groups
        self.min_group_size = min_group_size
        self.stream_half_life = stream_half_life
        self.new_groups = new_groups

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the target and the map of each group.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores within ``range``.
        y : array-like of shape (n,), optional
            Two labels, of which the larger is positive, or, for equalized odds, numbers, which are cut at quantiles;
            required by criteria that compare people with the same label, and otherwise ignored.
        sensitive_features : column, table or Groups
            At least two groups; several columns are crossed.
        strata : column or table, optional
            Groups are compared within these strata only (conditional parity). Several columns are crossed, and numbers
            are cut at quantiles; see `fairtransport.strata.make_strata`. ``transform`` needs them, too.
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row, and weight 0 none.

        Returns
        -------
        self
        """
        self.check_parameters()
        values = check_in_range(scores, self.range)
        weights = check_weights(sample_weight, size=values.size)
        groups = self._groups_of(sensitive_features, values.size, weights)
        known = training_labels(y, groups, self.criterion, weights)
        cells = strata_to_repair(
            strata, groups, criterion=self.criterion, labels=known, weights=weights, randomize=self.randomize
        )
        labels, n_labels = (None, 2) if known is None else known
        if weights is not None:  # weight 0 means zero copies of a row
            kept = weights > 0
            values, weights, groups = values[kept], weights[kept], groups.select(kept)
            labels = None if labels is None else labels[kept]
            cells = None if cells is None else cells.select(kept)
        if np.ptp(values) == 0:
            raise ValueError(
                f"All {values.size} scores are equal, so there is nothing to repair: check that the model that "
                "computed them was able to learn."
            )
        options = replace(self._map_options(), n_labels=n_labels)
        maps = GroupMaps.from_scores(values, groups, weights, options, labels)
        within = None
        if cells is not None:
            settled = with_dropped_labels(groups)
            within = StratumMaps.from_scores(values, settled, weights, options, strata=cells, labels=labels)
        self._set_maps(maps, within, grid=None, set_aside={})
        self._warn_if_all_small()
        return self

    def fit_counts(self, counts: TableCounts, *, strata: Sequence[str] = ()) -> Self:
        """Find the target and the map of each group from the counts of a table.

        Parameters
        ----------
        counts : TableCounts
            As `fairtransport.tables.count_table` returns them; with labels, where the criterion needs them. Rows that
            were set aside there have no part in the maps.
        strata : sequence of str, optional
            Columns of strata, for conditional parity. They are among the columns that the rows were grouped by, which
            are otherwise those of the groups.

        Returns
        -------
        self

        See Also
        --------
        TableRepair : Counts a table, fits this repair to the counts, and repairs tables.
        """
        self.check_parameters()
        histograms, within, options = counts.histograms, None, self._map_options()
        if strata:
            if self.randomize:
                raise ValueError("randomize=True does not take strata; leave one of them out.")
            cells = CountedCells.split(histograms, strata)
            check_cell_counts(cells.within, self.criterion)
            histograms = cells.groups
            within = StratumMaps.from_histograms(cells.within, options, strata=cells.strata)
        check_histograms(histograms)
        check_label_counts(histograms, self.criterion)
        maps = GroupMaps.from_histograms(histograms, options)
        self._set_maps(maps, within, grid=histograms.grid, set_aside=counts.set_aside)
        self._warn_if_all_small()
        return self

    def partial_fit(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Update the maps with one batch of a stream; demographic parity needs no labels.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores before repair, of one or more rows; within ``range``, or within that of the table that the repair was
            fitted to.
        y : array-like of shape (n,), optional
            Labels of the batch, which may come later than its scores; required by criteria that compare people with the
            same label, and otherwise ignored. Batches with one label only need labels 0 and 1.
        sensitive_features : column, table or Groups
            The columns of ``fit``. Groups may be absent. One that was not seen before raises, or is added: see
            ``new_groups``.
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
            Without a ``fit`` before, the first batch needs what ``fit`` needs: rows of two groups.

        Notes
        -----
        Scores are counted (at the nodes of the table that the repair was fitted to, if it was), and a row counts half
        after ``stream_half_life`` further rows. The target and the maps are those of these counts; `TableRepair` states
        how far maps of counts can be from maps of rows. `OnlineRepairState` says what happens to absent and to new
        groups, and how a repair that was fitted before continues.

        For equal opportunity all this is said of rows with a positive label; the others are not used. For equalized
        odds a stream begins with ``partial_fit``: maps that ``fit`` computed do not tell which rows had which label. It
        needs two labels.
        """
        self.check_parameters()
        check_stream_criterion(self.criterion, y, randomize=self.randomize, strata=hasattr(self, "stratum_maps_"))
        if hasattr(self, "maps_"):
            state = self.online_state()
            return self.resume(
                state.update(scores, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
            )
        values = check_in_range(scores, self.range)
        weights = check_weights(sample_weight, size=values.size)
        groups = self._groups_of(sensitive_features, values.size, weights)
        return self.resume(
            OnlineRepairState.from_first_batch(
                values,
                y,
                groups=groups,
                sample_weight=weights,
                options=self._map_options(),
                stream_half_life=self.stream_half_life,
                new_groups=self.new_groups,
            )
        )

    def fit_transform(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
        keys: Any = None,
    ) -> NDArray[np.float64]:
        """Fit the repair and return the repaired training scores; see ``fit`` and ``transform`` for the parameters."""
        self.fit(scores, y, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight)
        return self.transform(scores, sensitive_features=sensitive_features, strata=strata, keys=keys)
