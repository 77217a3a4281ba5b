"""Quantile repair of scores: every group is mapped to one target distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Self

import numpy as np
from numba import config
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from fairtransport._arrays import Floats, Ints
from fairtransport._sklearn import RowScoring, fitted_summary_html, take_rows
from fairtransport._validation import check_choice, check_length, check_real, check_vector, check_weights
from fairtransport._warnings import FairnessWarning, warn_caller
from fairtransport.criteria import Criterion
from fairtransport.criteria.criterion import as_criterion, criterion_name
from fairtransport.groups import GroupPolicy, Groups, check_policy
from fairtransport.histograms import Grid
from fairtransport.repair import group_checks as checks
from fairtransport.repair.group_maps import (
    LEARNED,
    UNIT,
    CountedRows,
    GroupMaps,
    MapOptions,
    ScoredRows,
    check_in_range,
    move_scores,
    resolve_range,
)
from fairtransport.repair.online import OnlineRepairState
from fairtransport.repair.randomized_maps import row_draws
from fairtransport.repair.stratum_maps import CountedCells, StratumMaps, cells_of
from fairtransport.strata import Strata
from fairtransport.tables import RepairLookup, TableCounts
from fairtransport.training.online import OnlineSettings, half_life_of

#: Rows of a stream after which a row counts half, by default.
HALF_LIFE = 10_000.0
_OUTPUTS = ("default", "pandas", "polars")

# What a fitted repair does, in a few sentences.

#: Which rows a map is computed from, after the word "rows".
MAP_ROWS = {
    "demographic_parity": "",
    "equal_opportunity": " with a positive label",
    "equalized_odds": " with each label",
}


def describe_repair(repair: Any) -> list[str]:
    """Return statements about the groups and cells of a fitted repair that have no map of their own."""
    n_small, n_groups, sentences = len(repair.small_groups_), len(repair.groups_), []
    of_rows = f"rows{MAP_ROWS[criterion_name(repair.criterion)]}"
    rows = f"{check_policy(repair.groups).min_size} {of_rows}"
    if n_small == n_groups:
        sentences.append(f"{_no_large_group(repair)} {rows}: all share one map, and ranks stay as different")
    elif n_small:
        maps = "map of its own" if n_small == 1 else "maps of their own"
        sentences.append(f"{n_small} of {n_groups} groups {_have(n_small)} fewer than {rows} and no {maps}")
    within = vars(repair).get("stratum_maps_")
    if within is None:
        return sentences
    filled = within.sizes > 0
    n_single, n_few = (int(np.count_nonzero(one)) for one in (filled.sum(axis=1) < 2, filled & (within.shares < 1.0)))
    if n_single:
        single = f"{n_single} of {len(filled)} strata {_have(n_single)} rows of one group only"
        sentences.append(f"{single}: nothing to compare there")
    if n_few:
        few = f"{n_few} of {filled.sum()} cells of a stratum and a group {_have(n_few)} fewer than {within.min_size}"
        maps = "its map is" if n_few == 1 else "their maps are"
        sentences.append(f"{few} {of_rows}: {maps} shrunk to that of the group")
    return sentences


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _no_large_group(repair: Any) -> str:
    pair, n_groups = criterion_name(repair.criterion) == "equalized_odds", len(repair.groups_)
    return f"Fewer than two of the {n_groups} groups have" if pair else f"None of the {n_groups} groups has"


class QuantileRepair(RowScoring, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
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
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Whose scores should have the same distribution in all groups: those of all people, of people with the same
        label or with similar ``y`` (equalized odds), or of people with the positive label (equal opportunity). Labels
        are needed in ``fit`` only. One map for each group reaches equal opportunity exactly, but equalized odds only as
        far as two conditions on one map allow; see ``randomize``.
    randomize : bool, default=False
        For ``criterion="equalized_odds"``: reach it exactly, at every threshold, by drawing scores at random. Scores
        then tell no more about the label in any group than in the group where they tell least.
    random_state : int, default=0
        Seed of the draws of ``randomize=True``. The same rows get the same scores in every call.
    groups : GroupPolicy, optional
        How sensitive columns become groups; several must be crossed, so that a row has one map. No map is computed from
        fewer than ``min_size`` rows alone; for equal opportunity, of the positive label, and for equalized odds, of
        either of two labels. ``small="keep"``: each small group uses the map of all small groups together where these
        have at least ``min_size`` rows, and otherwise the common map, from the distribution of all rows to the target;
        a barycenter with equal weights leaves them out. ``"pool"``: the same maps, and the small groups enter the
        target as one group. ``"drop"``: they use the common map and are left out of the target.
    online : OnlineSettings, optional
        For ``partial_fit``: how fast earlier rows are forgotten. By default a row counts half after 10,000 further rows
        of the stream; see :class:`~fairtransport.repair.OnlineSettings`.

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
    groups_, strata_ : Groups, Strata or None
        Seen in ``fit``, without their rows.
    group_sizes_, own_map_ : ndarray of shape (n_groups,)
        Training rows of each group, and whether its map was computed from these alone.
    small_groups_ : tuple
        Labels of the groups without a map of their own.
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
    QuantileRepairClassifier, QuantileRepairRegressor : Repair the scores of a model.
    TableRepair : Repairs a column of a table, on the engine that holds the table.

    Notes
    -----
    With the distribution function :math:`F_a` of group a and the quantile function :math:`F_{\bar S}^{-1}` of the
    target, a score s of group a becomes

    .. math:: (1 - \mathrm{amount}) \, s + \mathrm{amount} \, F_{\bar S}^{-1}(F_a(s)).

    For ``amount=1`` this is the optimal transport map on the line; otherwise a share of
    :math:`(1 - \mathrm{amount})^2` of the squared Wasserstein-2 distance is left. The maps are computed from the
    training scores and then fixed, so the result of a row depends on that row only. At a training score a map is the
    mean of the target over the levels that the score fills, the same for all ties, also of scores that differ only by
    rounding. Between two neighbouring training scores it is linear. Below the lowest and above the highest it is
    constant or, with ``range="learned"``, shifted as far as that score. So the order within a group is kept, and a
    score that many rows share stays one score.

    *Equal opportunity.* The same, with the distributions of the rows with a positive label, and applied to all rows.
    Beyond the lowest and the highest of these scores the map is linear to the end of the range, if that is given.

    *Equalized odds.* The increasing maps that minimise the sum over labels and pairs of groups of Wasserstein-1
    distances, among those that keep the distribution of all repaired scores together, which is that of the best partial
    repair for demographic parity or equal opportunity. (Were it free, a constant would be best.) The minimum is a
    shortest path through the ways of merging the rankings of two groups, in up to 256 slices, and found for more groups
    by merging one pair after the other. Where ``y`` has more than two values, its labels are ranges between quantiles.

    *Randomised equalized odds.* The receiver operating characteristic (ROC) curve that all groups get is the pointwise
    minimum of the concave hulls of their curves, the highest that all can have [3]_; the distribution of all repaired
    scores is the target. With ``amount`` below 1, drawn and original scores are averaged.

    *Strata.* Each stratum has a target and maps of its own. Where a group has n < ``min_size`` rows in a stratum,
    its score there is the mean of this map's and the group's overall one, with weights n / ``min_size`` and the
    rest. A stratum with rows of one group only is left unchanged.

    References
    ----------
    .. [1] Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Sections "SDP-Fair Classification
           with OT" and "Results".
    .. [2] Jiang, Pacchiano, Stepleton, Jiang and Chiappa (2020), "Wasserstein Fair Classification", UAI.
    .. [3] Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning", NeurIPS.

    Examples
    --------
    >>> from fairtransport import GroupPolicy, QuantileRepair
    >>> scores, sex = [0.1, 0.3, 0.5, 0.7], ["F", "F", "M", "M"]
    >>> repair = QuantileRepair(groups=GroupPolicy(min_size=1)).fit(scores, sensitive_features=sex)
    >>> repair.transform(scores, sensitive_features=sex)
    array([0.3, 0.5, 0.3, 0.5])
    >>> repair.transform([0.2, 0.9], sensitive_features=["F", "M"])
    array([0.4, 0.5])

    Predictions of a regression, in units of y:

    >>> repair = QuantileRepair(range="learned", groups=GroupPolicy(min_size=1))
    >>> repair = repair.fit([10, 30, 50, 70], sensitive_features=sex)
    >>> repair.transform([0, 20, 90], sensitive_features=["F", "F", "M"])
    array([20., 40., 70.])
    """

    def __init__(
        self,
        target: Any = "barycenter_w2",
        amount: float = 1.0,
        *,
        range: Any = UNIT,  # noqa: A002 - the name that numpy.histogram has
        criterion: str | Criterion = "demographic_parity",
        randomize: bool = False,
        random_state: int = 0,
        groups: GroupPolicy | None = None,
        online: OnlineSettings | None = None,
    ) -> None:
        self.target = target
        self.amount = amount
        self.range = range
        self.criterion = criterion
        self.randomize = randomize
        self.random_state = random_state
        self.groups = groups
        self.online = online

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
        groups, known, cells = self.read_rows(y, sensitive_features, strata, weights, n_rows=values.size)
        labels, n_labels = known or (None, 2)
        kept = groups.has_group if not groups.dropped else np.ones(values.size, dtype=np.bool_)
        if weights is not None:  # weight 0 means zero copies of a row
            kept &= weights > 0
        if not kept.all():
            values, groups = values[kept], groups.select(kept)
            weights = None if weights is None else weights[kept]
            labels = None if labels is None else labels[kept]
            cells = None if cells is None else cells.select(kept)
        if np.ptp(values) == 0:
            raise ValueError(
                f"All {values.size} scores are equal, so there is nothing to repair: check that the model that "
                "computed them was able to learn."
            )
        options = replace(self._map_options(), n_labels=n_labels)
        rows, within = ScoredRows.of(values, groups, weights, labels), None
        if cells is not None:
            settled = replace(rows, n_kept=len(rows.groups))
            within = StratumMaps.from_rows([settled.select(part) for part in cells.rows], options, strata=cells)
        self._set_maps(GroupMaps.from_rows(rows, options), within, grid=None, set_aside={})
        self._warn_of_small_groups()
        return self

    def fit_counts(self, counts: TableCounts, *, strata: Sequence[str] = ()) -> Self:
        """Find the target and the map of each group from the counts of a table, as `TableRepair` makes them.

        Parameters
        ----------
        counts : TableCounts
            With labels, where the criterion needs them.
        strata : sequence of str, optional
            Columns of strata, for conditional parity, among the columns that the rows were grouped by.

        Returns
        -------
        self
        """
        self.check_parameters()
        histograms, within, options = counts.histograms, None, self._map_options()
        if strata:
            if self.randomize:
                raise ValueError("randomize=True does not take strata; leave one of them out.")
            cells = CountedCells.split(histograms, strata)
            checks.check_compared_counts(cells.within, criterion_name(self.criterion), "stratum")
            histograms = cells.groups
            parts = [CountedRows(part) for part in cells.within]
            within = StratumMaps.from_rows(parts, options.on(histograms.grid), strata=cells.strata)
        checks.check_histograms(histograms)
        checks.check_compared_counts([histograms], criterion_name(self.criterion))
        maps = GroupMaps.from_histograms(histograms, options)
        self._set_maps(maps, within, grid=histograms.grid, set_aside=counts.set_aside)
        self._warn_of_small_groups()
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
            ``GroupPolicy.new``.
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
            Without a ``fit`` before, the first batch needs what ``fit`` needs: rows of two groups.

        Notes
        -----
        Scores are counted, a row counts half after ``online.half_life`` further rows, and the maps are those of these
        counts; see `OnlineRepairState`, and `TableRepair` for how far maps of counts can be from maps of rows. For
        equal opportunity only rows with a positive label are used. For equalized odds, which needs two labels, a
        stream begins with ``partial_fit``: maps that ``fit`` computed do not tell which rows had which label.
        """
        self.check_parameters()
        checks.check_stream_criterion(
            criterion_name(self.criterion), y, randomize=self.randomize, strata=hasattr(self, "stratum_maps_")
        )
        if hasattr(self, "maps_"):
            state = self.online_state()
            options = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            return self.resume(state.update(scores, y, **options))
        values = check_in_range(scores, self.range)
        weights = check_weights(sample_weight, size=values.size)
        groups = checks.groups_to_repair(sensitive_features, n_rows=values.size, groups=self.groups, weights=weights)
        options = self._online_options()
        return self.resume(
            OnlineRepairState.from_first_batch(values, y, groups=groups, sample_weight=weights, **options)
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
    ) -> Floats:
        """Fit the repair and return the repaired training scores; see ``fit`` and ``transform`` for the parameters."""
        self.fit(scores, y, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight)
        return self.transform(scores, sensitive_features=sensitive_features, strata=strata, keys=keys)

    @property
    def needs_groups_(self) -> bool:
        """True: the group of a row is needed to repair its score."""
        return True

    @property
    def strata_(self) -> Strata | None:
        """The strata seen in ``fit``, without their rows."""
        within: StratumMaps | None = vars(self).get("stratum_maps_")
        return None if within is None else within.strata

    @property
    def small_groups_(self) -> tuple[Any, ...]:
        """Labels of the groups without a map of their own."""
        return tuple(label for label, own in zip(self.groups_.labels, self.own_map_, strict=True) if not own)

    @property
    def range_(self) -> tuple[float, float]:
        """Lowest and highest score: as given, of the counts, or, where it was learned, of the maps."""
        if self.grid_ is not None:
            return self.grid_.low, self.grid_.high
        if self.extrapolates:
            return min(float(one.knots[0]) for one in self.maps_), max(float(one.knots[-1]) for one in self.maps_)
        low, high = self.range
        return float(low), float(high)

    @property
    def extrapolates(self) -> bool:
        """True if any score can be repaired: those beyond the maps are shifted as far as the last score within."""
        return isinstance(self.range, str) and self.range == LEARNED

    def transform(
        self,
        scores: ArrayLike,
        *,
        sensitive_features: Any,
        strata: Any = None,
        unknown_group: str = "error",
        keys: Any = None,
        expected: bool = False,
    ) -> Floats:
        """Return the repaired scores; labels are never needed.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores within ``range``, or within that of the table that the repair was fitted to.
        sensitive_features : column, table or Groups
            The columns of ``fit``.
        strata : column or table, optional
            The stratum of each row; required if strata were given to ``fit``.
        unknown_group : {"error", "pooled", "common"}, default="error"
            What to do with rows of a group that was not seen in ``fit``, and with rows without a group: raise
            ValueError, repair as everyone pooled, or as the largest group.
        keys : array-like of shape (n,), optional
            For ``randomize=True``: what identifies each row, so that its draw does not depend on other rows. By default
            equal rows of a call get different draws, in their order.
        expected : bool, default=False
            For ``randomize=True``: return the mean over all draws.

        Returns
        -------
        ndarray of shape (n,), or a table after ``set_output``
        """
        check_is_fitted(self)
        if self.extrapolates:
            values = check_vector(scores, name="scores")
        else:
            values = check_in_range(scores, self.range) if self.grid_ is None else self.grid_.check(scores)
        checks.require_groups(sensitive_features)
        if isinstance(sensitive_features, Groups):
            sensitive_features = checks.with_dropped_labels(sensitive_features)
        groups = self.groups_.encode(sensitive_features, unknown_group=unknown_group, sizes=self.group_sizes_)
        check_length(range(groups.n_rows), size=values.size, name="sensitive_features")
        strata_codes = checks.stratum_codes(self.strata_, strata, values.size)
        codes = groups.memberships[0]
        known, pooled = (np.flatnonzero(rows) for rows in (codes < len(groups), codes == len(groups)))
        if not pooled.size:
            return self._to_output(self.move(values, codes, strata_codes, keys=keys, expected=expected), scores)
        within = (None, None) if strata_codes is None else (strata_codes[known], strata_codes[pooled])
        chosen = None if keys is None else take_rows(keys, known)
        repaired = np.empty(values.size)
        repaired[known] = self.move(values[known], codes[known], within[0], keys=chosen, expected=expected)
        repaired[pooled] = self.move_pooled(values[pooled], within[1])
        return self._to_output(repaired, scores)

    def move_pooled(self, scores: Floats, strata: Ints | None = None) -> Floats:
        """Return the repaired scores of rows of no known group, by the map of everyone together."""
        amount = check_real(self.amount, name="amount", most=1.0)
        if strata is None and criterion_name(self.criterion) != "equalized_odds":
            carry = self.group_maps().pooled_map(self._map_options())
            return move_scores(scores, np.zeros(scores.size, np.uint8), [carry], amount, extrapolate=self.extrapolates)
        shares = self.group_sizes_ / self.group_sizes_.sum()
        codes = np.arange(shares.size, dtype=np.uint16)
        moved = [self.move(scores, np.full(scores.size, code), strata, expected=True) for code in codes]
        return np.asarray(np.tensordot(shares, moved, axes=1))

    def move(
        self,
        scores: Floats,
        groups: NDArray[Any],
        strata: Ints | None = None,
        *,
        keys: Any = None,
        expected: bool = False,
    ) -> Floats:
        """Return the repaired scores of rows that were checked, by the indices of their groups and strata."""
        amount = check_real(self.amount, name="amount", most=1.0)
        n_threads = config.NUMBA_NUM_THREADS
        randomized = vars(self).get("randomized_maps_")
        if keys is not None and not self.randomize:
            raise ValueError("keys are for randomize=True; this repair is not randomised.")
        if randomized is not None and not expected:
            drawn = randomized.draw(scores, groups, row_draws(scores, groups, self.random_state, keys))
            return (1.0 - amount) * scores + amount * drawn
        if strata is not None:
            codes = groups.astype(np.int64)
            return self.stratum_maps_.move(
                scores, strata, codes, self.maps_, amount, extrapolate=self.extrapolates, n_threads=n_threads
            )
        return move_scores(scores, groups, self.maps_, amount, extrapolate=self.extrapolates, n_threads=n_threads)

    def lookup(self) -> RepairLookup:
        """Return the repair as a small table, which SQL or another program can apply."""
        check_is_fitted(self)
        if hasattr(self, "randomized_maps_"):
            raise ValueError(
                "A randomised repair has no lookup table: each row gets a draw of its own. Use transform, or fit a "
                "repair with randomize=False."
            )
        if self.grid_ is None:
            raise ValueError(
                "This repair was fitted to arrays; a lookup table needs maps of counts, as TableRepair and fit_counts "
                "compute them."
            )
        amount = check_real(self.amount, name="amount", most=1.0)
        if self.strata_ is None:
            return RepairLookup.of_maps(self.grid_, self.groups_, self.maps_, amount)
        cells, nodes, n_groups = cells_of(self.groups_, self.strata_), self.grid_.nodes, len(self.groups_)
        strata, groups = np.divmod(np.repeat(np.arange(len(cells)), nodes.size), n_groups)
        scores = np.tile(nodes, len(cells))
        images = self.stratum_maps_.move(scores, strata, groups, self.maps_, amount)
        return RepairLookup(self.grid_, cells, images.reshape(len(cells), nodes.size))

    def group_maps(self) -> GroupMaps:
        """Return the map of each group and the target as one object."""
        check_is_fitted(self)
        return GroupMaps(
            self.maps_,
            self.rows_at_knots_,
            self.own_map_,
            self.target_,
            self.groups_,
            self.group_sizes_,
            vars(self).get("randomized_maps_"),
        )

    def use_maps(self, maps: GroupMaps) -> Self:
        """Use other maps of scores in the same range, and discard the histograms of a stream."""
        self._set_maps(maps, None, grid=self.grid_, set_aside=vars(self).get("set_aside_", {}))
        return self

    def undo(self) -> None:
        """Use maps that change no score."""
        within = vars(self).get("stratum_maps_")
        within = None if within is None else within.identities(*self.range_)
        maps = self.group_maps().identities(*self.range_)
        self._set_maps(maps, within, grid=self.grid_, set_aside=self.set_aside_)

    def _set_maps(
        self, fitted: GroupMaps, within: StratumMaps | None, *, grid: Grid | None, set_aside: dict[str, int]
    ) -> None:
        self.grid_, self.set_aside_ = grid, set_aside
        self.maps_ = fitted.maps
        self.rows_at_knots_ = fitted.rows_at_knots
        self.own_map_ = fitted.own_map
        self.target_ = fitted.target
        self.groups_ = fitted.groups
        self.group_sizes_ = fitted.group_sizes
        self.n_features_in_ = 1
        for name in ("counted_", "randomized_maps_", "stratum_maps_"):  # of a fit or a stream before this one
            self.__dict__.pop(name, None)
        if fitted.randomized is not None:
            self.randomized_maps_ = fitted.randomized
        if within is not None:
            self.stratum_maps_ = within

    def online_state(self) -> OnlineRepairState:
        """Return the state that the next ``partial_fit`` continues from."""
        maps = self.group_maps()
        if hasattr(self, "counted_"):
            return OnlineRepairState(self.counted_, maps, **self._online_options())
        return OnlineRepairState.from_maps(maps, grid=self.grid_, **self._online_options())

    def _online_options(self) -> dict[str, Any]:
        half_life, policy = half_life_of(self.online, default=HALF_LIFE), check_policy(self.groups)
        return {"options": self._map_options(), "half_life": half_life, "new_groups": policy.new}

    def resume(self, state: OnlineRepairState) -> Self:
        """Use the maps of a state, from which the next ``partial_fit`` continues."""
        self._set_maps(state.maps, None, grid=state.histograms.grid, set_aside=vars(self).get("set_aside_", {}))
        self.counted_ = state.histograms
        return self

    def check_parameters(self) -> None:
        """Raise for parameters that are not allowed; ``target`` is checked with the groups."""
        check_real(self.amount, name="amount", most=1.0)
        self._map_options().check()
        checks.check_seed(self.random_state)
        half_life_of(self.online, default=HALF_LIFE)

    def _map_options(self) -> MapOptions:
        policy = check_policy(self.groups)
        return MapOptions(
            self.target,
            policy.small,
            policy.min_size,
            criterion_name(self.criterion),
            as_criterion(self.criterion).stratum_weight,
            self.randomize,
            resolve_range(self.range),
        )

    def read_rows(
        self, y: Any, sensitive_features: Any, strata: Any, weights: Floats | None, *, n_rows: int
    ) -> tuple[Groups, checks.TrainingLabels | None, Strata | None]:
        """Return the groups, labels and strata of all rows; raise where nothing can be compared."""
        criterion = criterion_name(self.criterion)
        groups = checks.groups_to_repair(sensitive_features, n_rows=n_rows, groups=self.groups, weights=weights)
        labels = checks.training_labels(y, groups, criterion, weights)
        cells = checks.strata_to_repair(strata, groups, criterion, labels, weights, randomize=self.randomize)
        return groups, labels, cells

    def _warn_of_small_groups(self) -> None:
        if not self.own_map_.any():
            warn_caller(
                f"{_no_large_group(self)} min_size={check_policy(self.groups).min_size} "
                f"rows{MAP_ROWS[criterion_name(self.criterion)]}, so the same map is applied to all of them and their "
                "ranks stay as different as they were. Give more rows, or set a smaller min_size=.",
                UserWarning,
            )
        elif self.small_groups_:
            warn_caller(f"{describe_repair(self)[0]}; small_groups_ names them.", FairnessWarning)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``transform`` returns: ``"default"``, an array; ``"pandas"`` or ``"polars"``, a table."""
        if transform is not None:
            self._sklearn_output_config = {"transform": check_choice(transform, _OUTPUTS, name="transform")}
        return self

    def _to_output(self, repaired: Floats, scores: Any) -> Any:
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        if chosen == "default":
            return repaired
        library = import_module(chosen)
        keeps_index = chosen == "pandas" and isinstance(scores, (library.Series, library.DataFrame))
        return library.DataFrame({"repaired": repaired}, **({"index": scores.index} if keeps_index else {}))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of the column that ``transform`` returns."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array(["repaired"], dtype=object)

    def _html_repr(self) -> str:
        groups = vars(self).get("groups_")
        return str(super()._html_repr()) + fitted_summary_html(groups, lambda: describe_repair(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags
