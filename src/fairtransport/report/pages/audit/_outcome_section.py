"""Distributions of the groups' scores among people with the same outcome, as small charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._text import one_line, percent
from fairtransport.auditing.verdict import CRITERIA_CONFLICT, among_whom

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing import Audit

__all__ = ["OutcomePanel", "collect_outcomes"]

_N_POINTS = 101
_SIZE = 100.0  # of the square that curves are drawn in
_RATES = {0: "false_positive_rate", 1: "true_positive_rate"}


@dataclass(frozen=True)
class OutcomePanel:
    """The distribution functions of all groups among people with one outcome, 100 by 100, the origin at the top left.

    Parameters
    ----------
    title, description : str
        Heading, and what the chart shows, for those who do not see it.
    lines : tuple of (int, str)
        Index and path of each group that has such rows.
    """

    title: str
    description: str
    lines: tuple[tuple[int, str], ...]


def collect_outcomes(audit: Audit) -> dict[str, object] | None:
    """Return what the page says about people with the same outcome; None unless the criterion is about them.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Returns
    -------
    dict or None
        Heading, explanation and panels.
    """
    labels = {"equalized_odds": (0, 1), "equal_opportunity": (1,)}.get(audit.settings.criterion, ())
    if not labels:
        return None
    return {
        "title": f"{among_whom(audit)}, are the groups scored alike?",
        "note": CRITERIA_CONFLICT,
        "panels": [_panel(audit, label) for label in labels],
    }


def _panel(audit: Audit, label: int) -> OutcomePanel:
    points = np.linspace(0, 1, _N_POINTS)
    curves = 1 - audit.error_curves(audit.histograms.grid.from_unit(points))[_RATES[label]]
    middle = _N_POINTS // 2
    shown = [index for index in range(len(curves)) if not np.isnan(curves[index]).any()]
    halves = "; ".join(f"{one_line(audit.groups[index].name)}: {percent(curves[index][middle])}" for index in shown)
    title = "Positive outcome" if label else "Negative outcome"
    return OutcomePanel(
        title=title,
        description=f"Distribution functions by group, {title.lower()}. Share in the lower half of scores: {halves}.",
        lines=tuple((index, _path(points, curves[index])) for index in shown),
    )


def _path(points: NDArray[np.float64], curve: NDArray[np.float64]) -> str:
    return "".join(
        f"{'L' if number else 'M'}{_SIZE * x:.1f} {_SIZE * (1 - y):.1f}"
        for number, (x, y) in enumerate(zip(points.tolist(), curve.tolist(), strict=True))
    )
