"""What was measured how: the last part of an audit's page."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TYPE_CHECKING

from fairtransport._text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.auditing import Audit
    from fairtransport.report.pages._what_if import WhatIf

__all__ = ["comparison_method_entries", "method_entries", "software"]


def method_entries(audit: Audit, part: WhatIf) -> list[tuple[str, str]]:
    """Return names and texts: rows, groups, target, intervals, resolution.

    Parameters
    ----------
    audit : Audit
    part : WhatIf
        The page's own resolution.

    Returns
    -------
    list of (str, str)
    """
    settings = audit.settings
    low, high = settings.range
    intervals = (
        f"{settings.confidence:.0%}; of disparities from {settings.n_bootstrap:,} bootstrap replicates, with the "
        "upward bias of small groups taken into account; of shares Wilson's; of ratios Donner and Zou's; of areas "
        "DeLong's"
    )
    return [
        ("Rows", f"{audit.rows:,}{', weighted' if settings.weighted else ''}"),
        ("Set aside", _set_aside(audit)),
        ("Groups", f"{len(audit.groups)} of {', '.join(map(one_line, settings.columns))}"),
        ("Range of scores", f"{low:g} to {high:g}; distances are shares of it"),
        ("Target", one_line(settings.target)),
        ("Resolution", _resolution(audit)),
        ("Intervals", intervals),
        ("Chance", _chance(audit)),
        ("Unsure", f"Groups with fewer than {settings.unsure_below} effective rows are shown and not judged"),
        ("Moving thresholds", _moving(part)),
    ]


def comparison_method_entries(parts: Sequence[WhatIf], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the same for two audits: once what they have in common, by name what not."""
    found = [method_entries(part.audit, part) for part in parts]
    entries: list[tuple[str, str]] = []
    for (key, value), (_, other) in zip(*found, strict=True):
        entries += [(key, value)] if value == other else [(f"{key}, {names[0]}", value), (f"{key}, {names[1]}", other)]
    noise = "A change is beyond noise when its interval, which takes the two audits as independent, does not hold 0"
    return [*entries, ("Changes", noise)]


def software() -> str:
    """Name the versions that the figures depend on."""
    names = ("numpy", "scipy", "scikit-learn", "numba")
    versions = {"Python": platform.python_version(), **{name: metadata.version(name) for name in names}}
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _set_aside(audit: Audit) -> str:
    found = [f"{count:,} rows: {one_line(reason)}" for reason, count in audit.settings.set_aside.items()]
    return "; ".join([*found, *audit.settings.small_groups.sentences()]) or "no rows"


def _resolution(audit: Audit) -> str:
    settings = audit.settings
    if settings.exact:
        return "Figures in the tables are exact: read from the rows"
    return (
        f"Scores were counted in {settings.n_bins:,} bins; each distance is off by at most {1 / settings.n_bins:.1g}, "
        "shares are exact for thresholds on the bins"
    )


def _chance(audit: Audit) -> str:
    settings = audit.settings
    lot = "shuffles of the groups" if settings.null == "shuffled" else "draws without any difference"
    return f"Noise floor and p from {settings.n_permutations:,} {lot}, on {settings.n_nodes} nodes"


def _moving(part: WhatIf) -> str:
    told = (
        f"Computed on this page from counts in {part.reduced.n_bins:,} bins; a threshold counts as the next of their "
        "edges"
    )
    return f"{told}. Repair is fitted to these same rows" if part.reduced.can_repair else told
