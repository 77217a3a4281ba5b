"""Checks of labels, strata and options of a repair with a criterion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport._sklearn.labels import two_classes
from fairtransport._validation import check_length
from fairtransport.criteria import needs_labels, resolve_criterion
from fairtransport.strata import make_strata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms
    from fairtransport.strata import Strata

__all__ = [
    "check_cell_counts",
    "check_label_counts",
    "check_seed",
    "check_stream_criterion",
    "require_labels",
    "strata_to_repair",
    "stratum_codes",
    "training_labels",
]


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


def training_labels(y: Any, n_rows: int, criterion: str) -> NDArray[np.int64] | None:
    """Return the labels as 0 and 1, or None where the criterion needs none."""
    if not needs_labels(criterion):
        return None
    require_labels(y, criterion)
    labels, classes = two_classes(y, "QuantileRepair")
    check_length(labels, size=n_rows, name="y")
    return (labels == classes[1]).astype(np.int64)


def strata_to_repair(
    strata: Any,
    groups: Groups,
    *,
    criterion: str,
    labels: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
    randomize: bool,
) -> Strata | None:
    """Return the strata of all rows, or None without any; raise where nothing can be compared."""
    if strata is None:
        if needs_labels(criterion):
            resolve_criterion(criterion, groups, labels=labels, row_weights=weights)
        return None
    if randomize:
        raise ValueError("randomize=True does not take strata; leave one of them out.")
    cells = make_strata(strata, n_groups=len(groups))
    resolve_criterion(criterion, groups, labels=labels, strata=cells, row_weights=weights)
    return cells


def stratum_codes(known: Strata | None, strata: Any, n_rows: int) -> NDArray[np.int64] | None:
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


def check_label_counts(histograms: GroupHistograms, criterion: str) -> None:
    """Raise unless counts have the labels that a criterion needs, in at least two groups."""
    if not needs_labels(criterion):
        return
    if not histograms.has_labels:
        raise ValueError(
            f"criterion={criterion!r} compares people with the same label; count the table with its label column."
        )
    used = (1,) if criterion == "equal_opportunity" else (0, 1)
    n_groups = [int(np.count_nonzero(histograms.by_class[label].sum(axis=1) > 0)) for label in used]
    if max(n_groups) < 2:
        raise ValueError("There is nothing to compare: no label has rows of two groups.")


def check_cell_counts(strata: Sequence[GroupHistograms], criterion: str) -> None:
    """Raise unless some stratum has rows of two groups, with one label where the criterion compares these."""
    used = {"demographic_parity": (0, 1), "equal_opportunity": (1,), "equalized_odds": (0, 1)}[criterion]
    for part in strata:
        by_label = [part.by_class[label : label + 1].sum(axis=(0, 2)) for label in used]
        compared = [sum(by_label)] if criterion == "demographic_parity" else by_label
        if any(np.count_nonzero(masses > 0) > 1 for masses in compared):
            return
    raise ValueError("There is nothing to compare: no stratum has rows of two groups.")


def check_stream_criterion(criterion: str, y: Any, *, randomize: bool, strata: bool) -> None:
    """Raise where a repair cannot follow a stream."""
    if randomize or strata:
        kind = "A randomised repair" if randomize else "A repair within strata"
        raise ValueError(f"{kind} cannot follow a stream; fit it again when the scores have changed.")
    require_labels(y, criterion)
