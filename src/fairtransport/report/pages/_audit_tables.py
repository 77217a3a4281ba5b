"""The tables of an audit's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import one_line, percent, score_text, shorten, three_digits
from fairtransport.auditing.result import QUANTILE_LEVELS
from fairtransport.report.pages._table import (
    METRIC_WORDS,
    NOTHING,
    Cell,
    Row,
    Table,
    estimate_cell,
    interval_cell,
    number_cell,
)
from fairtransport.report.pages.audit_verdict import four_fifths_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.auditing import Audit, Reading

__all__ = ["audit_tables", "farthest_pairs", "sheets"]

_MOST_PAIRS = 15


def audit_tables(audit: Audit) -> list[Table]:
    """Return the tables of one audit: metrics, groups, thresholds, farthest pairs, and strata where there are any."""
    tables = [_metrics(audit), _groups(audit), _thresholds(audit)]
    if len(audit.groups) > 2:
        tables.append(_pairs(audit))
    if audit.strata:
        tables.append(_strata(audit))
        if audit.conditional:
            tables.append(_conditional(audit))
    return tables


def farthest_pairs(audit: Audit, most: int = _MOST_PAIRS) -> list[tuple[int, int, float]]:
    """Return the pairs of groups that are farthest apart, of those that are sure (of all, where fewer than two are).

    Examples
    --------
    >>> import fairtransport as ft
    >>> found = ft.audit([0.1, 0.2, 0.9], sensitive_features=["a", "b", "c"], n_bootstrap=99)
    >>> [(one, other, round(distance, 3)) for one, other, distance in farthest_pairs(found, 2)]
    [(0, 2, 0.8), (1, 2, 0.7)]
    """
    sure = np.array([not group.unsure for group in audit.groups])
    judged = np.flatnonzero(sure) if sure.sum() >= 2 else np.arange(sure.size)
    ones, others = np.triu_indices(judged.size, 1)
    ones, others = judged[ones], judged[others]
    distances = audit.distances[ones, others]
    order = np.argsort(-distances, kind="stable")[:most]
    return [(int(ones[at]), int(others[at]), float(distances[at])) for at in order]


# ------------------------------------------------------------------------------------------------------- one by one


def _metrics(audit: Audit) -> Table:
    interval = f"{audit.settings.confidence:.0%} interval"
    return Table(
        key="figures",
        title="The figures",
        caption=(
            "A distance is the difference between two groups' shares above a threshold, averaged over all thresholds. "
            "“Corrected” is the value without what small groups add to it, “by chance” what it reads when groups are "
            "drawn by lot, p how often chance reads as much. “Within” holds for any distribution."
        ),
        columns=("Figure", "Value", interval, "Corrected", "By chance", "p", "Within"),
        rows=tuple(_metric_row(name, reading) for name, reading in audit.readings.items()),
        wide=frozenset({3, 4, 6}),
    )


def _metric_row(name: str, reading: Reading) -> Row:
    word, told = METRIC_WORDS[name]
    show = percent if name == "error_rate" else three_digits
    return Row(
        word,
        (
            Cell(show(reading.value), reading.value),
            interval_cell(reading.low, reading.high, show),
            number_cell(None if reading.floor is None else reading.corrected, three_digits),
            number_cell(reading.floor, three_digits),
            number_cell(reading.p_value, lambda value: f"{value:.2g}"),
            number_cell(reading.margin if np.isfinite(reading.margin) else None, lambda value: f"± {show(value)}"),
        ),
        note=told,
    )


def _groups(audit: Audit) -> Table:
    labelled = any(group.error is not None for group in audit.groups)
    levels = ["Median" if level == 0.5 else f"{level:.0%} below" for level in QUANTILE_LEVELS]
    columns = ["Group", "Rows", "Mean", *levels, "From everyone"]
    if labelled:
        columns += ["Wrong", "AUC"]
    rows = []
    for place, group in enumerate(audit.groups):
        cells = [Cell(f"{group.rows:,}", group.rows), Cell(score_text(group.mean), group.mean)]
        cells += [Cell(score_text(value), value) for value in group.quantiles]
        cells.append(Cell(three_digits(group.distance_to_everyone), group.distance_to_everyone))
        if labelled:
            cells += [estimate_cell(group.error, percent), estimate_cell(group.auc, lambda value: f"{value:.2f}")]
        rows.append(Row(group.name, tuple(cells), place, unsure=group.unsure))
    first = audit.thresholds[0].threshold
    wrong = f" “Wrong” is the share on the wrong side of {first:g}." if labelled else ""
    return Table(
        key="groups",
        title="The groups",
        caption=f"Scores by group: mean, quantiles, and the distance from everyone's scores.{wrong}",
        columns=tuple(columns),
        rows=tuple(rows),
        wide=frozenset({3, 4, 6, 7, 8}),
    )


def _thresholds(audit: Audit) -> Table:
    interval = f"{audit.settings.confidence:.0%} interval"
    rows = []
    for at in audit.thresholds:
        low, high = audit.groups[at.lowest], audit.groups[at.highest]
        shown = at.four_fifths is not None
        rows.append(
            Row(
                f"{at.threshold:g}",
                (
                    Cell(percent(at.overall), at.overall),
                    Cell(f"{percent(at.rates[at.lowest].value)} of {shorten(low.name, 40)}", one_line(low.name)),
                    Cell(f"{percent(at.rates[at.highest].value)} of {shorten(high.name, 40)}", one_line(high.name)),
                    number_cell(at.ratio.value if shown else None, lambda value: f"{value:.2f}"),
                    interval_cell(at.ratio.low, at.ratio.high, lambda value: f"{value:.2f}") if shown else NOTHING,
                    Cell(four_fifths_words(at).capitalize(), four_fifths_words(at)),
                ),
            )
        )
    return Table(
        key="thresholds",
        title="At the thresholds of the audit",
        caption="Lowest and highest share selected among the groups with rows enough, and the ratio of the two.",
        columns=("Threshold", "Selected", "Lowest", "Highest", "Ratio", interval, "Four fifths"),
        rows=tuple(rows),
        wide=frozenset({1, 5}),
    )


def _pairs(audit: Audit) -> Table:
    rows = []
    for one, other, distance in farthest_pairs(audit):
        pair = audit.pair(audit.histograms.groups.labels[one], audit.histograms.groups.labels[other])
        between = f"{score_text(pair.most_between[0])} to {score_text(pair.most_between[1])}"
        rows.append(
            Row(
                pair.lower,
                (
                    Cell(shorten(pair.higher, 60), one_line(pair.higher)),
                    Cell(three_digits(distance), distance),
                    Cell(between, between),
                ),
                place=one if audit.groups[one].name == pair.lower else other,
            )
        )
    return Table(
        key="pairs",
        title="Farthest apart",
        caption="The group with the lower scores first. Half of the distance lies between the scores given last.",
        columns=("Lower", "Higher", "Distance", "Half of it between"),
        rows=tuple(rows),
        wide=frozenset({3}),
    )


def _strata(audit: Audit) -> Table:
    key = "strong_pairwise_disparity"
    rows = []
    for stratum in audit.strata:
        found = [stratum.metrics.get(key), stratum.floors.get(key), stratum.p_values.get(key)]
        shows = (three_digits, three_digits, lambda value: f"{value:.2g}")
        rows.append(
            Row(
                stratum.name,
                (
                    Cell(f"{stratum.rows:,}", stratum.rows),
                    Cell(str(stratum.n_groups), stratum.n_groups),
                    *(number_cell(value, show) for value, show in zip(found, shows, strict=True)),
                ),
                note="" if stratum.metrics else "set aside: fewer than two groups, or not the target",
            )
        )
    return Table(
        key="strata",
        title="Within strata",
        caption="Distances between all pairs of groups among the rows of each stratum.",
        columns=("Stratum", "Rows", "Groups", "All pairs", "By chance", "p"),
        rows=tuple(rows),
        wide=frozenset({2}),
    )


def _conditional(audit: Audit) -> Table:
    interval = f"{audit.settings.confidence:.0%} interval"
    return Table(
        key="within-strata",
        title="Mean over strata",
        caption="The same figures within strata, averaged by weight: what is left when the strata may count.",
        columns=("Figure", "Value", interval, "Corrected", "By chance", "p", "Within"),
        rows=tuple(_metric_row(name, reading) for name, reading in audit.conditional.items()),
        wide=frozenset({3, 4, 6}),
    )


def sheets(tables: Sequence[Table], audit: Audit | None = None) -> dict[str, list[list[Any]]]:
    """Return what can be saved: every table, and the distances between all groups."""
    found = {table.key: table.sheet for table in tables}
    if audit is not None:
        names = [one_line(group.name) for group in audit.groups]
        rows = ([name, *row] for name, row in zip(names, audit.distances.tolist(), strict=True))
        found["distances"] = [["", *names], *rows]
    return found
