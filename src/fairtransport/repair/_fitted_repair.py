"""What a fitted repair of scores does: the use of its maps, however they were computed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numba import config
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from fairtransport._sklearn.estimator_calls import take_rows
from fairtransport._sklearn.fitted_summary import fitted_summary_html
from fairtransport._sklearn.row_scoring import RowScoring
from fairtransport._sklearn.streaming import check_stream_parameters
from fairtransport._validation import check_choice, check_length, check_real, check_vector
from fairtransport._warnings import warn_caller
from fairtransport.groups import Groups
from fairtransport.repair._counted_cells import cells_of
from fairtransport.repair._criterion_checks import check_seed, stratum_codes
from fairtransport.repair.extrapolation import move_scores
from fairtransport.repair.group_checks import groups_to_repair, require_groups, with_dropped_labels
from fairtransport.repair.group_maps import GroupMaps, MapOptions
from fairtransport.repair.online import OnlineRepairState
from fairtransport.repair.randomized_maps import row_draws
from fairtransport.repair.score_range import LEARNED, check_in_range, resolve_range
from fairtransport.repair.summary import MAP_ROWS, describe_repair
from fairtransport.tables import RepairLookup

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.histograms import Grid, GroupHistograms
    from fairtransport.repair.randomized_maps import RandomizedMaps
    from fairtransport.repair.stratum_maps import StratumMaps
    from fairtransport.strata import Strata
    from fairtransport.transport.line import QuantileMap

__all__ = ["FittedRepair"]

_OUTPUTS = ("default", "pandas", "polars")


class FittedRepair(RowScoring, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """The maps of a repair, as a transformer of scores; `QuantileRepair` computes them."""

    target: Any
    amount: float
    range: Any
    criterion: str
    stratum_weight: str | None
    randomize: bool
    random_state: int
    grouping: str
    missing: str
    small_groups: str
    min_group_size: int
    stream_half_life: float
    new_groups: str
    maps_: tuple[QuantileMap, ...]
    rows_at_knots_: tuple[NDArray[np.int64], ...]
    own_map_: NDArray[np.bool_]
    target_: NDArray[np.float64]
    groups_: Groups
    group_sizes_: NDArray[np.int64]
    grid_: Grid | None
    stratum_maps_: StratumMaps
    randomized_maps_: RandomizedMaps
    counted_: GroupHistograms

    @property
    def needs_groups_(self) -> bool:
        """Whether the group of a row is needed to repair its score: it is."""
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
        """Whether any score can be repaired: those beyond the maps are shifted as far as the last score within."""
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
    ) -> NDArray[np.float64]:
        """Return the repaired scores; labels are never needed.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores within the range, or any finite numbers where it was learned.
        sensitive_features : column, table or Groups
            The group of each row.
        strata : column or table, optional
            The stratum of each row; required if the repair was fitted with strata. One that was not seen in ``fit``
            raises.
        unknown_group : {"error", "pooled", "common"}, default="error"
            What to do with rows of a group that was not seen in ``fit``, and with rows without a group: raise
            ValueError, repair them by the map of everyone together, or by that of the largest group. For equalized
            odds and within strata, the map of everyone is the mean of the groups' maps, weighted by their sizes.
        keys : array-like of shape (n,), optional
            For ``randomize=True``: what identifies each person, such as a customer number. A person then has the same
            draw in every call, whatever the score. By default a draw belongs to a score and a group, so that a row is
            treated alike in every batch; rows that share both get different draws, in their order.
        expected : bool, default=False
            For ``randomize=True``: return the mean of each row's score over all draws, which does not depend on
            ``keys`` and ``random_state``. Equalized odds hold for drawn scores, not for expected ones.

        Returns
        -------
        ndarray of shape (n,)
            Within the range, unless it was learned. After ``set_output`` a table of one column, "repaired".
        """
        check_is_fitted(self)
        if self.extrapolates:
            values = check_vector(scores, name="scores")
        else:
            values = check_in_range(scores, self.range) if self.grid_ is None else self.grid_.check(scores)
        require_groups(sensitive_features)
        if isinstance(sensitive_features, Groups):
            sensitive_features = with_dropped_labels(sensitive_features)
        groups = self.groups_.encode(sensitive_features, unknown_group=unknown_group, sizes=self.group_sizes_)
        check_length(range(groups.n_rows), size=values.size, name="sensitive_features")
        strata_codes = stratum_codes(self.strata_, strata, values.size)
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

    def move_pooled(self, scores: NDArray[np.float64], strata: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Return the repaired scores of rows of no known group, by the map of everyone together."""
        amount = check_real(self.amount, name="amount", most=1.0)
        if strata is None and self.criterion != "equalized_odds":
            carry = self.group_maps().pooled_map(self._map_options())
            return move_scores(scores, np.zeros(scores.size, np.uint8), [carry], amount, extrapolate=self.extrapolates)
        shares = self.group_sizes_ / self.group_sizes_.sum()
        codes = np.arange(shares.size, dtype=np.uint16)
        moved = [self.move(scores, np.full(scores.size, code), strata, expected=True) for code in codes]
        return np.asarray(np.tensordot(shares, moved, axes=1))

    def move(
        self,
        scores: NDArray[np.float64],
        groups: NDArray[Any],
        strata: NDArray[np.int64] | None = None,
        *,
        keys: Any = None,
        expected: bool = False,
    ) -> NDArray[np.float64]:
        """Return the repaired scores of rows that were checked, by the indices of their groups and strata."""
        amount = check_real(self.amount, name="amount", most=1.0)
        n_threads = config.NUMBA_NUM_THREADS
        randomized = vars(self).get("randomized_maps_")
        if keys is not None and randomized is None:
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
        """Return the map of each group and the target as one object.

        Returns
        -------
        GroupMaps
        """
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
        """Use other maps of scores in the same range, and discard the histograms of a stream.

        Parameters
        ----------
        maps : GroupMaps

        Returns
        -------
        self
        """
        self._set_maps(maps, None, grid=self.grid_, set_aside=vars(self).get("set_aside_", {}))
        return self

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
        self._set_maps(state.maps, None, grid=state.histograms.grid, set_aside=vars(self).get("set_aside_", {}))
        self.counted_ = state.histograms
        return self

    def check_parameters(self) -> None:
        """Raise for parameters that are not allowed; ``target`` is checked with the groups."""
        check_real(self.amount, name="amount", most=1.0)
        self._map_options().check()
        check_seed(self.random_state)
        check_stream_parameters(self.stream_half_life, self.new_groups, name="stream_half_life")

    def _map_options(self) -> MapOptions:
        return MapOptions(
            self.target,
            self.small_groups,
            self.min_group_size,
            self.criterion,
            self.stratum_weight,
            self.randomize,
            resolve_range(self.range),
        )

    def _groups_of(self, sensitive_features: Any, n_rows: int, weights: NDArray[np.float64] | None) -> Groups:
        return groups_to_repair(
            sensitive_features, n_rows=n_rows, grouping=self.grouping, missing=self.missing, weights=weights
        )

    def _warn_if_all_small(self) -> None:
        if not self.own_map_.any():
            which = "Fewer than two" if self.criterion == "equalized_odds" else "None"
            warn_caller(
                f"{which} of the {len(self.groups_)} groups {'has' if which == 'None' else 'have'} "
                f"min_group_size={self.min_group_size} rows{MAP_ROWS[self.criterion]}, so the same map is applied to "
                "all of them and their ranks stay as different as they were. Give more rows, or set a smaller "
                "min_group_size=.",
                UserWarning,
            )

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

    def _html_repr(self) -> str:
        groups = vars(self).get("groups_")
        return str(super()._html_repr()) + fitted_summary_html(groups, lambda: describe_repair(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags
