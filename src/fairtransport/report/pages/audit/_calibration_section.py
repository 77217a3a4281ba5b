"""Calibration by group: small charts of the reliability curves, and tables of errors, slopes and areas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import one_line, percent, score_text, shorten, three_digits
from fairtransport.report.pages.audit._table import EMPTY_CELL, Cell, Row, Table, estimate_cell, interval_cell
from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, Estimate, GroupCalibration

__all__ = ["Panel", "collect_calibration_sheets", "collect_calibration_tables", "collect_panels"]

_SIZE = 100.0  # of the square that a curve is drawn in


@dataclass(frozen=True)
class Panel:
    """The reliability curve of a group, in the coordinates of its chart: 100 by 100, the origin at the top left.

    Parameters
    ----------
    group : int or None
        Index of the group; None for everyone.
    title, description : str
        Heading, and what the chart shows, for those who do not see it.
    points : tuple of (float, float, float, float)
        Position of each bin, and the ends of its interval.
    line, everyone : str
        Path of the curve, and of everyone's.
    """

    group: int | None
    title: str
    description: str
    points: tuple[tuple[float, float, float, float], ...]
    line: str
    everyone: str


def collect_panels(audit: Audit) -> list[Panel]:
    """Return the reliability curves of everyone and of the largest groups that are judged; none without labels.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Returns
    -------
    list of Panel
    """
    if audit.calibration is None:
        return []
    judged = [index for index, group in enumerate(audit.groups) if group.judged]
    shown = judged if len(judged) >= 2 else range(len(audit.groups))
    largest = sorted(sorted(shown, key=lambda index: -audit.groups[index].effective_rows)[:MOST_NAMED])
    everyone = _path(_points(audit, audit.calibration.overall))
    panels = [_panel(audit, audit.calibration.overall, None, everyone)]
    return [*panels, *(_panel(audit, audit.calibration.groups[index], index, everyone) for index in largest)]


def _panel(audit: Audit, one: GroupCalibration, group: int | None, everyone: str) -> Panel:
    title = "Everyone" if group is None else one_line(one.name)
    bins = "; ".join(f"{score_text(part.mean_score)}: {percent(part.rate.value)}" for part in one.bins)
    return Panel(
        group=group,
        title=title,
        description=f"Reliability curve of {title}. Mean score and share that is positive, by bin: {bins}.",
        points=tuple(_points(audit, one)),
        line=_path(_points(audit, one)),
        everyone="" if group is None else everyone,
    )


def _points(audit: Audit, one: GroupCalibration) -> list[tuple[float, float, float, float]]:
    low, high = audit.settings.range
    points = []
    for part in one.bins:
        x = _SIZE * (part.mean_score - low) / (high - low)
        points.append((x, *(_SIZE * (1 - rate) for rate in (part.rate.value, part.rate.low, part.rate.high))))
    return [tuple(round(value, 1) for value in point) for point in points]  # type: ignore[misc]


def _path(points: list[tuple[float, float, float, float]]) -> str:
    return "".join(f"{'L' if number else 'M'}{x} {y}" for number, (x, y, _, _) in enumerate(points))


def collect_calibration_tables(audit: Audit) -> list[Table]:
    """Return the calibration of each group, and the areas under ROC curves between groups; none without labels.

    Parameters
    ----------
    audit : Audit
        Result of `fairtransport.audit`.

    Returns
    -------
    list of Table
    """
    if audit.calibration is None or audit.cross_auc is None:
        return []
    tables = [_calibration_table(audit)]
    return [*tables, _cross_table(audit)] if len(audit.groups) <= MOST_NAMED else tables


def _calibration_table(audit: Audit) -> Table:
    calibration = audit.calibration
    if calibration is None:
        raise ValueError("The audit has no labels.")
    interval = f"{audit.settings.confidence:.0%} interval"
    rows = []
    for index, one in enumerate((*calibration.groups, calibration.overall)):
        error = one.expected_error
        cells = (
            Cell(percent(one.positive_rate.value), one.positive_rate.value),
            estimate_cell(error, three_digits),
            EMPTY_CELL if error is None else interval_cell(error.low, error.high, three_digits),
            _with_interval(one.intercept),
            _with_interval(one.slope),
            estimate_cell(audit.auc if index == len(audit.groups) else audit.groups[index].auc, _two_digits),
        )
        rows.append(
            Row(
                "Everyone" if index == len(audit.groups) else one.name,
                cells,
                index if index < len(audit.groups) else None,
            )
        )
    return Table(
        key="calibration",
        title="Calibration",
        caption="The expected calibration error is the mean distance between scores and shares of positive rows. It is "
        "above 0 even by chance, for which its interval is corrected. An intercept above 0 means scores that are too "
        "low, a slope below 1 scores that are too extreme. AUC is the area under the ROC curve."
        if calibration.probabilities
        else "Scores outside [0, 1] are not probabilities, so that there is no calibration error.",
        columns=("Group", "Positive", "Calibration error", interval, "Intercept", "Slope", "AUC"),
        rows=tuple(rows),
        wide=frozenset({3, 4, 5}),
    )


def _with_interval(estimate: Estimate | None) -> Cell:
    if estimate is None:
        return EMPTY_CELL
    text = f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})".replace("-", "\N{MINUS SIGN}")
    return Cell(text, estimate.value)


def _cross_table(audit: Audit) -> Table:
    crossed = audit.cross_auc
    if crossed is None:
        raise ValueError("The audit has no labels.")
    names = [shorten(audit.groups[index].name, 18) for index in crossed.groups]
    rows = tuple(
        Row(audit.groups[index].name, tuple(estimate_cell(area, _two_digits) for area in areas), index)
        for index, areas in zip(crossed.groups, crossed.areas, strict=True)
    )
    return Table(
        key="cross-auc",
        title="Ranking between groups",
        caption="The probability that a positive row of the group on the left scores above a negative row of the group "
        "on top (cross-group area under the ROC curve, xAUC). Where a figure and its mirror image differ, errors of "
        "ranking fall on one group more than on the other.",
        columns=("Positive rows of", *names),
        rows=rows,
    )


def collect_calibration_sheets(audit: Audit) -> dict[str, list[list[Any]]]:
    """Return the reliability curves of all groups for a spreadsheet."""
    if audit.calibration is None:
        return {}
    rows: list[list[Any]] = [["Group", "Above", "Up to", "Mean score", "Positive", "Low", "High", "Weight"]]
    for one in (audit.calibration.overall, *audit.calibration.groups):
        for part in one.bins:
            scores = [part.low, part.high, part.mean_score]
            rows.append([one_line(one.name), *scores, part.rate.value, part.rate.low, part.rate.high, part.weight])
    return {"reliability": rows}


def _two_digits(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "\N{EN DASH}"
