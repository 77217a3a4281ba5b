"""Tables of an audit, each cell as a reader sees it and as a spreadsheet receives it, and notes on the method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import number_text, one_line, percent, score_text, shorten, three_digits
from fairtransport.auditing.errors.regression import REGRESSION_FIGURES
from fairtransport.auditing.records import (
    QUANTILE_LEVELS,
    compare_rates,
    cut_text,
    distance_text,
    four_fifths_text,
    n_distances,
    scores_word,
    threshold_heading,
)
from fairtransport.auditing.verdict import among_whom
from fairtransport.histograms import display_range
from fairtransport.report.style.figures import MOST_NAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing import Audit, Estimate, Reading
    from fairtransport.report._what_if import WhatIf

# Tables of a page: each cell as a reader sees it and as a spreadsheet receives it.

METRIC_NAMES = {
    "error_rate": ("Wrong decisions", "Share of people on the wrong side of the first threshold."),
    "wasserstein_disparity": ("To the target", "Mean distance from a group's scores to the target."),
    "strong_demographic_disparity": ("To everyone", "Mean distance from a group's scores to everyone's."),
    "strong_pairwise_disparity": ("Between pairs", "Mean distance between the scores of two groups, over all pairs."),
    "rank_disparity": (
        "Rank disparity",
        "Mean over pairs of the difference between two groups' selection rates, over all shares of people selected.",
    ),
    "kolmogorov_smirnov_disparity": (
        "Largest difference",
        "Between two groups' shares above any threshold (Kolmogorov-Smirnov).",
    ),
}
"""Name of each metric in a few words, and its description."""


@dataclass(frozen=True)
class Cell:
    """A value: as it is shown, and as a spreadsheet receives it."""

    shown: str
    raw: Any


EMPTY_CELL = Cell("\N{EN DASH}", "")


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    name: str
    cells: tuple[Cell, ...]
    group: int | None = None
    note: str = ""

    @property
    def head(self) -> str:
        """The name as one line."""
        return one_line(self.name)

    @property
    def texts(self) -> Iterator[str]:
        """The cells as they are shown."""
        return (cell.shown for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """A table with its caption."""

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    wide: tuple[int, ...] = ()

    @property
    def sheet(self) -> list[list[Any]]:
        """Rows for a spreadsheet, the heads first."""
        return [list(self.columns), *([row.head, *(cell.raw for cell in row.cells)] for row in self.rows)]


def interval_cell(low: float, high: float, show: Callable[[float], str]) -> Cell:
    """Return the cell of an interval."""
    upper = show(high) if np.isfinite(high) else "∞"
    return Cell(f"{show(low)} to {upper}", f"{low} to {high}")


def number_cell(value: float | None, show: Callable[[float], str]) -> Cell:
    """Return the cell of a number; an empty one if it is None or not finite."""
    return EMPTY_CELL if value is None or not np.isfinite(value) else Cell(show(value), value)


def estimate_cell(estimate: Estimate | None, show: Callable[[float], str]) -> Cell:
    """Return the cell of the value of an estimate; an empty one if there is none."""
    return EMPTY_CELL if estimate is None else number_cell(estimate.value, show)


def with_interval(estimate: Estimate | None, show: Callable[[float], str], mark: str = "") -> Cell:
    """Return the cell of an estimate and its interval; an empty one if there is none."""
    if estimate is None:
        return EMPTY_CELL
    value, low, high = map(show, (estimate.value, estimate.low, estimate.high))
    return Cell(f"{value}{mark} ({low} to {high})", estimate.value)


def two_digits(value: float) -> str:
    """Format a ratio or an area."""
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def group_cell(name: str, width: int = 40) -> Cell:
    """Return the cell of a group's name."""
    return Cell(shorten(name, width), one_line(name))


def interval_head(audit: Audit) -> str:
    """Return the head of a column of intervals."""
    return f"{audit.settings.confidence:.0%} interval"


def largest_groups(audit: Audit) -> list[int]:
    """Return the indices of the largest groups, at most as many as have a colour of their own, in order."""
    return sorted(sorted(range(len(audit.groups)), key=lambda index: -audit.groups[index].rows)[:MOST_NAMED])


def judged_groups(audit: Audit) -> list[int]:
    """Return the indices of the groups that the disparities refer to: those that are judged, or all."""
    judged = [index for index, group in enumerate(audit.groups) if group.judged]
    return judged if len(judged) >= 2 else list(range(len(audit.groups)))


# Errors of real-valued predictions, as tables of the page of an audit.

_TITLES = {"rmse": "RMSE", "mae": "MAE", "r2": "R²", "mean_residual": "Mean residual"}


def _residual_tables(audit: Audit) -> list[Table]:
    """Return the errors by group, and the mean residuals by decile of the prediction; none without such labels."""
    errors = audit.regression
    if errors is None:
        return []
    rows = []
    for index, group in enumerate(errors.groups):
        p_values = [group.p_values[name] for name in REGRESSION_FIGURES]
        marks = [" *" if p is not None and p <= 1 - audit.settings.confidence else "" for p in p_values]
        figures = zip(REGRESSION_FIGURES, marks, strict=True)
        rows.append(
            Row(group.name, tuple(with_interval(group.figures[f], score_text, mark) for f, mark in figures), index)
        )
    rows.append(Row("Everyone", tuple(with_interval(errors.overall[name], score_text) for name in REGRESSION_FIGURES)))
    shown = largest_groups(audit)
    deciles = [
        Row(
            f"{number_text(decile.low)} to {number_text(decile.high)}",
            tuple(with_interval(one, score_text) for one in (decile.overall, *(decile.groups[i] for i in shown))),
        )
        for decile in errors.deciles
    ]
    return [
        Table(
            key="residuals",
            title="Errors of the predictions",
            caption="Root mean squared error, mean absolute error, coefficient of determination, and mean residual: "
            "label minus prediction, positive where predictions are too low. With "
            f"{audit.settings.confidence:.0%} intervals; * marks a difference from {errors.reference} beyond chance, "
            "with p-values adjusted for the number of groups (Holm).",
            columns=("Group", *_TITLES.values()),
            rows=tuple(rows),
            wide=(2,),
        ),
        Table(
            key="residual-deciles",
            title="Mean residuals by prediction",
            caption="Tenths of all predictions. Where predictions mean the same in all groups, mean residuals agree.",
            columns=("Prediction", "Everyone", *(audit.groups[index].name for index in shown)),
            rows=tuple(deciles),
        ),
    ]


_MAX_PAIRS = 15


def collect_tables(audit: Audit) -> list[Table]:
    """Return the tables of an audit: metrics, groups, thresholds, their rates, farthest pairs, and strata."""
    meaning = (
        "A distance is the difference between two groups' shares above a threshold, averaged over all thresholds. "
        if audit.settings.bounded
        else f"Distances are in units of the {scores_word(audit, plural=False)}; that between ranks is the difference "
        "between two groups' shares among those selected, averaged over all shares of people selected. "
    )
    caption = (
        f"{meaning}“Corrected” is the value without the upward bias of small groups, “by chance” the value with groups "
        "assigned at random, p the share of random assignments that reach the value. “Within” is a bound that holds "
        "for any distribution."
    )
    tables = [
        _metric_table(audit, audit.mean_readings, key="figures", title="The metrics", caption=caption),
        _group_table(audit),
        _threshold_table(audit),
    ]
    tables += _residual_tables(audit)
    if (rates := _rate_table(audit)).rows:
        tables.append(rates)
    if len(audit.groups) > 2:
        tables.append(_pair_table(audit))
    if audit.within is not None:
        tables.append(_stratum_table(audit))
        caption = (
            "The same metrics, averaged over these rows by weight, and groups permuted within them. Outcomes count the "
            "same, strata by their share of the rows."
        )
        title = f"The metrics for {audit.settings.criterion_text}"
        tables.append(
            _metric_table(audit, audit.within.mean_readings, key="within-strata", title=title, caption=caption)
        )
    return tables


def collect_sheets(tables: Sequence[Table], audit: Audit | None = None) -> dict[str, list[list[Any]]]:
    """Return what can be saved as CSV, by key: every table, and the distances between all groups of an audit."""
    sheets = {table.key: table.sheet for table in tables}
    if audit is not None:
        names = [one_line(group.name) for group in audit.groups]
        rows = ([name, *row] for name, row in zip(names, audit.distances.tolist(), strict=True))
        sheets["distances"] = [["", *names], *rows]
    return sheets


def farthest_pairs(audit: Audit, most: int = _MAX_PAIRS) -> list[tuple[int, int, float]]:
    """Return the pairs of groups with the largest distances.

    Groups that are not judged are left out, unless fewer than two are.
    """
    judged = np.array(judged_groups(audit))
    rows, columns = np.triu_indices(judged.size, 1)
    rows, columns = judged[rows], judged[columns]
    distances = pair_distances(audit)[rows, columns]
    order = np.argsort(-distances, kind="stable")[:most]
    return [(int(rows[k]), int(columns[k]), float(distances[k])) for k in order]


def pair_distances(audit: Audit) -> NDArray[np.float64]:
    """Return the distances between every two groups as shares: of scores, or of ranks where they have no bounds."""
    return audit.distances if audit.rank_distances is None else audit.rank_distances


def _metric_table(audit: Audit, readings: Mapping[str, Reading], *, key: str, title: str, caption: str) -> Table:
    return Table(
        key=key,
        title=title,
        caption=caption,
        columns=("Metric", "Value", interval_head(audit), "Corrected", "By chance", "p", "Within"),
        rows=tuple(_metric_row(audit, name, reading) for name, reading in readings.items()),
        wide=(3, 4, 6),
    )


def _metric_row(audit: Audit, metric: str, reading: Reading) -> Row:
    name, description = METRIC_NAMES[metric]
    distance = partial(distance_text, audit, metric=metric)
    show = percent if metric == "error_rate" else distance
    return Row(
        name,
        (
            Cell(show(reading.value), reading.value),
            interval_cell(reading.low, reading.high, show),
            number_cell(None if reading.floor is None else reading.corrected, distance),
            number_cell(reading.floor, distance),
            number_cell(reading.p_value, _p_value_text),
            number_cell(reading.margin if np.isfinite(reading.margin) else None, lambda value: f"± {show(value)}"),
        ),
        note=description,
    )


def _group_table(audit: Audit) -> Table:
    labelled = any(group.error is not None for group in audit.groups)
    levels = ["Median" if level == 0.5 else f"{level:.0%} below" for level in QUANTILE_LEVELS]
    columns = ["Group", "Rows", "Mean", *levels, "From everyone"]
    if labelled:
        columns += ["Wrong", "AUC"]
    rows = []
    for index, group in enumerate(audit.groups):
        cells = [Cell(f"{group.rows:,}", group.rows), Cell(score_text(group.mean), group.mean)]
        cells += [Cell(score_text(value), value) for value in group.quantiles]
        cells.append(Cell(distance_text(audit, group.distance_to_everyone), group.distance_to_everyone))
        if labelled:
            cells += [estimate_cell(group.error, percent), estimate_cell(group.auc, two_digits)]
        rows.append(Row(group.name, tuple(cells), index, "" if group.judged else "too few rows to judge"))
    first, word = cut_text(audit, audit.thresholds[0].threshold), scores_word(audit)
    labels = (
        f" “Wrong” is the share on the wrong side of {first}, AUC the area under the ROC curve." if labelled else ""
    )
    return Table(
        key="groups",
        title="The groups",
        caption=f"{word.capitalize()} by group: mean, quantiles, and the distance from everyone's {word}.{labels}",
        columns=tuple(columns),
        rows=tuple(rows),
        wide=(3, 4, 6, 7, 8),
    )


def _threshold_table(audit: Audit) -> Table:
    high_is_favourable = audit.settings.favourable == "high"
    selected = "Selected" if high_is_favourable else "Flagged"
    rows = []
    for summary in audit.thresholds:
        extremes = [
            (summary.rates[index].value, audit.groups[index].name) for index in (summary.lowest, summary.highest)
        ]
        ratio, defined = summary.ratio, summary.four_fifths is not None
        cells = (
            Cell(percent(summary.overall), summary.overall),
            *(Cell(f"{percent(rate)} of {shorten(name, 40)}", one_line(name)) for rate, name in extremes),
            number_cell(ratio.value if defined else None, two_digits),
            interval_cell(ratio.low, ratio.high, two_digits) if defined else EMPTY_CELL,
            Cell(four_fifths_text(summary).capitalize(), four_fifths_text(summary)),
        )
        note = "" if summary.top_share is None else threshold_heading(audit, summary)
        rows.append(Row(cut_text(audit, summary.threshold), cells, note=note))
    return Table(
        key="thresholds",
        title="At the thresholds of the audit",
        caption="Lowest and highest share selected among the groups with enough rows, and their ratio."
        if high_is_favourable
        else "Lowest and highest share flagged among the groups with enough rows; the ratio is that of the shares not "
        "flagged.",
        columns=("Threshold", selected, "Lowest", "Highest", "Ratio", interval_head(audit), "Four fifths"),
        rows=tuple(rows),
        wide=(1, 5),
    )


def _rate_table(audit: Audit) -> Table:
    """Return the three readings of the selection rates side by side."""
    rows = []
    for comparison in compare_rates(audit):
        points = [100 * getattr(comparison.difference, name) for name in ("value", "low", "high")]
        cells = (
            Cell(cut_text(audit, comparison.threshold), comparison.threshold),
            Cell(percent(comparison.rate.value), comparison.rate.value),
            Cell(two_digits(comparison.ratio.value), comparison.ratio.value),
            Cell("met" if comparison.four_fifths else "not met", comparison.four_fifths),
            Cell(f"{points[0]:.1f} ({points[1]:.1f} to {points[2]:.1f})", comparison.difference.value),
            Cell("p < 0.001" if comparison.p_value < 0.001 else f"p = {comparison.p_value:.2g}", comparison.p_value),
            Cell("significant" if comparison.significant else "not significant", comparison.significant),
            Cell("significant" if comparison.material else "not significant", comparison.material),
        )
        rows.append(Row(comparison.group, cells))
    outcome = "selected" if audit.settings.favourable == "high" else "not flagged"
    return Table(
        key="rates",
        title="Three readings of the same rates",
        caption=f"Each group's rate of being {outcome}, compared with the group that is {outcome} most often. The "
        "four-fifths rule looks at the ratio alone; statistical significance asks whether chance could explain the "
        "difference, in percentage points, with p-values adjusted for the number of groups (Holm); practically "
        f"significant is a difference of {100 * audit.settings.materiality:g} points or more. None of the three says "
        "whether a difference is lawful.",
        columns=("Group", "Above", "Rate", "Ratio", "Four fifths", "Difference", "p", "Statistically", "Practically"),
        rows=tuple(rows),
        wide=(1, 6),
    )


def _pair_table(audit: Audit) -> Table:
    rows = []
    for one, other, distance in farthest_pairs(audit):
        pair = audit.pair(audit.histograms.groups.labels[one], audit.histograms.groups.labels[other])
        between = f"{score_text(pair.most_between[0])} to {score_text(pair.most_between[1])}"
        cells = [
            group_cell(pair.higher, 60),
            Cell(three_digits(distance), distance),
            Cell(between, between),
        ]
        if pair.score_distance is not None:
            cells.insert(2, Cell(score_text(pair.score_distance), pair.score_distance))
        rows.append(Row(pair.lower, tuple(cells), one if audit.groups[one].name == pair.lower else other))
    return Table(
        key="pairs",
        title="Farthest apart",
        caption="The group with the lower scores comes first. Half of the distance lies between the scores named last.",
        columns=("Lower", "Higher", "Distance", "Half of it between")
        if audit.settings.bounded
        else ("Lower", "Higher", "Between ranks", f"Between {scores_word(audit)}", "Half of it between"),
        rows=tuple(rows),
        wide=(3 if audit.settings.bounded else 4,),
    )


def _stratum_table(audit: Audit) -> Table:
    rows, pairs = [], audit.settings.pairs_metric
    for stratum in audit.strata:
        metric, floor = (
            None if pairs not in figures else figures[pairs] / n_distances(pairs, stratum.n_compared)
            for figures in (stratum.metrics, stratum.floors)
        )
        cells = (
            Cell(f"{stratum.rows:,}", stratum.rows),
            Cell(str(stratum.n_groups), stratum.n_groups),
            number_cell(metric, three_digits),
            number_cell(floor, three_digits),
            number_cell(stratum.p_values.get(pairs), _p_value_text),
        )
        note = "" if stratum.metrics else "set aside: fewer than two groups, or not the target"
        rows.append(Row(stratum.name, cells, note=note))
    part = "stratum" if audit.settings.strata else "outcome"
    return Table(
        key="strata",
        title=among_whom(audit),
        caption=f"Mean distance between two groups, over all pairs, among the rows of each {part}.",
        columns=(part.capitalize(), "Rows", "Groups", "Between pairs", "By chance", "p"),
        rows=tuple(rows),
        wide=(2,),
    )


def _p_value_text(value: float) -> str:
    return f"{value:.2g}"


# How an audit was measured: the last section of its page.


def collect_method_notes(audit: Audit, what_if: WhatIf) -> list[tuple[str, str]]:
    """Return notes on rows, groups, target, intervals and resolution."""
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
        (
            "Few rows",
            f"Groups with fewer than {settings.small_groups.min_size} effective rows are shown but not judged",
        ),
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
        error = score_text(audit.mean_readings["strong_pairwise_disparity"].resolution)
        return f"Scores were counted in {settings.n_bins:,} bins; the mean distance is exact to {error}"
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
