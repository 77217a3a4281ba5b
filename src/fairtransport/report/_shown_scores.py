"""Audits as figures and pages show them: scores without known bounds on equally spaced nodes over most of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.histograms import Grid, display_range, regrid

if TYPE_CHECKING:
    from fairtransport.auditing import Audit
    from fairtransport.histograms import GroupHistograms

__all__ = ["score_title", "shown_audit", "shown_histograms"]

_N_BINS = 1 << 12


def shown_histograms(histograms: GroupHistograms, *others: GroupHistograms) -> GroupHistograms:
    """Return histograms on equally spaced nodes; those of scores without known bounds over `display_range`.

    Parameters
    ----------
    histograms : GroupHistograms
    *others : GroupHistograms
        Histograms that are shown beside them, on the same nodes.

    Returns
    -------
    GroupHistograms
        Whole numbers lie on nodes, where their range is short enough. Scores beyond the range are counted at its ends.
    """
    grid = histograms.grid
    if not grid.positions:
        return histograms
    ranges = [display_range(each) for each in (histograms, *others)]
    low, high = min(each[0] for each in ranges), max(each[1] for each in ranges)
    n_bins = _N_BINS
    occupied = np.concatenate([each.grid.nodes[np.flatnonzero(each.everyone)] for each in (histograms, *others)])
    if np.array_equal(occupied, np.rint(occupied)) and high - low <= _N_BINS:
        low, high = float(np.floor(low)), float(np.ceil(high))
        n_bins = int(high - low) * max(1, _N_BINS // int(high - low))
    return regrid(histograms, Grid(low, high, n_bins))


def shown_audit(audit: Audit, *others: Audit) -> Audit:
    """Return an audit whose histograms have equally spaced nodes, as those of other audits; figures are unchanged."""
    if audit.settings.bounded:
        return audit
    histograms = shown_histograms(audit.histograms, *(other.histograms for other in others))
    settings = replace(audit.settings, range=(histograms.grid.low, histograms.grid.high))
    return replace(audit, histograms=histograms, settings=settings)


def score_title(audit: Audit) -> str:
    """Return the label of an axis of scores: ``"Score"``, or ``"Prediction"`` of a regression."""
    return "Prediction" if audit.settings.task == "regression" else "Score"
