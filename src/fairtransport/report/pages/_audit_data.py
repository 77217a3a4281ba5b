"""What the page's script works on: histograms, names and colours, as one JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from fairtransport._text import one_line
from fairtransport.report.style.colors import GroupStyle, group_styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing import Audit
    from fairtransport.report.pages._reduced_histograms import Filled
    from fairtransport.report.pages._what_if import WhatIf

__all__ = ["dash_list", "page_data", "styles_of"]

_WEIGHT_DIGITS = 9  # significant ones; counts stay whole numbers


def page_data(parts: Sequence[WhatIf], *, names: Sequence[str], places: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Collect what one audit, or two of the same groups, look like to the script.

    Parameters
    ----------
    parts : sequence of WhatIf
        The audits on the page's nodes.
    names : sequence of str
        What the audits are called.
    places : sequence of sequence of int
        Where each group of the first audit stands in each audit.

    Returns
    -------
    dict
        ``range``, ``threshold`` (to begin with), ``z`` and ``confidence`` of intervals, ``labelled``, ``groups`` (name,
        colour, dashes) and ``audits``: bins, the sum of all pairs' distances, and for each group its rows, whether it
        is unsure, the nodes with rows (``at``, as steps from one to the next), the weight there by label (``masses``)
        and where full repair carries them (``images``, on [0, 1]).
    """
    first = parts[0].audit
    settings = first.settings
    return {
        "range": list(settings.range),
        "threshold": first.thresholds[0].threshold,
        "confidence": f"{settings.confidence:.0%}",
        "z": float(ndtri((1 + settings.confidence) / 2)),
        "labelled": all(part.reduced.has_labels for part in parts),
        "groups": [
            {"name": one_line(group.name), "colour": style.colour, "dashes": dash_list(style), "named": style.named}
            for group, style in zip(first.groups, styles_of(first), strict=True)
        ],
        "audits": [_audit(*one) for one in zip(parts, names, places, strict=True)],
    }


def styles_of(audit: Audit) -> tuple[GroupStyle, ...]:
    """Return the styles of an audit's groups."""
    return group_styles(audit.histograms.groups, audit.histograms.group_rows)


def dash_list(style: GroupStyle) -> str:
    """Return dashes as SVG has them."""
    return " ".join(f"{2 * length:g}" for length in style.dashes) or "none"


def _audit(part: WhatIf, name: str, places: Sequence[int]) -> dict[str, Any]:
    reduced, audit = part.reduced, part.audit
    groups = []
    for place in places:
        told = audit.groups[place]
        groups.append(
            {
                "rows": told.rows,
                "effective": told.effective_rows,
                "unsure": told.unsure,
                **_filled(reduced.groups[place]),
            }
        )
    return {
        "name": one_line(name),
        "bins": reduced.n_bins,
        "fullBins": reduced.full_bins,
        "disparity": audit.metrics["strong_pairwise_disparity"],
        "groups": groups,
        # Where groups overlap, everyone is not their sum.
        "everyone": _filled(reduced.everyone) if audit.histograms.groups.overlapping else None,
    }


def _filled(group: Filled) -> dict[str, Any]:
    return {
        "at": np.diff(group.at, prepend=0).tolist(),
        "masses": [_numbers(masses) for masses in group.masses],
        "images": None if group.images is None else group.images.tolist(),
    }


def _numbers(masses: NDArray[np.float64]) -> list[float]:
    """Whole numbers as such, others with as many digits as figures can need."""
    whole = masses.astype(np.int64)
    if np.array_equal(whole, masses):
        return whole.tolist()
    return [float(f"{mass:.{_WEIGHT_DIGITS}g}") for mass in masses.tolist()]
