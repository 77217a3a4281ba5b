"""``compare``: the differences between two audits of the same groups, with confidence intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fairtransport._extras import make_frame, render
from fairtransport._text import one_line, percent, shorten, three_digits, wrap
from fairtransport._validation import check_choice
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.records import distance_text, threshold_heading
from fairtransport.auditing.result import Audit, plain_values
from fairtransport.auditing.tables import (
    METRIC_NAMES,
    WITHHELD,
    Cell,
    Column,
    Row,
    Table,
    farthest_pairs,
    group_cell,
    interval_head,
    pair_distances,
)
from fairtransport.auditing.text import COMPARISON_TABLES


@dataclass(frozen=True)
class Change:
    """The change of a figure between two audits.

    Parameters
    ----------
    before, after, value : float
        The values (of disparities, corrected for the upward bias of small groups), and ``after`` minus ``before``.
    low, high : float
        Confidence interval of the difference between the true values.
    beyond_noise : bool
        Whether the interval excludes 0.
    """

    before: float
    after: float
    value: float
    low: float
    high: float
    beyond_noise: bool


@dataclass(frozen=True)
class ThresholdChange:
    """The changes at a threshold that both audits have.

    Parameters
    ----------
    threshold : float
    rates, errors : tuple of Change
        Selection and error rate of each group; ``errors`` is None unless both audits have labels.
    ratios : pair of float or None
        Ratio of the lowest to the highest rate, before and after; None where nobody is selected.
    """

    threshold: float
    rates: tuple[Change, ...]
    ratios: tuple[float | None, float | None]
    errors: tuple[Change, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class AuditComparison:
    """Two audits side by side, as returned by `compare`. ``print(comparison)`` shows it as text.

    Parameters
    ----------
    before, after : Audit
    names : pair of str
        Names of the two audits.
    positions : tuple of int
        Index in ``after`` of each group of ``before``.
    changes : dict of str to Change
        The metrics that both audits have, with the same definition.
    auc : Change or None
        Of all rows; None unless both audits have labels.
    thresholds : tuple of ThresholdChange
        The thresholds that both audits have.
    """

    before: Audit
    after: Audit
    names: tuple[str, str]
    positions: tuple[int, ...]
    changes: dict[str, Change]
    auc: Change | None
    thresholds: tuple[ThresholdChange, ...]

    @property
    def mean_changes(self) -> dict[str, Change]:
        """The changes with sums over groups, or over pairs of groups, as means: what text and pages show."""
        before, after = self.before.mean_readings, self.after.mean_readings
        return {name: _change(before[name].estimate, after[name].estimate) for name in self.changes}

    def to_dict(self) -> dict[str, Any]:
        """Return both audits and their differences as plain values that JSON can represent."""
        return plain_values(
            {
                "names": self.names,
                "changes": self.changes,
                "auc": self.auc,
                "thresholds": self.thresholds,
                "groups": [group.name for group in self.before.groups],
                "before": self.before.to_dict(),
                "after": self.after.to_dict(),
            }
        )

    def to_html(self, path: Any = None, **options: Any) -> Any:
        """Write both audits as one HTML page; requires the extra ``report``. Options as in `Audit.to_html`."""
        return render("pages.comparison.audit_comparison_page", self, path=path, **options)

    def to_frame(self, table: str = "metrics", *, library: str | None = None) -> Any:
        """Return the changes of ``"metrics"``, or of rates at ``"thresholds"``, as a frame; see `Audit.to_frame`."""
        check_choice(table, tuple(COMPARISON_TABLES), name="table")
        return make_frame(COMPARISON_TABLES[table](self), library)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def _repr_html_(self) -> str:
        """Show what changed in a notebook."""
        return str(render("pages.documents.comparison_cell", self))

    def __repr__(self) -> str:
        change = self.mean_changes[self.before.settings.pairs_metric]
        name = "pairwise disparity" if self.before.settings.bounded else "rank disparity"
        text = f"{len(self.before.groups)} groups, {name} {three_digits(change.before)} to {three_digits(change.after)}"
        return f"AuditComparison({text}, {'beyond' if change.beyond_noise else 'within'} noise)"

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def compare(before: Audit, after: Audit, *, names: tuple[str, str] = ("Before", "After")) -> AuditComparison:
    r"""Compare two audits of the same groups.

    Parameters
    ----------
    before, after : Audit
        Of the same groups and the same range of scores, or both without known bounds: one model before and after
        repair, two models, two months.
    names : pair of str, default ("Before", "After")
        Names of the two audits.

    Returns
    -------
    AuditComparison
        The distance to the target is omitted where the two audits have different targets.

    Notes
    -----
    The confidence interval of a difference is derived from the intervals of the two figures, assuming independent
    errors (the MOVER method of Donner and Zou): with estimates :math:`e_i` and intervals :math:`[l_i, u_i]`,

    .. math:: e_2 - e_1 - \sqrt{(e_2 - l_2)^2 + (u_1 - e_1)^2}
              \quad\text{to}\quad e_2 - e_1 + \sqrt{(u_2 - e_2)^2 + (e_1 - l_1)^2} .

    It is conservative for two sets of scores of the same rows, whose errors are usually positively correlated.
    Intervals are not adjusted for multiple comparisons: among many groups, a few may seem to change by chance.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 500)
    >>> scores = np.r_[rng.beta(2, 4, 500), rng.beta(4, 2, 500)]
    >>> repaired = ft.QuantileRepair().fit_transform(scores, sensitive_features=group)
    >>> before, after = (ft.audit(s, sensitive_features=group) for s in (scores, repaired))
    >>> ft.compare(before, after)
    AuditComparison(2 groups, pairwise disparity 0.329 to 0.000, beyond noise)
    """
    for audit, name in ((before, "before"), (after, "after")):
        if not isinstance(audit, Audit):
            raise TypeError(f"{name} must be an Audit, as returned by fairtransport.audit; got {type(audit).__name__}.")
    titles = tuple(names)
    if len(titles) != 2 or not all(isinstance(name, str) for name in titles):
        raise TypeError("names must be two strings, such as ('Before', 'After').")
    before, after = before.shown, after.shown
    positions = _match_groups(before, after)
    changes = {
        name: _change(reading.estimate, after.readings[name].estimate)
        for name, reading in before.readings.items()
        if name in after.readings
    }
    if before.settings.target != after.settings.target:
        del changes["wasserstein_disparity"]
    auc = None
    if before.auc is not None and after.auc is not None:
        auc = _change(before.auc, after.auc)
    thresholds = tuple(_threshold_changes(before, after, positions))
    return AuditComparison(before, after, titles, positions, changes, auc, thresholds)


def _match_groups(before: Audit, after: Audit) -> tuple[int, ...]:
    """Return the index in the second audit of each group of the first, after checking that they are comparable."""
    if before.settings.bounded != after.settings.bounded:
        raise ValueError("One audit has scores within a known range, and the other has not; give both the same range=.")
    if before.settings.bounded and before.settings.range != after.settings.range:
        one, other = (f"[{audit.settings.range[0]:g}, {audit.settings.range[1]:g}]" for audit in (before, after))
        raise ValueError(f"The audits have different ranges of scores, {one} and {other}; use the same range=.")
    if before.settings.confidence != after.settings.confidence:
        raise ValueError(
            f"The audits have different confidence levels, {before.settings.confidence:g} and "
            f"{after.settings.confidence:g}; use the same confidence=."
        )
    labels_before, labels_after = before.histograms.groups.labels, after.histograms.groups.labels
    shared = set(labels_before) & set(labels_after)
    if len(shared) < len(labels_before) or len(shared) < len(labels_after):
        raise ValueError(
            f"The audits have {len(labels_before)} and {len(labels_after)} groups, {len(shared)} of them in both. Sums "
            "over groups are only comparable for the same groups: drop or merge the other groups in both audits."
        )
    return tuple(labels_after.index(label) for label in labels_before)


def _change(before: Estimate, after: Estimate) -> Change:
    """Return the change between two estimates with their intervals; see the Notes of `compare`."""
    value = after.value - before.value
    low = value - math.hypot(max(0.0, after.value - after.low), max(0.0, before.high - before.value))
    high = value + math.hypot(max(0.0, after.high - after.value), max(0.0, before.value - before.low))
    return Change(before.value, after.value, value, low, high, low > 0 or high < 0)


def _threshold_changes(before: Audit, after: Audit, positions: tuple[int, ...]) -> Iterator[ThresholdChange]:
    later = {threshold.top_share or threshold.threshold: threshold for threshold in after.thresholds}

    def changes(before: Sequence[Estimate], after: Sequence[Estimate]) -> tuple[Change, ...]:
        return tuple(_change(one, after[at]) for one, at in zip(before, positions, strict=True))

    for one in before.thresholds:
        other = later.get(one.top_share or one.threshold)
        if other is not None:
            errors = None if one.errors is None or other.errors is None else changes(one.errors, other.errors)
            first, second = (None if at.four_fifths is None else float(at.ratio.value) for at in (one, other))
            yield ThresholdChange(one.threshold, changes(one.rates, other.rates), (first, second), errors)


def comparison_tables(comparison: AuditComparison) -> list[Table]:
    """Return the tables of two audits: metrics, selection rates at each common threshold, and farthest pairs."""
    before = comparison.before
    names = [shorten(name, 24, comparison.names) for name in comparison.names]
    columns = (
        *(Column(name, width=10, short=shorten(name, 9, names)) for name in names),
        Column("Change", width=14),
        Column(interval_head(before), width=19, wide=True),
        Column("Beyond noise"),
    )
    rows = [
        _change_row(
            METRIC_NAMES[metric][0],
            f"{METRIC_NAMES[metric][1]}{_uncorrected(comparison, metric)}",
            change,
            distance=None if metric == "error_rate" else partial(distance_text, before, metric=metric),
        )
        for metric, change in comparison.mean_changes.items()
    ]
    if comparison.auc is not None:
        note = "Probability that a positive row scores above a negative one."
        rows.append(_change_row("Area under the ROC curve", note, comparison.auc, distance=three_digits))
    noise = (
        "Distances are corrected for chance: without the upward bias of small groups. Beyond noise (in text *): the "
        "interval of the change does not contain 0; the two audits are treated as independent."
    )
    tables = [Table("changes", "What changed", "", "Metric", columns, tuple(rows), noise, 25)]
    for number, threshold in enumerate(comparison.thresholds):
        ratios = " and ".join("none" if ratio is None else f"{ratio:.2f}" for ratio in threshold.ratios)
        summary = next(at for at in before.thresholds if at.threshold == threshold.threshold)
        rows = [
            replace(row := _change_row(group.name, "", change), group=index, mark=row.mark + " ?" * (not group.judged))
            for index, (group, change) in enumerate(zip(before.groups, threshold.rates, strict=True))
        ]
        hidden = any(math.isnan(change.value) for change in threshold.rates)
        tables.append(
            Table(
                key=f"selected-{number + 1}",
                title=f"Selected {threshold_heading(before, summary)}",
                caption="Groups are judged one by one; a few may seem to change by chance.",
                head="Group",
                columns=columns,
                rows=tuple(rows),
                foot=f"Lowest over highest rate: {ratios}. {WITHHELD * hidden}".strip(),
                name_width=25,
            )
        )
    return [*tables, _pair_table(comparison, names)]


def _uncorrected(comparison: AuditComparison, metric: str) -> str:
    """Return what was observed and what chance shows, of a disparity."""
    audits = comparison.before, comparison.after
    readings = [audit.mean_readings[metric] for audit in audits]
    if any(reading.floor is None or math.isnan(reading.value) for reading in readings):
        return ""
    observed, chance = (
        " and ".join(distance_text(comparison.before, getattr(each, part), metric) for each in readings)
        for part in ("value", "floor")
    )
    return f" Corrected for chance: observed {observed}, by chance {chance}."


def _change_row(name: str, note: str, change: Change, *, distance: Callable[[float], str] | None = None) -> Row:
    """Return the row of a change of a distance, or of a share in percent."""

    def signed(value: float) -> str:
        shown = f"{100 * value:.1f}" if distance is None else distance(value)
        return f"{'' if shown.startswith('-') else '+'}{shown}".replace("-", "\N{MINUS SIGN}")

    values = (
        *(_cell(value, (distance or percent)(value)) for value in (change.before, change.after)),
        _cell(change.value, f"{signed(change.value)}{' points' if distance is None else ''}"),
        _cell(change.value, f"{signed(change.low)} to {signed(change.high)}", f"{change.low} to {change.high}"),
        "yes" if change.beyond_noise else "no",
    )
    return Row(name, values, note=note, mark=" *" if change.beyond_noise else "")


def _cell(value: float, shown: str, raw: Any = None) -> Cell | None:
    """Return the cell of a figure, or None where it is withheld."""
    return None if math.isnan(value) else Cell(shown, value if raw is None else raw)


def _pair_table(comparison: AuditComparison, names: Sequence[str]) -> Table:
    before, after = comparison.before, comparison.after
    rows = []
    for one, other, distance in farthest_pairs(before):
        later = float(pair_distances(after)[comparison.positions[one], comparison.positions[other]])
        rows.append(
            Row(before.groups[one].name, (group_cell(before, before.groups[other].name, 60), distance, later), one)
        )
    return Table(
        key="pairs",
        title=f"Farthest apart in {names[0]}",
        caption="Distance between two groups, in both audits.",
        head="Group",
        columns=(Column("And"), *(Column(name, three_digits) for name in names)),
        rows=tuple(rows),
    )


def _lines(comparison: AuditComparison) -> Iterator[str]:
    before, after, names = comparison.before, comparison.after, comparison.names
    columns = ", ".join(map(one_line, before.settings.columns))
    yield from wrap(
        f"{one_line(names[0])}: {before.rows:,} rows; {one_line(names[1])}: {after.rows:,} "
        f"rows; {len(before.groups)} groups ({columns}){before.provenance.label_text}"
    )
    for table in comparison_tables(comparison):
        if lines := list(table.lines()):
            yield from ("", *lines)
