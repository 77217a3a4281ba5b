"""The tables of an audit's page: each cell as a reader sees it and as a spreadsheet wants it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing.result import QUANTILE_LEVELS
from fairtransport.report.audit_verdict import four_fifths_words
from fairtransport.report.text import one_line, percent, score_text, shorten, three_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.auditing import Audit, AuditComparison, Change, Estimate, Reading

__all__ = ["METRIC_WORDS", "Cell", "Row", "Table", "audit_tables", "comparison_tables", "farthest_pairs", "sheets"]

METRIC_WORDS = {
    "error_rate": ("Wrong decisions", "Share of people on the wrong side of the first threshold."),
    "wasserstein_disparity": ("To the target", "Distance of each group's scores from the target, added up."),
    "strong_demographic_disparity": ("To everyone", "Distance of each group's scores from everyone's, added up."),
    "strong_pairwise_disparity": ("Between all pairs", "Distance between the scores of every two groups, added up."),
}
"""Each metric in a few words, and in a sentence."""

_MOST_PAIRS = 15


@dataclass(frozen=True)
class Cell:
    """One value: what is shown, and what a spreadsheet gets."""

    shown: str
    raw: Any


_NOTHING = Cell("\N{EN DASH}", "")


@dataclass(frozen=True)
class Row:
    """A line of a table: its head, and the cells.

    Parameters
    ----------
    head : str
    cells : tuple of Cell
    place : int or None
        Of the group that the line is about, for its swatch.
    note : str
        A line below the head.
    unsure : bool
    """

    head: str
    cells: tuple[Cell, ...]
    place: int | None = None
    note: str = ""
    unsure: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its caption.

    Parameters
    ----------
    key : str
        Name of the file that it can be saved as, and of its element.
    title, caption : str
    columns : tuple of str
        Heads, that of the first column included.
    rows : tuple of Row
    wide : frozenset of int
        Positions of columns that narrow screens leave out.
    """

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    wide: frozenset[int] = field(default_factory=frozenset)

    @property
    def sheet(self) -> list[list[Any]]:
        """Return rows for a spreadsheet, the heads first."""
        return [list(self.columns), *([one_line(row.head), *(cell.raw for cell in row.cells)] for row in self.rows)]


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


def comparison_tables(found: AuditComparison) -> list[Table]:
    """Return the tables of two audits: metrics, and the rates of each threshold that both have."""
    one, other = (shorten(name, 24) for name in found.names)
    interval = f"{found.before.settings.confidence:.0%} interval"
    columns = (one, other, "Change", interval, "Beyond noise")
    metrics = [
        Row(METRIC_WORDS[name][0], _change_cells(change, percents=name == "error_rate"), note=METRIC_WORDS[name][1])
        for name, change in found.changes.items()
    ]
    if found.auc is not None:
        note = "Chance that a positive row scores above a negative one."
        metrics.append(Row("Area under the ROC curve", _change_cells(found.auc), note=note))
    caption = "A change is beyond noise when its interval does not hold 0; the two audits count as independent."
    tables = [
        Table("changes", "What changed", caption, ("Figure", *columns), tuple(metrics), frozenset({4})),
    ]
    for number, threshold in enumerate(found.thresholds):
        rows = tuple(
            Row(group.name, _change_cells(change, percents=True), place, unsure=group.unsure)
            for place, (group, change) in enumerate(zip(found.before.groups, threshold.rates, strict=True))
        )
        ratios = " and ".join("none" if ratio is None else f"{ratio:.2f}" for ratio in threshold.ratios)
        caption = (
            f"Lowest over highest rate: {ratios}. Groups are judged one by one; a few may seem to change by chance."
        )
        title = f"Selected above {threshold.threshold:g}"
        tables.append(Table(f"selected-{number + 1}", title, caption, ("Group", *columns), rows, frozenset({4})))
    tables.append(_pair_changes(found, (one, other)))
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
            _interval(reading.low, reading.high, show),
            _number(None if reading.floor is None else reading.corrected, three_digits),
            _number(reading.floor, three_digits),
            _number(reading.p_value, lambda value: f"{value:.2g}"),
            _number(reading.margin if np.isfinite(reading.margin) else None, lambda value: f"± {show(value)}"),
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
            cells += [_estimate(group.error, percent), _estimate(group.auc, lambda value: f"{value:.2f}")]
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
                    _number(at.ratio.value if shown else None, lambda value: f"{value:.2f}"),
                    _interval(at.ratio.low, at.ratio.high, lambda value: f"{value:.2f}") if shown else _NOTHING,
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


def _pair_changes(found: AuditComparison, names: tuple[str, str]) -> Table:
    before, after = found.before, found.after
    rows = []
    for one, other, distance in farthest_pairs(before):
        later = float(after.distances[found.places[one], found.places[other]])
        partner = before.groups[other].name
        cells = (
            Cell(shorten(partner, 60), one_line(partner)),
            Cell(three_digits(distance), distance),
            Cell(three_digits(later), later),
        )
        rows.append(Row(before.groups[one].name, cells, place=one))
    return Table(
        key="pairs",
        title=f"Farthest apart in {names[0]}",
        caption="Distance between two groups, in both audits.",
        columns=("Group", "And", *names),
        rows=tuple(rows),
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
                    *(_number(value, show) for value, show in zip(found, shows, strict=True)),
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


# ------------------------------------------------------------------------------------------------------------ cells


def _change_cells(change: Change, *, percents: bool = False) -> tuple[Cell, ...]:
    def show(value: float) -> str:
        return percent(value) if percents else three_digits(value)

    def signed(value: float) -> str:
        return (f"{100 * value:+.1f}" if percents else f"{value:+.3f}").replace("-", "\N{MINUS SIGN}")

    unit = " points" if percents else ""
    return (
        Cell(show(change.before), change.before),
        Cell(show(change.after), change.after),
        Cell(f"{signed(change.value)}{unit}", change.value),
        Cell(f"{signed(change.low)} to {signed(change.high)}", f"{change.low} to {change.high}"),
        Cell("yes" if change.beyond_noise else "no", "yes" if change.beyond_noise else "no"),
    )


def _interval(low: float, high: float, show: Any) -> Cell:
    told = show(high) if np.isfinite(high) else "∞"
    return Cell(f"{show(low)} to {told}", f"{low} to {high}")


def _number(value: float | None, show: Any) -> Cell:
    return _NOTHING if value is None or not np.isfinite(value) else Cell(show(value), value)


def _estimate(found: Estimate | None, show: Any) -> Cell:
    return _NOTHING if found is None else _number(found.value, show)


def sheets(tables: Sequence[Table], audit: Audit | None = None) -> dict[str, list[list[Any]]]:
    """Return what can be saved: every table, and the distances between all groups."""
    found = {table.key: table.sheet for table in tables}
    if audit is not None:
        names = [one_line(group.name) for group in audit.groups]
        rows = ([name, *row] for name, row in zip(names, audit.distances.tolist(), strict=True))
        found["distances"] = [["", *names], *rows]
    return found
