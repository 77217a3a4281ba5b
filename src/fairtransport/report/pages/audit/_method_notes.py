"""How an audit was measured: the last section of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import number_text, one_line, score_text
from fairtransport.histograms import display_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.auditing import Audit
    from fairtransport.report._what_if import WhatIf

__all__ = ["collect_comparison_notes", "collect_method_notes"]


def collect_method_notes(audit: Audit, what_if: WhatIf) -> list[tuple[str, str]]:
    """Return notes on rows, groups, target, intervals and resolution.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.
    what_if : WhatIf
        The audit at the resolution of the page.

    Returns
    -------
    list of (name, text)
    """
    settings = audit.settings
    intervals = (
        f"{settings.confidence:.0%}; for disparities from {settings.n_bootstrap:,} bootstrap replicates, corrected for "
        "the upward bias of small groups; for shares by Wilson's method; for ratios by Donner and Zou's; for areas "
        "under the ROC curve by DeLong's"
    )
    return [
        ("Rows", f"{audit.rows:,}{', weighted' if settings.weighted else ''}"),
        ("Set aside", _set_aside(audit)),
        ("Groups", f"{len(audit.groups)} of {', '.join(map(one_line, settings.columns))}"),
        ("Range of scores", _range(audit)),
        ("Target", one_line(settings.target)),
        ("Resolution", _resolution(audit)),
        ("Intervals", intervals),
        ("Chance", _chance(audit)),
        ("Few rows", f"Groups with fewer than {settings.min_judged_rows} effective rows are shown but not judged"),
        ("Sliders", _sliders(what_if)),
    ]


def collect_comparison_notes(what_ifs: Sequence[WhatIf], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the notes on two audits: once where they agree, by the name of the audit where they differ."""
    notes: list[tuple[str, str]] = []
    for (key, value), (_, other) in zip(
        *(collect_method_notes(what_if.audit, what_if) for what_if in what_ifs), strict=True
    ):
        notes += [(key, value)] if value == other else [(f"{key}, {names[0]}", value), (f"{key}, {names[1]}", other)]
    changes = "A change is beyond noise when its interval, which treats the audits as independent, does not contain 0"
    return [*notes, ("Changes", changes)]


def _set_aside(audit: Audit) -> str:
    reasons = [f"{count:,} rows: {one_line(reason)}" for reason, count in audit.settings.set_aside.items()]
    return "; ".join([*reasons, *audit.settings.small_groups.sentences()]) or "no rows"


def _range(audit: Audit) -> str:
    grid = audit.histograms.grid
    if audit.settings.bounded:
        return f"{grid.low:g} to {grid.high:g}; distances are shares of it"
    low, high = display_range(audit.histograms)
    text = f"{number_text(grid.low)} to {number_text(grid.high)}, as observed; groups are compared by ranks"
    if (low, high) == (grid.low, grid.high):
        return text
    return f"{text}. Charts show {number_text(low)} to {number_text(high)}, others at the ends"


def _resolution(audit: Audit) -> str:
    settings = audit.settings
    if settings.exact:
        return "The numbers in the tables are exact: they were computed from the rows"
    if not settings.bounded:
        error = score_text(audit.readings["strong_pairwise_disparity"].resolution)
        return f"Scores were counted in {settings.n_bins:,} bins; the sum of distances is exact to {error}"
    return (
        f"Scores were counted in {settings.n_bins:,} bins; each distance is exact to {1 / settings.n_bins:.1g}, shares "
        "are exact for thresholds on the edges of bins"
    )


def _chance(audit: Audit) -> str:
    settings = audit.settings
    samples = "permutations of the groups" if settings.null == "permuted" else "draws of each group's noise"
    return f"Noise floor and p from {settings.n_permutations:,} random {samples}, on {settings.n_nodes} nodes"


def _sliders(what_if: WhatIf) -> str:
    text = (
        f"Computed on this page from counts in {what_if.reduced.n_bins:,} bins; a threshold is rounded up to the next "
        "edge of a bin"
    )
    return f"{text}. Repair is fitted to these same rows" if what_if.reduced.can_repair else text
