"""The tables of an audit, each once: text, Markdown, notebook, CSV files and page render them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._arrays import Floats
from fairtransport._text import interval_text, number_text, one_line, percent, score_text, shorten, three_digits, wrap
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.records import (
    QUANTILE_LEVELS,
    compare_rates,
    compared_groups,
    cut_text,
    distance_text,
    four_fifths_text,
    n_distances,
    scores_word,
    threshold_heading,
)
from fairtransport.auditing.verdict import CRITERIA_CONFLICT, among_whom
from fairtransport.groups import MIN_SHOWN_ROWS

if TYPE_CHECKING:
    from fairtransport.auditing.errors import Calibration, CorrectedEstimate, CrossAuc, RegressionErrors
    from fairtransport.auditing.records import AuditData, Reading, WithinStrata

EMPTY = "\N{EN DASH}"
#: The foot of tables with rates that have no rows.
_NO_ROWS = f"{EMPTY}: no rows to compute the rate from"
#: The foot of tables with groups whose figures are not shown.
WITHHELD = f"{EMPTY}: withheld, as figures of fewer than {MIN_SHOWN_ROWS} rows would be those of single people."

_MOST_ROWS = 30  # of a table in text, where it has more than twice as many
_MOST_COLUMNS = 12  # as many groups as have a colour of their own
_MOST_PAIRS = 15


@dataclass(frozen=True)
class Cell:
    """A value that is shown in a way of its own; ``brief`` in text of 80 characters."""

    shown: str
    raw: Any
    brief: str | None = None


@dataclass(frozen=True)
class Column:
    """The form in which a column is shown: numbers, estimates, intervals as pairs of numbers, or cells.

    Columns with a ``width`` are those of text and of notebooks; ``wide`` ones are not for small screens.
    """

    name: str
    show: Callable[[Any], str] = str
    width: int = 0
    short: str = ""
    wide: bool = False
    intervals: bool = False

    def text(self, value: Any, *, brief: bool = False) -> str:
        """Return a value as a reader sees it; a dash where there is none."""
        if isinstance(value, Cell):
            return value.shown if value.brief is None or not brief else value.brief
        if isinstance(value, Estimate):
            if math.isnan(value.value):
                return EMPTY
            shown = self.text(value.value)
            return f"{shown} ({self.text((value.low, value.high))})" if self.intervals and not brief else shown
        if isinstance(value, tuple):
            low, high = value
            return interval_text(low, high, self.show)
        return EMPTY if value is None or (isinstance(value, float) and not math.isfinite(value)) else self.show(value)


@dataclass(frozen=True)
class Row:
    """A row of a table; ``mark`` follows it in text."""

    name: str
    values: tuple[Any, ...]
    group: int | None = None
    note: str = ""
    mark: str = ""

    @property
    def head(self) -> str:
        """The name as one line."""
        return one_line(self.name)


@dataclass(frozen=True)
class Table:
    """A table with its caption, and a sentence below it that text has, too."""

    key: str
    title: str
    caption: str
    head: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    foot: str = ""
    name_width: int = 24

    @property
    def words(self) -> str:
        """Caption and foot."""
        return f"{self.caption} {self.foot}".strip()

    @property
    def heads(self) -> list[str]:
        """Heads of all columns."""
        return [self.head, *(column.name for column in self.columns)]

    def texts(self, row: Row) -> list[str]:
        """Return the cells of a row as they are shown."""
        return [column.text(value) for column, value in zip(self.columns, row.values, strict=True)]

    def brief(self, row: Row | None = None) -> list[tuple[str, int]]:
        """Return the cells of a row, or the heads, that text and notebooks have, with their widths."""
        if row is None:
            return [(column.short or column.name, column.width) for column in self.columns if column.width]
        cells = zip(self.columns, row.values, strict=True)
        return [(column.text(value, brief=True), column.width) for column, value in cells if column.width]

    def largest(self, most: int, sizes: Sequence[float]) -> list[Row]:
        """Return the rows that are shown first of more than twice as many: those of everyone and of large groups."""
        order: Sequence[int] = range(len(self.rows))
        if len(order) > 2 * most:
            every = [
                math.inf if row.name == EVERYONE else 0.0 if row.group is None else sizes[row.group]
                for row in self.rows
            ]
            order = sorted(sorted(order, key=lambda index: -every[index])[:most])
        return [self.rows[index] for index in order]

    @property
    def sheet(self) -> list[list[Any]]:
        """Rows for a spreadsheet, the heads first."""
        return [self.heads, *([row.head, *map(_raw, row.values)] for row in self.rows)]

    def lines(self, sizes: Sequence[float] = ()) -> Iterator[str]:
        """Yield the table as lines of at most 80 characters, given the groups' sizes; none where it is not for text."""
        if not any(column.width for column in self.columns):
            return
        yield from wrap(self.title)
        yield self._line(self.head, self.brief())
        for row in (shown := self.largest(_MOST_ROWS, sizes)):
            yield self._line(row.name, self.brief(row)) + row.mark
        if len(self.rows) > len(shown):
            yield f"... and {len(self.rows) - len(shown)} more"
        yield from wrap(self.foot)

    def _line(self, name: str, cells: Sequence[tuple[str, int]]) -> str:
        names = (row.name for row in self.rows)
        first = f"{shorten(name, self.name_width - 1, names):<{self.name_width}}"
        return first + "".join(f" {text:>{width - 1}}" for text, width in cells)


def _raw(value: Any) -> Any:
    """Return a value as a spreadsheet receives it."""
    if isinstance(value, Cell):
        return value.raw
    if isinstance(value, tuple):
        return f"{value[0]} to {value[1]}"
    number = value.value if isinstance(value, Estimate) else value
    return "" if number is None or (isinstance(number, float) and not math.isfinite(number)) else number


def sheet_of(rows: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Return rows of a data frame for a spreadsheet, the heads first."""
    known = list(rows)
    texts = ([one_line(value) if isinstance(value, str) else _raw(value) for value in row.values()] for row in known)
    return [list(known[0]), *texts]


# Numbers and names as cells.

EVERYONE = "Everyone"


def two_digits(value: float) -> str:
    """Format a ratio or an area."""
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def p_value_text(value: float) -> str:
    """Format a p-value."""
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def signed_points(share: float) -> str:
    """Format a difference of shares in percentage points."""
    return f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}")


def _limits(estimate: Any) -> tuple[float, float] | None:
    return None if estimate is None or math.isnan(estimate.value) else (estimate.low, estimate.high)


def group_cell(audit: AuditData, name: str, width: int = 40) -> Cell:
    """Return the cell of a group's name."""
    return Cell(shorten(name, width, audit.names), one_line(name))


def interval_head(audit: AuditData) -> str:
    """Return the head of a column of intervals."""
    return f"{audit.settings.confidence:.0%} interval"


def largest_groups(audit: AuditData) -> list[int]:
    """Return the indices of the largest groups, at most as many as have a colour of their own, in order."""
    return sorted(sorted(range(len(audit.groups)), key=lambda index: -audit.groups[index].rows)[:_MOST_COLUMNS])


def pair_distances(audit: AuditData) -> Floats:
    """Return the distances between every two groups as shares: of scores, or of ranks where they have no bounds."""
    return audit.distances if audit.rank_distances is None else audit.rank_distances


def farthest_pairs(audit: AuditData) -> list[tuple[int, int, float]]:
    """Return the pairs of compared groups with the largest distances."""
    groups = np.array(compared_groups(audit))
    one, other = groups[np.array(np.triu_indices(groups.size, 1))]
    distances = pair_distances(audit)[one, other]
    order = np.argsort(-distances, kind="stable")[: min(_MOST_PAIRS, np.count_nonzero(~np.isnan(distances)))]
    return [(int(one[k]), int(other[k]), float(distances[k])) for k in order]


_FAVOURABLE = {"high": "High scores are favourable.", "low": "Low scores are favourable."}

# The list of tables.

#: Name of each metric, and its description.
METRIC_NAMES = {
    "error_rate": ("Wrong decisions", "Share of people on the wrong side of the first threshold."),
    "wasserstein_disparity": ("To the target, mean", "Mean distance from a group's scores to the target."),
    "strong_demographic_disparity": ("To everyone, mean", "Mean distance from a group's scores to everyone's."),
    "strong_pairwise_disparity": (
        "Between pairs, mean",
        "Mean distance between the scores of two groups, over all pairs.",
    ),
    "rank_disparity": (
        "Rank disparity, mean",
        "Mean over pairs of the difference between two groups' selection rates, over all shares of people selected.",
    ),
    "kolmogorov_smirnov_disparity": (
        "Largest difference",
        "Between two groups' shares above any threshold (Kolmogorov-Smirnov).",
    ),
}

#: Name of each rate, its short name, and its description.
RATE_NAMES = {
    "true_positive_rate": ("True positive rate", "TPR", "of the positive rows, the share above the threshold"),
    "false_positive_rate": ("False positive rate", "FPR", "of the negative rows, the share above the threshold"),
    "false_negative_rate": ("False negative rate", "FNR", "of the positive rows, the share at or below it"),
    "positive_predictive_value": (
        "Predictive value",
        "PPV",
        "of those above the threshold, the share that is positive",
    ),
    "negative_predictive_value": (
        "Negative predictive value",
        "NPV",
        "of those at or below it, the share that is negative",
    ),
    "accuracy": ("Accuracy", "acc", "share on the right side of the threshold"),
}

_ERROR_NAMES = {"rmse": "RMSE", "mae": "MAE", "r2": "R²", "mean_residual": "Mean residual"}


def audit_tables(audit: AuditData) -> list[Table]:
    """Return the tables for readers without sliders, in text and Markdown."""
    return [
        *figure_tables(audit),
        *_with_feet(audit, _rate_tables(audit)),
        *error_tables(audit)[1:],  # the first is what the rates show
        *calibration_tables(audit),
    ]


def figure_tables(audit: AuditData) -> list[Table]:
    """Return strata, metrics, groups, thresholds, rates and farthest pairs, and errors of real-valued predictions."""
    tables = [] if audit.within is None else _stratum_tables(audit, audit.within)
    tables += [_metric_table(audit), _group_table(audit), _threshold_table(audit)]
    if audit.regression is not None:
        tables += _residual_tables(audit, audit.regression)
    if comparisons := _comparison_table(audit):
        tables.append(comparisons)
    return _with_feet(audit, [*tables, _pair_table(audit)] if len(audit.groups) > 2 else tables)


def error_tables(audit: AuditData) -> list[Table]:
    """Return the differences from the reference group, and the largest differences between groups."""
    return _with_feet(audit, [_reference_table(audit), _gap_table(audit)]) if audit.error_rates else []


def calibration_tables(audit: AuditData) -> list[Table]:
    """Return the calibration of each group, and the areas under ROC curves between groups; none without labels."""
    if audit.calibration is None or audit.cross_auc is None:
        return []
    tables = [_calibration_table(audit, audit.calibration)]
    if len(audit.groups) <= _MOST_COLUMNS:
        tables.append(_cross_table(audit, audit.cross_auc))
    return _with_feet(audit, tables)


def _with_feet(audit: AuditData, tables: Iterable[Table]) -> list[Table]:
    """Return tables that say why figures of some of their groups are withheld."""
    return [
        replace(table, foot=_with_withheld(table.foot))
        if any(row.group is not None and audit.groups[row.group].withheld for row in table.rows)
        else table
        for table in tables
    ]


def _with_withheld(foot: str) -> str:
    """Return a foot that says why figures are withheld, with one meaning for each mark."""
    if f"{_NO_ROWS}." in foot:
        return foot.replace(f"{_NO_ROWS}.", f"{_NO_ROWS}, or{WITHHELD.removeprefix(f'{EMPTY}:')}")
    return f"{foot} {WITHHELD}".strip()


def _stratum_tables(audit: AuditData, within: WithinStrata) -> list[Table]:
    rows, pairs = [], audit.settings.pairs_metric
    for stratum in within.strata:
        mean, floor = (
            None if pairs not in figures else figures[pairs] / n_distances(pairs, stratum.n_compared)
            for figures in (stratum.metrics, stratum.floors)
        )
        values = (stratum.rows, stratum.n_groups, stratum.n_judged, mean, floor, stratum.p_values.get(pairs))
        note = "" if stratum.metrics else "set aside: fewer than two groups, or not the target"
        rows.append(Row(stratum.name, values, note=note))
    part, parts = ("stratum", "strata") if audit.settings.strata else ("outcome", "outcomes")
    number = sum(stratum.weight > 0 for stratum in within.strata)
    mean_over = f", mean over {number} {parts}" if number > 1 else ""
    return [
        Table(
            key="strata",
            title=among_whom(audit),
            caption=f"Mean distance between two groups, over all pairs, among the rows of each {part}.",
            head=part.capitalize(),
            columns=(
                Column("Rows", "{:,}".format, 11),
                Column("Groups", width=8, wide=True),
                Column("Judged", width=8, wide=True),
                Column("Between pairs", three_digits, 8, "Pairs"),
                Column("By chance", three_digits, 11),
                Column("p", p_value_text, 9),
            ),
            rows=tuple(rows),
        ),
        Table(
            key="within-strata",
            title=f"The metrics for {audit.settings.criterion_text}{mean_over}",
            caption="The same metrics, averaged over these rows by weight, and groups permuted within them. Outcomes "
            "count the same, strata by their share of the rows.",
            **_metrics(audit, within.mean_readings),
        ),
    ]


def _metric_table(audit: AuditData) -> Table:
    meaning = (
        "A distance is the difference between two groups' shares above a threshold, averaged over all thresholds. "
        if audit.settings.bounded
        else f"Distances are in units of the {scores_word(audit, plural=False)}; that between ranks is the difference "
        "between two groups' shares among those selected, averaged over all shares of people selected. "
    )
    foot, judged = "", sum(group.judged for group in audit.groups)
    if 2 <= judged < len(audit.groups) and audit.metrics_all_groups:
        to_target, to_everyone, pairs = (
            distance_text(audit, value / n_distances(name, len(audit.groups)))
            for name, value in audit.metrics_all_groups.items()
        )
        foot = (
            f"Means over all {len(audit.groups)} groups, with those that are not judged: to the target {to_target}, "
            f"to everyone {to_everyone}, between pairs {pairs}."
        )
    return Table(
        key="figures",
        title="The metrics" if audit.within is None else "The metrics among all people (demographic parity)",
        caption=f"{meaning}“Corrected” is the value without the upward bias of small groups, “by chance” the value "
        "with groups assigned at random, p the share of random assignments that reach the value. “Within” is a bound "
        "that holds for any distribution.",
        foot=foot,
        **_metrics(audit, audit.mean_readings),
    )


def _metrics(audit: AuditData, readings: Mapping[str, Reading]) -> dict[str, Any]:
    rows = []
    for metric, reading in readings.items():
        name, description = METRIC_NAMES[metric]
        column = Column("", percent if metric == "error_rate" else partial(distance_text, audit, metric=metric))
        corrected = None if reading.floor is None else reading.corrected
        figures = (reading.value, _limits(reading), corrected, reading.floor)
        margin = None if not math.isfinite(reading.margin) else Cell(f"± {column.show(reading.margin)}", reading.margin)
        values = (Cell(column.text(value), _raw(value)) for value in figures)
        rows.append(Row(name, (*values, reading.p_value, margin), note=description))
    columns = (
        Column("Value", width=9),
        Column(interval_head(audit), width=18),
        Column("Corrected", width=11, wide=True),
        Column("By chance", width=11, wide=True),
        Column("p", p_value_text, 8),
        Column("Within", wide=True),
    )
    return {"head": "Metric", "columns": columns, "rows": tuple(rows), "name_width": 23}


def _group_table(audit: AuditData) -> Table:
    first, word = audit.thresholds[0], scores_word(audit)
    above = f"> {cut_text(audit, first.threshold)}" if first.top_share is None else threshold_heading(audit, first)
    labelled = any(group.error is not None for group in audit.groups)
    levels = [
        Column("Median", score_text, 9) if level == 0.5 else Column(f"{level:.0%} below", score_text, wide=True)
        for level in QUANTILE_LEVELS
    ]
    columns = [
        Column("Rows", "{:,}".format, 11),
        Column("Mean", score_text, 9),
        *levels,
        Column("From everyone", partial(distance_text, audit), wide=True),
        Column(threshold_heading(audit, first).capitalize(), percent, 10, above, wide=True),
    ]
    if labelled:
        columns += [Column("Wrong", percent, 8, wide=True), Column("AUC", two_digits, 6)]
    rows = []
    for index, (group, rate) in enumerate(zip(audit.groups, first.rates, strict=True)):
        values = (group.rows, group.mean, *group.quantiles, group.distance_to_everyone, rate)
        errors = (group.error, group.auc) if labelled else ()
        note, mark = ("", "") if group.judged else ("too few rows to judge", " ?")
        rows.append(Row(group.name, (*values, *errors), index, note, mark))
    labels = (
        f" “Wrong” is the share on the wrong side of {cut_text(audit, first.threshold)}, AUC the area under the ROC "
        "curve."
    )
    return Table(
        key="groups",
        title="The groups",
        caption=f"{word.capitalize()} by group: mean, quantiles, the distance from everyone's {word}, and the share "
        f"{threshold_heading(audit, first)}.{labels if labelled else ''}",
        head="Group",
        columns=tuple(columns),
        rows=tuple(rows),
        foot="" if all(group.judged for group in audit.groups) else "?: too few rows to judge.",
    )


def _threshold_table(audit: AuditData) -> Table:
    high_is_favourable = audit.settings.favourable == "high"
    rows = []
    for at in audit.thresholds:
        extremes = (
            None
            if math.isnan(at.rates[index].value)
            else Cell(f"{percent(at.rates[index].value)} of {shorten(name, 40, audit.names)}", one_line(name))
            for index, name in ((index, audit.groups[index].name) for index in (at.lowest, at.highest))
        )
        ratio = at.ratio if at.four_fifths is not None else None
        fifths = Cell(four_fifths_text(at).capitalize(), four_fifths_text(at))
        note = "" if at.top_share is None else threshold_heading(audit, at)
        rows.append(
            Row(cut_text(audit, at.threshold), (at.overall, *extremes, ratio, _limits(ratio), fifths), note=note)
        )
    return Table(
        key="thresholds",
        title="At the thresholds of the audit",
        caption=f"{_FAVOURABLE[audit.settings.favourable]} Lowest and highest share "
        + ("selected" if high_is_favourable else "flagged")
        + " among the groups with enough rows; the ratio is that of the shares "
        + ("selected." if high_is_favourable else "not flagged."),
        head="Threshold",
        columns=(
            Column("Selected" if high_is_favourable else "Flagged", percent, wide=True),
            Column("Lowest"),
            Column("Highest"),
            Column("Ratio", two_digits),
            Column(interval_head(audit), two_digits, wide=True),
            Column("Four fifths"),
        ),
        rows=tuple(rows),
    )


def _residual_tables(audit: AuditData, errors: RegressionErrors) -> list[Table]:
    """Return the errors by group, and the mean residuals by decile of the prediction."""
    rows = []
    with_interval = Column("", score_text, intervals=True)
    for index, group in enumerate(errors.groups):
        cells = []
        for name in _ERROR_NAMES:
            estimate, p_value = group.figures[name], group.p_values[name]
            mark = " *" if p_value is not None and p_value <= 1 - audit.settings.confidence else ""
            whole, value = (with_interval.text(estimate, brief=brief) for brief in (False, True))
            cells.append(Cell(whole.replace(value, value + mark, 1), _raw(estimate), value + mark))
        rows.append(Row(group.name, tuple(cells), index, mark="" if audit.groups[index].judged else " ?"))
    marked = any(" *" in cell.shown for row in rows for cell in row.values)
    found = "*: different from that of" if marked else "No error of a group differs from that of"
    rows.append(Row(EVERYONE, tuple(errors.overall[name] for name in _ERROR_NAMES)))
    shown = largest_groups(audit)
    names = [EVERYONE, *(audit.groups[index].name for index in shown)]
    return [
        Table(
            key="residuals",
            title="Errors of the predictions",
            caption="Root mean squared error, mean absolute error, coefficient of determination, and mean residual: "
            f"label minus prediction, positive where predictions are too low. With {interval_head(audit)}s.",
            head="Group",
            columns=tuple(
                Column(name, score_text, 14, wide=name == "MAE", intervals=True) for name in _ERROR_NAMES.values()
            ),
            rows=tuple(rows),
            name_width=22,
            foot=f"{found} {shorten(errors.reference, 40, audit.names)} beyond chance, with p-values adjusted "
            "for the number of groups (Holm).",
        ),
        Table(
            key="residual-deciles",
            title="Mean residuals by prediction",
            caption="Tenths of all predictions. Where predictions mean the same in all groups, mean residuals agree.",
            head="Prediction",
            columns=tuple(Column(name, score_text, intervals=True) for name in names),
            rows=tuple(
                Row(
                    f"{number_text(decile.low)} to {number_text(decile.high)}",
                    (decile.overall, *(decile.groups[index] for index in shown)),
                )
                for decile in errors.deciles
            ),
        ),
    ]


def _comparison_table(audit: AuditData) -> Table | None:
    """Return the three readings of the selection rates side by side."""
    rows = []
    for row in compare_rates(audit):
        difference = row.difference
        points = f"{_points(difference.value)} ({_points(difference.low)} to {_points(difference.high)})"
        statistically, practically = (
            Cell("significant" if each else "not significant", each) for each in (row.significant, row.material)
        )
        fifths = Cell("met" if row.four_fifths else "not met", row.four_fifths)
        values = (row.threshold, row.rate, row.ratio, fifths, Cell(points, difference.value), row.p_value)
        rows.append(Row(row.group, (*values, statistically, practically)))
    if not rows:
        return None
    outcome = "selected" if audit.settings.favourable == "high" else "not flagged"
    return Table(
        key="rates",
        title="Three readings of the same rates",
        caption=f"Each group's rate of being {outcome}, compared with the group that is {outcome} most often. The "
        "four-fifths rule looks at the ratio alone; statistical significance asks whether chance could explain the "
        "difference, in percentage points, with p-values adjusted for the number of groups (Holm); practically "
        f"significant is a difference of {100 * audit.settings.materiality:g} points or more. None of the three says "
        "whether a difference is lawful.",
        head="Group",
        columns=(
            Column("Above", partial(cut_text, audit), wide=True),
            Column("Rate", percent),
            Column("Ratio", two_digits),
            Column("Four fifths"),
            Column("Difference"),
            Column("p", p_value_text, wide=True),
            Column("Statistically"),
            Column("Practically"),
        ),
        rows=tuple(rows),
    )


def _pair_table(audit: Any) -> Table:
    """Return the farthest pairs of an `Audit`."""
    rows, bounded = [], audit.settings.bounded
    for one, other, distance in farthest_pairs(audit):
        pair = audit.pair(audit.histograms.groups.labels[one], audit.histograms.groups.labels[other])
        between = " to ".join(map(score_text, pair.most_between))
        values = (group_cell(audit, pair.higher, 60), distance, *(() if bounded else (pair.score_distance,)), between)
        rows.append(Row(pair.lower, values, one if audit.groups[one].name == pair.lower else other))
    distances = [Column("Distance" if bounded else "Between ranks", three_digits)]
    if not bounded:
        distances.append(Column(f"Between {scores_word(audit)}", score_text))
    return Table(
        key="pairs",
        title="Farthest apart",
        caption=f"{len(rows)} of {comb(len(compared_groups(audit)), 2):,} pairs of groups. The group with the lower "
        "scores comes first. Half of the distance lies between the scores named last.",
        head="Lower",
        columns=(Column("Higher"), *distances, Column("Half of it between", wide=True)),
        rows=tuple(rows),
    )


# Errors and calibration, with labels of classes.


def _rate_tables(audit: AuditData) -> list[Table]:
    """Return the error rates by group at each threshold, of which text has the first."""
    tables = []
    for number, (at, threshold) in enumerate(zip(audit.error_rates, audit.thresholds, strict=False)):
        columns = tuple(
            Column(name, percent, 0 if number else 8, short, intervals=True) for name, short, _ in RATE_NAMES.values()
        )
        rows = []
        for index, rates in enumerate(at.groups):
            cells = []
            for rate, column in zip(RATE_NAMES, columns, strict=True):
                estimate, gap = rates.rates[rate], at.gaps[rate]
                few = "" if estimate is None or (gap is not None and gap.judges(index)) else "?"
                cells.append(Cell(column.text(estimate) + few, _raw(estimate), column.text(estimate, brief=True) + few))
            rows.append(Row(rates.name, tuple(cells), index))
        marked = any(cell.shown.endswith("?") for row in rows for cell in row.values)
        empty = f"{_NO_ROWS}." if at.undefined else ""
        rows.append(Row(EVERYONE, tuple(at.overall[rate] for rate in RATE_NAMES)))
        table = Table(
            key=f"errors-{number}",
            title=f"Error rates, {threshold_heading(audit, threshold)}",
            caption=f"With {interval_head(audit)}s.",
            head="Group",
            columns=columns,
            rows=tuple(rows),
            foot=f"{'?: too few rows to judge the rate.' * marked} {empty}".strip(),
        )
        tables.append(table)
    return tables


def _reference_table(audit: AuditData) -> Table:
    first = audit.error_rates[0]
    shown = ("true_positive_rate", "false_positive_rate", "positive_predictive_value")
    rows = []
    for index, group in enumerate(first.groups):
        estimates = [group.differences[rate] for rate in shown]
        note = "the reference" if group.name == first.reference else ""
        rows.append(Row(group.name, tuple(each for one in estimates for each in (one, _limits(one))), index, note))
    reference = shorten(first.reference, 40, audit.names)
    columns = [
        Column(name, signed_points, wide=name == interval_head(audit))
        for rate in shown
        for name in (RATE_NAMES[rate][0], interval_head(audit))
    ]
    return Table(
        key="errors-reference",
        title=f"Errors above {cut_text(audit, first.threshold)} compared with {reference}",
        caption=f"Each group's rate minus that of {reference}, in percentage points. The CSV file has all rates, their "
        "differences and their ratios at all thresholds of the audit.",
        head="Group",
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _gap_table(audit: AuditData) -> Table:
    first = audit.error_rates[0]
    rows = []
    for rate, (name, _, description) in RATE_NAMES.items():
        gap = first.gaps[rate]
        ends = (
            (None, None)
            if gap is None
            else (group_cell(audit, audit.groups[at].name) for at in (gap.lowest, gap.highest))
        )
        values, few = _gap_values(None if gap is None else gap.difference), gap is not None and not gap.judged
        note = f"{description}{'; too few rows to judge' * few}"
        rows.append(Row(name, (*values, *ends), note=note, mark=" ?" * few))
    rows += [Row(name, (*_gap_values(estimate), None, None), note=note) for name, estimate, note in _odds(audit)]
    return Table(
        key="errors-largest",
        title="Largest differences of errors",
        caption="The largest difference between two groups, among those with enough rows for the rate (among all, "
        "where fewer than two have enough), in percentage "
        f"points above {cut_text(audit, first.threshold)} unless said otherwise. “Corrected” is the value without the "
        "upward bias of the largest of several differences, which the interval takes into account as well.",
        head="Rate",
        columns=(
            Column("Difference", _points, 11, "Points"),
            Column(interval_head(audit), _points, 18),
            Column("Corrected", _points, 11, wide=True),
            Column("Lowest", wide=True),
            Column("Highest", wide=True),
        ),
        rows=tuple(rows),
        foot=" ".join(
            ["?: too few rows to judge."] * any(row.mark for row in rows)
            + [CRITERIA_CONFLICT] * (audit.settings.criterion == "demographic_parity")
        ),
        name_width=34,
    )


def _gap_values(estimate: CorrectedEstimate | Reading | None) -> tuple[Any, ...]:
    return (None,) * 3 if estimate is None else (estimate.value, _limits(estimate), estimate.corrected)


def _odds(audit: AuditData) -> Iterator[tuple[str, CorrectedEstimate | Reading | None, str]]:
    first, separation = audit.error_rates[0], audit.separation
    yield "Equalized odds", first.equalized_odds, "the larger one of true and false positive rates"
    rate = "true" if audit.settings.favourable == "high" else "false"
    yield "Equal opportunity", first.equal_opportunity, f"that of {rate} positive rates"
    if separation is None:
        return
    if separation.equalized_odds is not None:
        at = f"{separation.equalized_odds.threshold:.3g}"
        yield f"Equalized odds, worst at {at}", separation.equalized_odds.maximum, "of all thresholds"
        yield "Equalized odds, mean", separation.equalized_odds.mean, "over all thresholds"
    if separation.disparity is not None:
        note = "distance between two groups' scores with the same outcome, mean over pairs and both outcomes"
        yield "Separation", separation.disparity, note
    for part, rows in ((separation.positives, "positive"), (separation.negatives, "negative")):
        if part is not None:
            name = f"Separation of {rows} rows"
            yield name, part.disparity, "distance between two groups' scores, mean over all pairs"


def _calibration_table(audit: AuditData, calibration: Calibration) -> Table:
    rows = []
    for index, one in enumerate((*calibration.groups, calibration.overall)):
        group = audit.groups[index] if index < len(audit.groups) else None
        error, area = one.expected_error, audit.auc if group is None else group.auc
        values = (one.positive_rate, error, _limits(error), one.intercept, one.slope, area)
        mark = "" if index in calibration.compared else " ?"
        rows.append(Row(EVERYONE, values) if group is None else Row(one.name, values, index, mark=mark))
    largest, worst = calibration.largest_error, calibration.worst
    in_text, foot = calibration.probabilities, ""
    if largest is not None and worst is not None:
        limits = Column("", three_digits, intervals=True).text(largest)
        foot = f"The largest error is that of {shorten(audit.groups[worst].name, 40, audit.names)}: {limits}."
    if largest is not None and any(row.mark for row in rows):
        foot += f" ?: too few rows for {calibration.n_bins} bins, so not compared."
    return Table(
        key="calibration",
        title="Calibration",
        caption="The expected calibration error (ECE) is the mean distance between scores and shares of positive rows "
        f"in {calibration.n_bins} bins. It is above 0 even by chance, for which its interval is corrected. An "
        "intercept above 0 means scores that are too low, a slope below 1 scores that are too extreme. AUC is the area "
        "under the ROC curve."
        if calibration.probabilities
        else "Scores outside [0, 1] are not probabilities, so that there is no calibration error.",
        head="Group",
        columns=(
            Column("Positive", percent, 10 * in_text),
            Column("Calibration error", three_digits, 8 * in_text, "ECE"),
            Column(interval_head(audit), three_digits, 18 * in_text, wide=True),
            Column("Intercept", two_digits, 11 * in_text, wide=True, intervals=True),
            Column("Slope", two_digits, 7 * in_text, wide=True, intervals=True),
            Column("AUC", two_digits),
        ),
        rows=tuple(rows),
        foot=foot,
    )


def _cross_table(audit: AuditData, crossed: CrossAuc) -> Table:
    return Table(
        key="cross-auc",
        title="Ranking between groups",
        caption="The probability that a positive row of the group on the left scores above a negative row of the group "
        "on top (cross-group area under the ROC curve, xAUC). Where a figure and its mirror image differ, errors of "
        "ranking fall on one group more than on the other.",
        head="Positive rows of",
        columns=tuple(
            Column(shorten(audit.groups[index].name, 18, audit.names), two_digits) for index in crossed.groups
        ),
        rows=tuple(
            Row(audit.groups[index].name, areas, index)
            for index, areas in zip(crossed.groups, crossed.areas, strict=True)
        ),
    )


# How an audit was measured.


def method_notes(audit: AuditData) -> list[tuple[str, str]]:
    """Return notes on range, target, resolution, intervals, chance and small groups."""
    settings = audit.settings
    low, high = settings.range
    score_range = f"{low:g} to {high:g}; distances are shares of it"
    if not settings.bounded:
        score_range = (
            f"{number_text(low)} to {number_text(high)}, as observed; groups are compared by ranks, and distances "
            "between scores are in units of the score"
        )
    intervals = (
        f"{settings.confidence:.0%}; for disparities from {settings.n_bootstrap:,} bootstrap replicates, corrected for "
        "the upward bias of small groups; for shares by Wilson's method; for ratios by Donner and Zou's; for areas "
        "under the ROC curve by DeLong's"
    )
    least = settings.small_groups.min_size
    samples = "permutations of the groups" if settings.null == "permuted" else "draws of each group's noise"
    return [
        ("Range of scores", f"{score_range}; {_FAVOURABLE[settings.favourable].lower().rstrip('.')}"),
        ("Target", one_line(settings.target)),
        ("Resolution", _resolution(audit)),
        ("Intervals", intervals),
        ("Chance", f"values and p from {settings.n_permutations:,} random {samples}, on {settings.n_nodes} nodes"),
        (
            "Few rows",
            f"Groups with fewer than {least} effective rows are not judged, with fewer than {MIN_SHOWN_ROWS} not shown",
        ),
    ]


def _resolution(audit: AuditData) -> str:
    settings = audit.settings
    if settings.exact:
        return "The numbers in the tables are exact: they were computed from the rows"
    if not settings.bounded:
        error = score_text(audit.mean_readings["strong_pairwise_disparity"].resolution)
        return f"Scores were counted in {settings.n_bins:,} bins; the mean distance is exact to {error}"
    return (
        f"Scores were counted in {settings.n_bins:,} bins; each distance is exact to {1 / settings.n_bins:.1g}, shares "
        "are exact for thresholds on the edges of bins"
    )
