"""Quantile repair of scores: every group is mapped to one target distribution."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numba import config
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from fairtransport._sklearn.fitted_summary import fitted_summary_html
from fairtransport._sklearn.streaming import check_stream_parameters
from fairtransport._validation import check_choice, check_length, check_real, check_scores, check_weights
from fairtransport._warnings import warn_caller
from fairtransport.groups import MIN_GROUP_SIZE, Groups
from fairtransport.histograms import Grid
from fairtransport.repair.group_checks import check_histograms, groups_to_repair, require_groups, with_dropped_labels
from fairtransport.repair.group_maps import GroupMaps, MapOptions
from fairtransport.repair.online import OnlineRepairState
from fairtransport.tables import RepairLookup
from fairtransport.transport.many_maps import move_by_code

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.tables import TableCounts

__all__ = ["QuantileRepair", "describe_small_groups"]

_OUTPUTS = ("default", "pandas", "polars")


class QuantileRepair(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
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
        A group with fewer rows (of positive weight) is small. 1 gives every group a map of its own.
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
    n_features_in_ : int
        Always 1.
    grid_ : Grid or None
        The grid on which ``fit_counts`` or ``partial_fit`` counted scores; None after ``fit``.
    set_aside_ : dict of str to int
        Rows of a table that could not be counted, by reason.
    counted_ : GroupHistograms
        What ``partial_fit`` continues from, of a size that does not grow with the stream; only after ``partial_fit``.

    See Also
    --------
    QuantileRepairClassifier : Repairs the probabilities of a classifier.
    TableRepair : Repairs a column of a table, on the engine that holds the table.

    Notes
    -----
    With the distribution function :math:`F_a` of group a and the quantile function :math:`F_{\bar S}^{-1}` of the
    target, a score s of group a becomes

    .. math:: (1 - \mathrm{amount}) \, s + \mathrm{amount} \, F_{\bar S}^{-1}(F_a(s)).

    For ``amount=1`` this is the optimal transport map on the line. With ``amount`` between 0 and 1 the distribution of
    each group lies on the Wasserstein geodesic from its original one to the target.

    The maps are computed from the training scores and then fixed, so the result of a row depends on that row only and
    is deterministic. A map is

    * at a training score: the mean of the target over the levels that the score fills, the same for all ties (scores
      that differ only by rounding are ties, so that equal rows scored in different batches stay equal);
    * between two neighbouring training scores: linear;
    * below the lowest and above the highest training score: constant. Scores there keep their order but, with
      ``amount=1``, no longer differ from each other.

    It is non-decreasing, so the order within a group is kept. A score that many rows share stays one score: such groups
    come as close to the target as that allows.

    References
    ----------
    .. [1] Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Sections "SDP-Fair Classification
           with OT" and "Results".
    .. [2] Jiang, Pacchiano, Stepleton, Jiang and Chiappa (2020), "Wasserstein Fair Classification", UAI.

    Examples
    --------
    >>> from fairtransport import QuantileRepair
    >>> scores, sex = [0.1, 0.3, 0.5, 0.7], ["F", "F", "M", "M"]
    >>> repair = QuantileRepair(min_group_size=1).fit(scores, sensitive_features=sex)
    >>> repair.transform(scores, sensitive_features=sex)
    array([0.3, 0.5, 0.3, 0.5])
    >>> repair.transform([0.2, 0.9], sensitive_features=["F", "M"])
    array([0.4, 0.5])
    """

    def __init__(
        self,
        target: Any = "barycenter_w2",
        amount: float = 1.0,
        *,
        grouping: str = "crossed",
        missing: str = "error",
        small_groups: str = "keep",
        min_group_size: int = MIN_GROUP_SIZE,
        stream_half_life: float = 10_000.0,
        new_groups: str = "error",
    ) -> None:
        self.target = target
        self.amount = amount
        self.grouping = grouping
        self.missing = missing
        self.small_groups = small_groups
        self.min_group_size = min_group_size
        self.stream_half_life = stream_half_life
        self.new_groups = new_groups

    def fit(
        self,
        scores: ArrayLike,
        y: Any = None,  # noqa: ARG002 - scikit-learn's signature
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the target and the map of each group.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores within [0, 1].
        y : ignored
            Present for compatibility with scikit-learn.
        sensitive_features : column, table or Groups
            At least two groups; several columns are crossed.
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row, and weight 0 none.

        Returns
        -------
        self
        """
        self._check_parameters()
        values = check_scores(scores)
        weights = check_weights(sample_weight, size=values.size)
        groups = self._groups_of(sensitive_features, values.size, weights)
        if weights is not None:  # weight 0 means zero copies of a row
            kept = weights > 0
            values, weights, groups = values[kept], weights[kept], groups.select(kept)
        if np.ptp(values) == 0:
            raise ValueError(
                f"All {values.size} scores are equal, so there is nothing to repair: check that the model that "
                "computed them was able to learn."
            )
        self._set_maps(GroupMaps.from_scores(values, groups, weights, self._map_options()), grid=None, set_aside={})
        self._warn_if_all_small()
        return self

    def fit_counts(self, counts: TableCounts) -> Self:
        """Find the target and the map of each group from the counts of a table.

        Parameters
        ----------
        counts : TableCounts
            As `fairtransport.tables.count_table` returns them. Rows that were set aside there have no part in the
            maps.

        Returns
        -------
        self

        See Also
        --------
        TableRepair : Counts a table, fits this repair to the counts, and repairs tables.
        """
        self._check_parameters()
        check_histograms(counts.histograms)
        maps = GroupMaps.from_histograms(counts.histograms, self._map_options())
        self._set_maps(maps, grid=counts.histograms.grid, set_aside=counts.set_aside)
        self._warn_if_all_small()
        return self

    def partial_fit(
        self,
        scores: ArrayLike,
        y: Any = None,  # noqa: ARG002 - scikit-learn's signature
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Update the maps with one batch of a stream; no labels are needed.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores before repair, of one or more rows; within [0, 1], or within the range of the table that the repair
            was fitted to.
        y : ignored
            Present for compatibility with scikit-learn.
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
        Scores are counted at 1,025 nodes (at those of the table that the repair was fitted to, if it was), and a row
        counts half after ``stream_half_life`` further rows. The target and the maps are those of these counts;
        `TableRepair` states how far maps of counts can be from maps of rows: with bins of 1/1024 the score and its
        image move by no more than two bins and one, where every bin has rows.

        A group keeps at least the weight of ten rows, however long it is absent. A group that is added starts with
        ten rows that are distributed like the target. A group gets a map of its own when ``min_group_size`` of its
        rows have been seen, however old they are; until then ``small_groups`` says which map it uses.

        A repair that was fitted before continues from the rows that its maps were computed from; a group without a map
        of its own continues from as many rows as it had (at least ten), distributed like those that its map was
        computed from. All together they count as no more rows than an endless stream would leave:
        ``stream_half_life / log(2)``.
        """
        self._check_parameters()
        if hasattr(self, "maps_"):
            state = self.online_state()
            return self.resume(state.update(scores, sensitive_features=sensitive_features, sample_weight=sample_weight))
        values = Grid().check(scores)
        weights = check_weights(sample_weight, size=values.size)
        groups = self._groups_of(sensitive_features, values.size, weights)
        return self.resume(
            OnlineRepairState.from_first_batch(
                values,
                groups=groups,
                sample_weight=weights,
                options=self._map_options(),
                stream_half_life=self.stream_half_life,
                new_groups=self.new_groups,
            )
        )

    def online_state(self) -> OnlineRepairState:
        """Return the state that the next ``partial_fit`` continues from.

        Returns
        -------
        OnlineRepairState
            That of the stream, or else one of the rows that the repair was fitted to.
        """
        maps, options = self.group_maps(), self._map_options()
        if hasattr(self, "counted_"):
            return OnlineRepairState(self.counted_, maps, options, self.stream_half_life, self.new_groups)
        return OnlineRepairState.from_maps(
            maps, grid=self.grid_, options=options, stream_half_life=self.stream_half_life, new_groups=self.new_groups
        )

    def resume(self, state: OnlineRepairState) -> Self:
        """Use the maps of a state, from which the next ``partial_fit`` continues.

        Parameters
        ----------
        state : OnlineRepairState

        Returns
        -------
        self
        """
        self._set_maps(state.maps, grid=state.histograms.grid, set_aside=vars(self).get("set_aside_", {}))
        self.counted_ = state.histograms
        return self

    def group_maps(self) -> GroupMaps:
        """Return the map of each group and the target as one object.

        Returns
        -------
        GroupMaps
        """
        check_is_fitted(self)
        return GroupMaps(self.maps_, self.rows_at_knots_, self.own_map_, self.target_, self.groups_, self.group_sizes_)

    def use_maps(self, maps: GroupMaps) -> Self:
        """Use other maps of scores in the same range, and discard the histograms of a stream.

        Parameters
        ----------
        maps : GroupMaps

        Returns
        -------
        self
        """
        self._set_maps(maps, grid=self.grid_, set_aside=vars(self).get("set_aside_", {}))
        return self

    def lookup(self) -> RepairLookup:
        """Return the repair as a small table, which SQL or another program can apply.

        Returns
        -------
        RepairLookup
            With ``to_frame``, ``to_sql`` and ``to_parquet``.

        Raises
        ------
        ValueError
            After ``fit``, whose maps have a knot for each training score. Maps of a table or of a stream have one for
            each bin.
        """
        check_is_fitted(self)
        if self.grid_ is None:
            raise ValueError(
                "This repair was fitted to arrays; a lookup table needs maps of counts, as TableRepair and fit_counts "
                "compute them."
            )
        amount = check_real(self.amount, name="amount", most=1.0)
        return RepairLookup.of_maps(self.grid_, self.groups_, self.maps_, amount)

    @property
    def small_groups_(self) -> tuple[Any, ...]:
        """Labels of the groups without a map of their own."""
        return tuple(label for label, own in zip(self.groups_.labels, self.own_map_, strict=True) if not own)

    def _check_parameters(self) -> None:
        check_real(self.amount, name="amount", most=1.0)
        self._map_options().check()
        check_stream_parameters(self.stream_half_life, self.new_groups, name="stream_half_life")

    def _groups_of(self, sensitive_features: Any, n_rows: int, weights: NDArray[np.float64] | None) -> Groups:
        return groups_to_repair(
            sensitive_features, n_rows=n_rows, grouping=self.grouping, missing=self.missing, weights=weights
        )

    def _map_options(self) -> MapOptions:
        return MapOptions(self.target, self.small_groups, self.min_group_size)

    def _set_maps(self, fitted: GroupMaps, *, grid: Grid | None, set_aside: dict[str, int]) -> None:
        self.grid_, self.set_aside_ = grid, set_aside
        self.maps_ = fitted.maps
        self.rows_at_knots_ = fitted.rows_at_knots
        self.own_map_ = fitted.own_map
        self.target_ = fitted.target
        self.groups_ = fitted.groups
        self.group_sizes_ = fitted.group_sizes
        self.n_features_in_ = 1
        if hasattr(self, "counted_"):  # of a stream before this fit
            del self.counted_

    def _warn_if_all_small(self) -> None:
        if not self.own_map_.any():
            warn_caller(
                f"None of the {len(self.groups_)} groups has min_group_size={self.min_group_size} rows, so the same "
                "map is applied to all of them and their ranks stay as different as they were. Give more rows, or set "
                "a smaller min_group_size=.",
                UserWarning,
            )

    def _html_repr(self) -> str:
        groups = vars(self).get("groups_")
        return str(super()._html_repr()) + fitted_summary_html(groups, lambda: describe_small_groups(self))

    def transform(self, scores: ArrayLike, *, sensitive_features: Any) -> NDArray[np.float64]:
        """Return the repaired scores.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores within [0, 1].
        sensitive_features : column, table or Groups
            The group of each row. One that was not seen in ``fit`` raises.

        Returns
        -------
        ndarray of shape (n,)
            Within [0, 1]. After ``set_output`` a table of one column, "repaired".
        """
        check_is_fitted(self)
        amount = check_real(self.amount, name="amount", most=1.0)
        values = check_scores(scores) if self.grid_ is None else self.grid_.check(scores)
        require_groups(sensitive_features)
        if isinstance(sensitive_features, Groups):
            sensitive_features = with_dropped_labels(sensitive_features)
        groups = self.groups_.encode(sensitive_features)
        check_length(range(groups.n_rows), size=values.size, name="sensitive_features")
        codes, n_threads = groups.memberships[0], config.NUMBA_NUM_THREADS
        return self._to_output(move_by_code(values, codes, self.maps_, amount, n_threads=n_threads), scores)

    def fit_transform(
        self,
        scores: ArrayLike,
        y: Any = None,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Fit the repair and return the repaired training scores; see ``fit`` for the parameters."""
        self.fit(scores, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return self.transform(scores, sensitive_features=sensitive_features)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``transform`` returns: ``"default"``, an array; ``"pandas"`` or ``"polars"``, a table.

        The wrapper of scikit-learn would accept the scores by position only.
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": check_choice(transform, _OUTPUTS, name="transform")}
        return self

    def _to_output(self, repaired: NDArray[np.float64], scores: Any) -> Any:
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        if chosen == "default":
            return repaired
        library = import_module(chosen)
        keeps_index = chosen == "pandas" and isinstance(scores, (library.Series, library.DataFrame))
        return library.DataFrame({"repaired": repaired}, **({"index": scores.index} if keeps_index else {}))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of the column that ``transform`` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Not used for the name; more than one column raises ValueError.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array(["repaired"], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags


def describe_small_groups(repair: Any) -> list[str]:
    """Return a statement about the groups of a fitted repair without a map of their own; none where all have one.

    Examples
    --------
    >>> scores, group = np.arange(65) / 65, ["a"] * 32 + ["b"] * 31 + ["c"] * 2
    >>> describe_small_groups(QuantileRepair().fit(scores, sensitive_features=group))
    ['1 of 3 groups has fewer than 30 rows and no map of its own']
    """
    n_small, n_groups = len(repair.small_groups_), len(repair.groups_)
    if not n_small:
        return []
    limit = repair.min_group_size
    if n_small == n_groups:
        return [f"None of the {n_groups} groups has {limit} rows: all share one map, and ranks stay as different"]
    if n_small == 1:
        return [f"1 of {n_groups} groups has fewer than {limit} rows and no map of its own"]
    return [f"{n_small} of {n_groups} groups have fewer than {limit} rows and no maps of their own"]
