"""DPP on scores: carry every group's scores to one distribution."""

from __future__ import annotations

import warnings
from dataclasses import replace
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
from fairtransport.groups import MIN_GROUP_SIZE, Groups, make_groups
from fairtransport.repair._small_groups import MapSources, check_small_groups
from fairtransport.repair._tables import RepairsTables
from fairtransport.repair.online import RepairsStreams
from fairtransport.transport.line import QuantileMap, Sample, quantile_map
from fairtransport.transport.many_maps import move_by_code
from fairtransport.transport.targets import TARGET_SIZE, TARGET_WORDS, resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["QuantileRepair", "describe_small_groups", "groups_to_repair"]

_OUTPUTS = ("default", "pandas", "polars")


class QuantileRepair(  # type: ignore[call-arg]
    RepairsTables, RepairsStreams, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    r"""Give every group the same distribution of scores, by one monotone map for each group (DPP).

    Parameters
    ----------
    target : {"barycenter_w2", "barycenter", "pooled"}, group label or array, default="barycenter_w2"
        The distribution every group is carried to: the Wasserstein-2 barycenter weighted by group size, which
        moves the scores least in mean square and so usually costs the least accuracy, the Wasserstein-1
        barycenter with equal weights (the paper's), all rows together, one group's scores, or given scores.
    amount : float, default=1.0
        How much to repair, from 0 (scores as they are) to 1 (equal distributions).
    grouping : {"crossed", "each"}, default="crossed"
        Several sensitive columns are crossed. ``"each"`` is for one column only: with several, groups
        overlap and a row would have more than one map.
    missing : {"error", "group"}, default="error"
        A missing sensitive value raises, or is a group of its own.
    small_groups : {"keep", "pool", "drop"}, default="keep"
        What to do with groups of fewer than ``min_group_size`` rows, which never get a map made from their own
        few rows. ``"keep"``: each uses the map of all small groups together where these have at least
        ``min_group_size`` rows, and otherwise the common map, from everyone's distribution to the target; a
        barycenter with equal weights leaves them out. ``"pool"``: the same maps, and the small groups enter the
        target as one group. ``"drop"``: they use the common map and are left out of the target.
    min_group_size : int, default=30
        A group with fewer rows (of positive weight) is small. 1 gives every group a map of its own.
    half_life : float, default=10000
        For ``partial_fit``: after so many rows of the stream a row counts half.
    new_groups : {"error", "adopt"}, default="error"
        For ``partial_fit``: a group that was not seen before raises, or is taken up.

    Attributes
    ----------
    maps_ : tuple of QuantileMap
        The full repair of each group, in the order of ``groups_.labels``. The knots are the distinct training
        scores of the rows that the map was made from: keep a fitted repair as you would keep those scores.
        (`fairtransport.save` does not write them: it writes a summary.)
    rows_at_knots_ : tuple of ndarray of int
        Training rows that share each knot.
    target_ : ndarray of shape (4096,)
        Scores of equal mass that stand for the target distribution.
    groups_ : Groups
        The groups seen, without their rows.
    group_sizes_ : ndarray of int of shape (n_groups,)
        Training rows of each.
    own_map_ : ndarray of bool of shape (n_groups,)
        Whether the map of a group was made from its own rows alone.
    small_groups_ : tuple
        Labels of the groups that did not get a map of their own.
    n_features_in_ : int
        Always 1.
    grid_ : Grid or None
        What `fit_table` or ``partial_fit`` counted scores on; None after `fit`.
    set_aside_ : dict of str to int
        Rows that `fit_table` could not count, by reason.
    counted_ : GroupHistograms
        What ``partial_fit`` goes on from, of a size that does not grow with the stream; only after it.

    See Also
    --------
    QuantileRepairClassifier : The same around a classifier.

    Notes
    -----
    With the distribution function :math:`F_a` of group a and the target's quantile function
    :math:`F_{\bar S}^{-1}`, a score s of group a becomes

    .. math:: (1 - \mathrm{amount}) \, s + \mathrm{amount} \, F_{\bar S}^{-1}(F_a(s))

    (paper, section "Achieving Strong Demographic Parity": the optimal map on the line). With ``amount``
    between 0 and 1 each group's distribution lies on the Wasserstein geodesic from its own to the target.

    The map is made on the training scores and then fixed, so the result of a row depends on that row only,
    and no chance is involved. It is

    * at a training score: the mean of the target over the levels that the score fills, the same for all ties
      (scores that differ by rounding only are ties, so that equal rows scored in different batches stay equal);
    * between two neighbouring training scores: linear;
    * below the lowest and above the highest training score of the map: constant. Scores there keep their
      order but, with ``amount=1``, no longer differ from each other.

    It never descends, so the order within a group is kept. A score that many rows share stays one score:
    such groups come as close to the target as that allows.

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
        half_life: float = 10_000.0,
        new_groups: str = "error",
    ) -> None:
        self.target = target
        self.amount = amount
        self.grouping = grouping
        self.missing = missing
        self.small_groups = small_groups
        self.min_group_size = min_group_size
        self.half_life = half_life
        self.new_groups = new_groups

    def fit(
        self,
        scores: ArrayLike,
        y: Any = None,  # noqa: ARG002 - the place scikit-learn gives to labels; repair needs none
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
            Here for scikit-learn's sake.
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
        if weights is not None:  # a row without weight is no row
            kept = weights > 0
            values, weights, groups = values[kept], weights[kept], groups.select(kept)
        if np.ptp(values) == 0:
            raise ValueError(
                f"All {values.size} scores are equal, so there is nothing to repair: check that the model that "
                "made them was able to learn."
            )

        n_kept, groups = len(groups), _with_dropped_labels(groups)

        def sample_of(members: tuple[int, ...]) -> Sample:
            rows: Any = slice(None) if len(members) == len(groups) else groups.rows[members[0]]
            if 1 < len(members) < len(groups):
                rows = np.concatenate([groups.rows[group] for group in members])
            return Sample.from_values(values[rows], None if weights is None else weights[rows])

        sizes = [rows.size if weights is None else weights[rows].sum() for rows in groups.rows]
        counts = np.where(np.arange(len(groups)) < n_kept, groups.counts, 0)
        self._learn(sample_of, lambda _, sample: _ties(sample.values), sizes, counts, groups)
        self._warn_if_all_small()
        self.grid_, self.set_aside_ = None, {}
        return self

    @property
    def small_groups_(self) -> tuple[Any, ...]:
        """Labels of the groups that did not get a map of their own."""
        return tuple(label for label, own in zip(self.groups_.labels, self.own_map_, strict=True) if not own)

    def _check_parameters(self) -> None:
        check_real(self.amount, name="amount", most=1.0)
        check_small_groups(self.small_groups, self.min_group_size)
        check_stream_parameters(self.half_life, self.new_groups)

    def _groups_of(self, sensitive_features: Any, n_rows: int, weights: NDArray[np.float64] | None) -> Groups:
        return groups_to_repair(
            sensitive_features, n_rows=n_rows, grouping=self.grouping, missing=self.missing, weights=weights
        )

    def _learn(
        self,
        sample_of: Callable[[tuple[int, ...]], Sample],
        rows_at_knots: Callable[[tuple[int, ...], Sample], NDArray[np.int64]],
        sizes: Any,
        counts: NDArray[np.int64],
        groups: Groups,
    ) -> None:
        """Make the target and the maps.

        ``sample_of`` returns the distribution of the rows of some groups together, and ``rows_at_knots`` how many of
        these rows share each knot; ``sizes`` weigh the groups, and ``counts`` are their numbers of rows.
        """
        by_size = isinstance(self.target, str) and self.target == "barycenter_w2"
        sources = MapSources.choose(counts, self.small_groups, self.min_group_size, by_size=by_size)
        everyone = tuple(range(len(groups)))
        samples = {members: sample_of(members) for members in {*sources.maps, *sources.target}}
        target = self._find_target(sample_of, samples, sources.target, np.asarray(sizes, dtype=np.float64), groups)
        maps = {members: _map_with_ties(samples[members], target).prepare() for members in {*sources.maps}}
        rows = {members: rows_at_knots(members, samples[members]) for members in maps}
        self.maps_ = tuple(maps[sources.maps[group]] for group in everyone)
        self.rows_at_knots_ = tuple(rows[sources.maps[group]] for group in everyone)
        self.own_map_ = sources.own_map
        self.target_ = target.equal_mass(TARGET_SIZE)
        self.groups_ = Groups.from_spec(groups.to_spec())
        self.group_sizes_ = counts
        self.n_features_in_ = 1
        if hasattr(self, "counted_"):  # by a stream before this
            del self.counted_

    def _find_target(
        self,
        sample_of: Callable[[tuple[int, ...]], Sample],
        samples: dict[tuple[int, ...], Sample],
        compared: tuple[tuple[int, ...], ...],
        sizes: NDArray[np.float64],
        groups: Groups,
    ) -> Sample:
        everyone = tuple(range(len(groups)))
        if isinstance(self.target, str) and self.target in TARGET_WORDS:
            if self.target == "pooled":
                return sample_of(everyone)
            masses = [sizes[list(members)].sum() for members in compared]
            return resolve_target(self.target, [samples[members] for members in compared], masses)
        filled = [group for group in everyone if sizes[group] > 0]
        return resolve_target(
            self.target,
            [samples.get((group,)) or sample_of((group,)) for group in filled],
            sizes[filled],
            labels=[groups.labels[group] for group in filled],
            names=[groups.names[group] for group in filled],
        )

    def _warn_if_all_small(self) -> None:
        if not self.own_map_.any():
            warnings.warn(
                f"None of the {len(self.groups_)} groups has min_group_size={self.min_group_size} rows, so the same "
                "map moves all of them and their ranks stay as different as they were. Give more rows, or set a "
                "smaller min_group_size=.",
                UserWarning,
                stacklevel=3,
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
        _require_given(sensitive_features)
        given = sensitive_features
        groups = self.groups_.encode(_with_dropped_labels(given) if isinstance(given, Groups) else given)
        check_length(range(groups.n_rows), size=values.size, name="sensitive_features")
        codes, n_threads = groups.memberships[0], config.NUMBA_NUM_THREADS
        return self._as_asked(move_by_code(values, codes, self.maps_, amount, n_threads=n_threads), scores)

    def fit_transform(
        self,
        scores: ArrayLike,
        y: Any = None,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Fit, then return the repaired training scores; see ``fit`` for the parameters."""
        self.fit(scores, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return self.transform(scores, sensitive_features=sensitive_features)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``transform`` returns: ``"default"``, an array; ``"pandas"`` or ``"polars"``, a table.

        scikit-learn's own wrapper would take the scores by position only.
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": check_choice(transform, _OUTPUTS, name="transform")}
        return self

    def _as_asked(self, repaired: NDArray[np.float64], given: Any) -> Any:
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        if chosen == "default":
            return repaired
        library = import_module(chosen)
        keeps = chosen == "pandas" and isinstance(given, (library.Series, library.DataFrame))
        return library.DataFrame({"repaired": repaired}, **({"index": given.index} if keeps else {}))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of the one column that ``transform`` makes.

        Parameters
        ----------
        input_features : sequence of str, optional
            Not used for the name; more than the one column of scores raises ValueError.

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


def groups_to_repair(
    sensitive_features: Any,
    *,
    n_rows: int,
    grouping: str,
    missing: str,
    weights: NDArray[np.float64] | None = None,
) -> Groups:
    """Make the groups of all rows, and check that each can be repaired from its rows with weight."""
    _require_given(sensitive_features)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing)
    check_length(range(groups.n_rows), size=n_rows, name="sensitive_features")
    if groups.overlapping:
        raise ValueError(
            "Quantile repair needs groups that do not overlap, and with grouping='each' a row belongs to one "
            f"group of each of {len(groups.columns)} columns and would have as many maps. Use grouping='crossed'."
        )
    if weights is not None:
        n_empty = sum(not weights[rows].any() for rows in groups.rows)
        if n_empty:
            raise ValueError(
                f"{n_empty} of {len(groups)} groups have total sample_weight 0; drop their rows or weigh them."
            )
    counted = groups if weights is None else groups.select(weights > 0)
    counted.require(min_size=1, at_least=2)
    return groups


def describe_small_groups(repair: Any) -> list[str]:
    """Say how many groups of a fitted repair did not get a map of their own; nothing where all did.

    Examples
    --------
    >>> scores, group = np.arange(65) / 65, ["a"] * 32 + ["b"] * 31 + ["c"] * 2
    >>> describe_small_groups(QuantileRepair().fit(scores, sensitive_features=group))
    ['1 of 3 groups has fewer than 30 rows and no map of its own']
    """
    few, every = len(repair.small_groups_), len(repair.groups_)
    if not few:
        return []
    limit = repair.min_group_size
    if few == every:
        return [f"None of the {every} groups has {limit} rows: all share one map, and ranks stay as different"]
    if few == 1:
        return [f"1 of {every} groups has fewer than {limit} rows and no map of its own"]
    return [f"{few} of {every} groups have fewer than {limit} rows and no maps of their own"]


def _with_dropped_labels(groups: Groups) -> Groups:
    """Return the groups with the labels that `Groups.settle` dropped behind the others.

    Rows of dropped groups have the code behind the last group and so become those of the first dropped label. Which
    of these labels a row had is not known, and not needed: all of them use the common map.
    """
    if not groups.dropped:
        return groups
    spec = {name: value for name, value in groups.to_spec().items() if name != "dropped"}
    labels = [list(label) if isinstance(label, tuple) else label for label in groups.dropped]
    return replace(Groups.from_spec(spec | {"labels": [*spec["labels"], *labels]}), memberships=groups.memberships)


def _require_given(sensitive_features: Any) -> None:
    if sensitive_features is None:
        raise ValueError(
            "Quantile repair needs sensitive_features, at prediction too: each group has a map of its own."
        )


def _ties(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """How often each distinct one of ascending values occurs."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return np.diff(np.append(starts, values.size))


def _map_with_ties(source: Sample, target: Sample) -> QuantileMap:
    """Map the source to the target, where scores that differ by rounding only share one image.

    Equal rows can get scores that differ in the last bits: libraries add in another order in a batch of another
    size, or on another thread. Taken as different, two such scores would split the mass of a tie between them,
    and their images could lie far apart. The tolerance follows the rounding error of a logistic function.
    """
    values = source.values
    slack = 1e-12 * values * (1.0 - values) + 16 * np.finfo(np.float64).eps * values
    starts = np.append(True, np.diff(values) > slack[1:])
    tie = np.cumsum(starts) - 1
    merged = quantile_map(Sample(values[starts][tie], source.levels), target)
    distinct = np.append(True, values[1:] != values[:-1])
    return QuantileMap(values[distinct], merged.images[tie[distinct]])
