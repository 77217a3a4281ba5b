"""Data of the page's script: histograms, names and colours, as one JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from fairtransport._text import one_line
from fairtransport.auditing.proportions import critical_values
from fairtransport.report._shown_scores import score_title
from fairtransport.report.style.colors import GroupStyle, group_styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing import Audit
    from fairtransport.report._reduced_histograms import NodeMasses
    from fairtransport.report._what_if import WhatIf

__all__ = ["audit_styles", "collect_script_data"]

_WEIGHT_DIGITS = 9  # significant digits; counts stay whole numbers


def collect_script_data(
    what_ifs: Sequence[WhatIf], *, names: Sequence[str], indices: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Collect what the script needs of one audit, or of two audits of the same groups.

    Parameters
    ----------
    what_ifs : sequence of WhatIf
        The audits, on the nodes of the page.
    names : sequence of str
        Names of the audits.
    indices : sequence of sequence of int
        For each audit, the index of each group of the first audit.

    Returns
    -------
    dict
        ``range``, ``ranks`` (whether distances are those of ranks), ``scoreTitle``, ``threshold`` (the initial one),
        ``confidence`` and ``z`` of intervals, ``favourable``,
        ``minJudgedRows``, ``labelled``, ``groups``
        (name, colour, dashes) and ``audits``: bins, sum of the distances of all pairs, and for each group its rows,
        whether it is judged, the nodes with rows (``at``, as differences), their weights by label (``masses``) and
        their scores after full repair (``images``, on [0, 1]).
    """
    first = what_ifs[0].audit
    settings = first.settings
    return {
        "range": list(settings.range),
        "ranks": not settings.bounded,
        "scoreTitle": score_title(first),
        "threshold": first.thresholds[0].threshold,
        "confidence": f"{settings.confidence:.0%}",
        "favourable": settings.favourable,
        "minJudgedRows": settings.min_judged_rows,
        "z": float(ndtri((1 + settings.confidence) / 2)),
        "labelled": all(what_if.reduced.has_labels for what_if in what_ifs),
        "groups": [
            {"name": one_line(group.name), "colour": style.colour, "dashes": style.dash_array, "named": style.named}
            for group, style in zip(first.groups, audit_styles(first), strict=True)
        ],
        "tukey": [round(value, 6) for value in critical_values(len(first.groups), first.settings.confidence)],
        "audits": [_audit_data(*audit) for audit in zip(what_ifs, names, indices, strict=True)],
    }


def audit_styles(audit: Audit) -> tuple[GroupStyle, ...]:
    """Return the styles of the groups of an audit."""
    return group_styles(audit.histograms.groups, audit.histograms.group_rows)


def _audit_data(what_if: WhatIf, name: str, indices: Sequence[int]) -> dict[str, Any]:
    reduced, audit = what_if.reduced, what_if.audit
    return {
        "name": one_line(name),
        "bins": reduced.n_bins,
        "fullBins": reduced.full_bins,
        "disparity": audit.metrics[audit.settings.pairs_metric],
        "groups": [
            {
                "rows": audit.groups[index].rows,
                "effective": audit.groups[index].effective_rows,
                "judged": audit.groups[index].judged,
                **_node_data(reduced.groups[index]),
            }
            for index in indices
        ],
        # Overlapping groups do not add up to everyone.
        "everyone": _node_data(reduced.everyone) if audit.histograms.groups.overlapping else None,
    }


def _node_data(group: NodeMasses) -> dict[str, Any]:
    return {
        "at": np.diff(group.indices, prepend=0).tolist(),
        "masses": [_short_numbers(masses) for masses in group.masses],
        "images": None if group.images is None else group.images.tolist(),
    }


def _short_numbers(masses: NDArray[np.float64]) -> list[float]:
    """Return whole numbers as integers, others with as many digits as the page needs."""
    whole = masses.astype(np.int64)
    if np.array_equal(whole, masses):
        return whole.tolist()
    return [float(f"{mass:.{_WEIGHT_DIGITS}g}") for mass in masses.tolist()]
