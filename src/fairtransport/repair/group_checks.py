"""Checks of the groups, labels and criterion that a quantile repair is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._columns import say_columns
from fairtransport._labels import two_classes
from fairtransport._validation import check_length, check_vector
from fairtransport.criteria.criterion import needs_labels, resolve_criterion
from fairtransport.groups import GroupPolicy, Groups, check_policy, read_groups
from fairtransport.histograms import GroupHistograms
from fairtransport.strata import Strata, make_strata


def require_groups(sensitive_features: Any) -> None:
    """Raise where ``sensitive_features`` is None."""
    if sensitive_features is None:
        raise ValueError(
            "Quantile repair needs sensitive_features, at prediction too: each group has a map of its own."
        )


def separate_groups(sensitive_features: Any, policy: GroupPolicy, *, n_rows: int, owner: str) -> Groups:
    """Return the groups of all rows; raise where they overlap. ``owner`` is the class with the parameter ``groups``."""
    made = read_groups(sensitive_features, policy, owner=owner)
    check_length(range(made.n_rows), size=n_rows, name="sensitive_features")
    if made.overlapping:
        raise ValueError(
            "Repair needs groups that do not overlap: with crossed=False a row belongs to one group of each of "
            f"{len(made.columns)} columns. Use crossed=True."
        )
    return made


def groups_to_repair(
    sensitive_features: Any, *, n_rows: int, groups: GroupPolicy | None, weights: Floats | None = None
) -> Groups:
    """Return the groups of all rows; raise unless each can be repaired from its rows of positive weight."""
    require_groups(sensitive_features)
    made = separate_groups(sensitive_features, check_policy(groups), n_rows=n_rows, owner="QuantileRepair")
    if weights is not None:
        n_empty = sum(rows.size > 0 and not weights[rows].any() for rows in made.rows)
        if n_empty:
            raise ValueError(
                f"{n_empty} of {len(made)} groups have total sample_weight 0; drop their rows or weigh them."
            )
    counted = made if weights is None else made.select(weights > 0)
    counted.require()
    return made


def check_histograms(histograms: GroupHistograms) -> None:
    """Raise unless each group can be repaired from its counts."""
    groups = histograms.groups
    if groups.overlapping:
        raise ValueError("Quantile repair needs groups that do not overlap; use crossed=True.")
    if len(groups) < 2:
        raise ValueError(
            f"The rows fall into {len(groups)} group(s) of {say_columns(groups.columns)}; at least 2 needed."
        )
    n_empty = int(np.count_nonzero(histograms.weights <= 0))
    if n_empty:
        raise ValueError(f"{n_empty} of {len(groups)} groups have total weight 0; drop their rows or weigh them.")
    if np.count_nonzero(histograms.everyone) == 1:
        raise ValueError(
            f"All {histograms.rows.sum()} scores fall into one bin, so there is nothing to repair: check the column, "
            "range= and n_bins=."
        )


def with_dropped_labels(groups: Groups) -> Groups:
    """Return the groups with the labels that `Groups.settle` dropped after the others.

    Rows of dropped groups have the code after the last group and so become those of the first dropped label. Which
    of these labels a row had is not known, and not needed: all of them use the common map.
    """
    if not groups.dropped:
        return groups
    spec = {name: value for name, value in groups.to_spec().items() if name != "dropped"}
    labels = [list(label) if isinstance(label, tuple) else label for label in groups.dropped]
    return replace(Groups.from_spec(spec | {"labels": [*spec["labels"], *labels]}), memberships=groups.memberships)


# Checks of labels, strata and options of a repair with a criterion.


def check_seed(random_state: Any) -> None:
    """Raise unless the seed of a randomised repair is a number: without one, two calls would not agree."""
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise ValueError(
            "random_state must be an integer that is not negative, so that two calls agree; got a "
            f"{type(random_state).__name__}."
        )


def require_labels(y: Any, criterion: str) -> None:
    """Raise where a criterion needs labels and there are none."""
    if y is None and needs_labels(criterion):
        raise ValueError(
            f"criterion={criterion!r} compares people with the same label, so it needs y. Only the fit needs it: "
            "scores are repaired without labels."
        )


class TrainingLabels(NamedTuple):
    """The label of each row, from 0 to ``n_labels - 1``: of two classes, or of ranges of y."""

    codes: Ints
    n_labels: int = 2


def training_labels(y: Any, groups: Groups, criterion: str, weights: Floats | None = None) -> TrainingLabels | None:
    """Return the labels of the rows, or None where the criterion needs none.

    Two labels are 0 and 1. Of a regression, people with similar y are compared: numbers of which there are more than
    two are cut at quantiles, as those of strata are.
    """
    if not needs_labels(criterion):
        return None
    require_labels(y, criterion)
    given = np.asarray(y)
    if given.dtype.kind in "iuf" and np.unique(given).size > 2:
        return _ranges_of(check_vector(given, name="y"), groups, criterion, weights)
    labels, classes = two_classes(y, "QuantileRepair")
    check_length(labels, size=groups.n_rows, name="y")
    return TrainingLabels((labels == classes[1]).astype(np.int64))


def _ranges_of(values: Floats, groups: Groups, criterion: str, weights: Floats | None) -> TrainingLabels:
    check_length(values, size=groups.n_rows, name="y")
    if criterion == "equal_opportunity":
        raise ValueError(
            "criterion='equal_opportunity' compares people with the positive label, and y has more than two values: a "
            "regression has no positive label. Use 'equalized_odds', which compares people with similar y, or "
            "'demographic_parity'."
        )
    counted = values if weights is None else values[weights > 0]
    ranges = make_strata(counted, n_groups=len(groups))
    return TrainingLabels(ranges.encode(values).codes, len(ranges))


def strata_to_repair(
    strata: Any,
    groups: Groups,
    criterion: str,
    labels: TrainingLabels | None,
    weights: Floats | None,
    *,
    randomize: bool,
) -> Strata | None:
    """Return the strata of all rows, or None without any; raise where nothing can be compared."""
    if labels is not None and labels.n_labels > 2:
        if randomize:
            raise ValueError(
                "randomize=True is for two labels: it makes receiver operating characteristic curves equal, which a "
                "regression does not have."
            )
        _require_two_groups(labels.codes, groups, weights)
        criterion = "demographic_parity"
    if strata is not None and randomize:
        raise ValueError("randomize=True does not take strata; leave one of them out.")
    cells = None if strata is None else make_strata(strata, n_groups=len(groups))
    codes = None if labels is None else labels.codes
    if cells is not None or needs_labels(criterion):
        resolve_criterion(criterion, groups, labels=codes, strata=cells, row_weights=weights)
    return cells


def _require_two_groups(codes: Ints, groups: Groups, weights: Floats | None) -> None:
    """Raise unless the rows of some range of y belong to two groups."""
    counted = np.ones(codes.size, dtype=np.bool_) if weights is None else weights > 0
    for code in np.unique(codes).tolist():
        if np.count_nonzero(groups.select(counted & (codes == code)).counts) > 1:
            return
    raise ValueError("There is nothing to compare: no range of y has rows of two groups.")


def stratum_codes(known: Strata | None, strata: Any, n_rows: int) -> Ints | None:
    """Return the stratum of each row; raise for rows of a stratum that was not seen in fit."""
    if known is None:
        if strata is not None:
            raise ValueError("This repair was fitted without strata; leave strata out, or fit it with them.")
        return None
    if strata is None:
        raise ValueError(
            f"This repair was fitted within strata of {say_columns(known.columns)}; pass strata, with the same columns."
        )
    codes = known.encode(strata).codes
    check_length(codes, size=n_rows, name="strata")
    n_unseen = int(np.count_nonzero(codes == len(known)))
    if n_unseen:
        raise ValueError(
            f"{n_unseen} of {n_rows} rows belong to a stratum that was not seen in fit, so there is no map for them. "
            "Fit with rows of every stratum, or assign these rows to one that was seen."
        )
    return codes


def check_compared_counts(parts: Sequence[GroupHistograms], criterion: str, part: str = "label") -> None:
    """Raise unless some histograms have rows of two groups, with one label where the criterion compares these."""
    if needs_labels(criterion) and not all(one.has_labels for one in parts):
        raise ValueError(f"criterion={criterion!r} compares people with the same label; name their column with label=.")
    compared: dict[str, list[Any]] = {"equal_opportunity": [[1]], "equalized_odds": [[0], [1]]}
    by_label = (one.by_class[labels].sum(axis=(0, 2)) for one in parts for labels in compared.get(criterion, [...]))
    if not any(np.count_nonzero(masses > 0) > 1 for masses in by_label):
        raise ValueError(f"There is nothing to compare: no {part} has rows of two groups.")


def check_stream_criterion(criterion: str, y: Any, *, randomize: bool, strata: bool) -> None:
    """Raise where a repair cannot follow a stream."""
    if randomize or strata:
        kind = "A randomised repair" if randomize else "A repair within strata"
        raise ValueError(f"{kind} cannot follow a stream; fit it again when the scores have changed.")
    require_labels(y, criterion)


# The rows that each map and the target are computed from, where some groups are small.


@dataclass(frozen=True, eq=False)
class MapSources:
    """The groups whose rows each map and the target are computed from."""

    maps: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]
    own_map: Bools

    @classmethod
    def choose(cls, sizes: ArrayLike, small: str, min_size: int, *, by_size: bool) -> MapSources:
        """Choose the sources under a policy for small groups."""
        counts = np.asarray(sizes)
        own = counts >= min_size
        large, few = (tuple(np.flatnonzero(which).tolist()) for which in (own, ~own))
        everyone = tuple(range(counts.size))
        enough = counts[list(few)].sum() >= min_size
        shared = few if enough and small != "drop" else everyone
        maps = tuple((group,) if own[group] else shared for group in everyone)
        filled = tuple(np.flatnonzero(counts > 0).tolist())
        compared = filled if (small == "keep" and by_size) or not large else large
        target: tuple[tuple[int, ...], ...] = tuple((group,) for group in compared)
        if small == "pool" and few:
            target = (*((group,) for group in large), few)
        return cls(maps, target, own)

    def with_own_maps(self, sizes: ArrayLike) -> MapSources:
        """Return the sources where every group with rows has a map of its own; the target stays."""
        own = np.asarray(sizes) > 0
        everyone = tuple(range(own.size))
        return replace(self, maps=tuple((group,) if own[group] else everyone for group in everyone), own_map=own)
