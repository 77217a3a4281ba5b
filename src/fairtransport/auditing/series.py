"""One audit for each value of a column, such as a region or a month."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport._extras import make_frame, render
from fairtransport._text import one_line, wrap
from fairtransport.auditing._audit import audit_counts
from fairtransport.auditing.options import Inference
from fairtransport.auditing.proportions import holm
from fairtransport.auditing.records import points_text
from fairtransport.auditing.result import plain_values
from fairtransport.auditing.tables import Cell, Column, Row, Table, interval_head, p_value_text
from fairtransport.groups import MIN_SHOWN_ROWS
from fairtransport.histograms import GroupHistograms
from fairtransport.storage import write_atomically
from fairtransport.tables import TableCounts

if TYPE_CHECKING:
    from fairtransport.auditing.result import Audit


_ESTABLISHED = frozenset({"matters", "different", "small"})
_ROUNDING = 1e-9  # of a sum of weights, from which one of them was subtracted
_CONTROL = 3.0  # standard errors from the centre line to the control limits


@dataclass(frozen=True)
class SeriesPoint:
    """The mean distance between two groups among the rows with one value.

    Parameters
    ----------
    value, rows : str, int
        The value of the column, and the number of its rows.
    distance, low, high : float
        Mean Wasserstein-1 distance between two groups, corrected for its upward bias, with its confidence interval.
    lower_limit, upper_limit, outside
        Control limits, three standard errors of this point from the mean distance of all rows, and whether ``distance``
        lies outside them: the value differs from the others by more than chance.
    p_value : float
        Of no difference between groups, adjusted for the number of values by Holm's method.
    status : str
        Of the verdict on this value; ``"cannot_tell"`` where no difference is established after the adjustment.
    """

    value: str
    rows: int
    distance: float
    low: float
    high: float
    lower_limit: float
    upper_limit: float
    outside: bool
    p_value: float
    status: str


@dataclass(frozen=True, eq=False, repr=False)
class AuditSeries:
    """Audits of the rows with each value of a column, by `audit_table`; ``print(series)`` shows them as text.

    Parameters
    ----------
    by : str
        Name of the column.
    audits : dict of str to Audit
        By value: in ascending order of numbers, or of text.
    overall : Audit
        Of all rows.
    set_aside : dict of str to str
        Values without an audit, with the reason.
    """

    by: str
    audits: Mapping[str, Audit]
    overall: Audit
    set_aside: Mapping[str, str]

    @property
    def centre(self) -> float:
        """Mean distance between two groups among all rows: the centre line of the control chart."""
        return float(self.overall.mean_pairwise_distance.value)

    @cached_property
    def points(self) -> tuple[SeriesPoint, ...]:
        """The figures of each value."""
        adjusted = holm([audit.readings[audit.settings.pairs_metric].p_value or 0.0 for audit in self.audits.values()])
        quantile = NormalDist().inv_cdf((1 + self.overall.settings.confidence) / 2)
        points = []
        for (value, audit), p_value in zip(self.audits.items(), adjusted, strict=True):
            estimate = audit.mean_pairwise_distance
            # An interval that ends at 0 is cut off there, so the longer side tells the standard error.
            error = max(estimate.high - estimate.value, estimate.value - estimate.low) / quantile
            lower, upper = max(0.0, self.centre - _CONTROL * error), self.centre + _CONTROL * error
            status = audit.verdict.status
            established = p_value <= 1 - self.overall.settings.confidence
            points.append(
                SeriesPoint(
                    value=value,
                    rows=audit.rows,
                    distance=float(estimate.value),
                    low=float(estimate.low) if established else 0.0,
                    high=float(estimate.high),
                    lower_limit=lower,
                    upper_limit=upper,
                    outside=bool(not lower <= estimate.value <= upper),
                    p_value=float(p_value),
                    status="cannot_tell" if status in _ESTABLISHED and not established else status,
                )
            )
        return tuple(points)

    @property
    def sentence(self) -> str:
        """The series in words."""
        outside = [point for point in self.points if point.outside]
        established = sum(point.p_value <= 1 - self.overall.settings.confidence for point in self.points)
        over = "thresholds" if self.overall.settings.bounded else "shares of people selected"
        text = (
            f"Groups differ by {100 * self.centre:.1f} percentage points on average over pairs and {over}; a "
            f"difference is established in {established} of {len(self.points)} values of {self.by} (p-values adjusted "
            "for their number, Holm)."
        )
        if not outside:
            return f"{text} No value lies outside the control limits: the values differ no more than chance allows."
        names = ", ".join(point.value for point in outside[:5])
        more = f" and {len(outside) - 5} more" if len(outside) > 5 else ""
        return f"{text} Outside the control limits: {names}{more}."

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return the points as a data frame of pandas, polars or pyarrow; see `Audit.to_frame`."""
        return make_frame(map(asdict, self.points), library)

    def to_dict(self) -> dict[str, Any]:
        """Return the series and all its audits as plain values that JSON can represent."""
        return plain_values(
            {
                "by": self.by,
                "sentence": self.sentence,
                "points": self.points,
                "set_aside": self.set_aside,
                "overall": self.overall.to_dict(),
                "audits": {value: audit.to_dict() for value, audit in self.audits.items()},
            }
        )

    def to_json(self, path: Any = None, *, indent: int | None = None) -> Any:
        """Return `to_dict` as JSON, or write it to a file, as `Audit.to_json` does."""
        text = json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)
        return text if path is None else write_atomically(path, f"{text}\n".encode())

    def plot(self, **options: Any) -> Any:
        """Draw the control chart; requires the extra ``report``. Options as in `report.AuditSeriesDisplay`."""
        return render("AuditSeriesDisplay.from_series", self, **options)

    def to_html(self, path: Any = None, **options: Any) -> Any:
        """Write the series as one HTML page with a control chart; requires the extra ``report``. As `Audit.to_html`."""
        return render("pages.comparison.series_page", self, path=path, **options)

    def _repr_html_(self) -> str:
        """Show the series as a table in a notebook."""
        return str(render("pages.documents.series_cell", self))

    def __repr__(self) -> str:
        return f"AuditSeries({len(self.audits)} values of {self.by!r}, {self.overall.rows} rows)"

    def __str__(self) -> str:
        return "\n".join(_lines(self))


@contextmanager
def by_in_errors() -> Iterator[None]:
    """Raise errors about strata as errors about ``by``."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        if not text.startswith("strata has"):
            raise
        number = text.removeprefix("strata has").partition(";")[0].replace(" strata", " values")
        raise ValueError(
            f"by has{number}, too many for one audit each. Name a column with fewer values: a number can be cut "
            "into ranges first, and dates such as 2024-03-31 are cut into months; or raise max_groups=."
        ) from None


def audit_counts_by(counts: TableCounts, *, by: str, **options: Any) -> AuditSeries:
    """Audit the histograms of each stratum: the second half of `audit_table` with ``by``."""
    if len(counts.strata) < 2:
        raise ValueError(f"{say_columns([by]).capitalize()} has one value; at least 2 are needed to compare.")
    inference = options.pop("inference", None) or Inference()
    needed = math.ceil(2 * len(counts.strata) / (1 - inference.confidence))
    options["inference"] = replace(inference, n_permutations=max(inference.n_permutations, needed))
    audits, set_aside = {}, {}
    for value in sorted(counts.strata, key=_order(counts.strata)):
        histograms = counts.strata[value]
        if np.count_nonzero(histograms.group_rows) < 2:
            set_aside[value] = "one group"
            continue
        if np.count_nonzero(histograms.group_rows >= MIN_SHOWN_ROWS) < 2:
            set_aside[value] = f"fewer than two groups of {MIN_SHOWN_ROWS} rows or more"
            continue
        part = replace(counts, histograms=histograms, strata={}, set_aside={}, residuals=None)
        audits[value] = audit_counts(part, **options)
    if not audits:
        raise ValueError(f"No value of {say_columns([by])} has rows of two groups.")
    overall = audit_counts(replace(counts, histograms=_without_few_rows(counts), strata={}), **options)
    return AuditSeries(by, audits, overall, set_aside)


def _without_few_rows(counts: TableCounts) -> GroupHistograms:
    """Return the histograms of all rows without those of fewer than `MIN_SHOWN_ROWS` rows of a group with one value.

    Figures of all values minus those of the others would be those of single people.
    """
    whole = counts.histograms
    known = {label for label, rows in zip(whole.groups.labels, whole.group_rows, strict=True) if rows >= MIN_SHOWN_ROWS}
    index = {cell: number for number, cell in enumerate(_cells(whole))}
    masses, squares = whole.masses.copy(), None if whole.squares is None else whole.squares.copy()
    for part in counts.strata.values():
        few = known & {part.groups.labels[at] for at in np.flatnonzero(part.group_rows < MIN_SHOWN_ROWS)}
        for number, cell in enumerate(_cells(part)):
            if few & cell:
                masses[:, index[cell]] -= part.masses[:, number]
                if squares is not None and part.squares is not None:
                    squares[:, index[cell]] -= part.squares[:, number]
    left = masses > _ROUNDING * whole.masses
    squares = None if squares is None else np.where(left, squares, 0.0)
    return replace(whole, masses=np.where(left, masses, 0.0), squares=squares).filled()


def _cells(histograms: GroupHistograms) -> list[frozenset[Any]]:
    """Return the labels of the groups that each cell of histograms belongs to."""
    labels = histograms.groups.labels
    members = np.eye(len(labels), dtype=np.bool_) if histograms.members is None else histograms.members
    return [frozenset(labels[at] for at in np.flatnonzero(cell)) for cell in members.T]


def _order(values: Any) -> Any:
    """Return the key that sorts values as numbers where all are, and as text otherwise."""
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        return str
    return numbers.__getitem__


def _lines(series: AuditSeries) -> Iterator[str]:
    overall = series.overall
    yield from wrap(f"Audits of {overall.rows:,} rows by {one_line(series.by)}{overall.provenance.label_text}")
    yield ""
    yield from wrap(one_line(series.sentence))
    yield ""
    yield from series_table(series).lines()
    for value, reason in series.set_aside.items():
        yield from wrap(f"Not audited: {one_line(value)}, {reason}.")


_STATUS = {
    "matters": "established, and it matters",
    "different": "established, size uncertain",
    "small": "established, and small",
    "alike": "none that matters",
    "cannot_tell": "cannot tell",
    "too_few_rows": "too few rows",
    "constant": "all scores are equal",
}


def series_table(series: AuditSeries) -> Table:
    """Return the audit of each value of the column: distance, interval, control limits, p-value and verdict."""
    rows = []
    for point in series.points:
        limits = f"{points_text(point.lower_limit)} to {points_text(point.upper_limit)}{' (outside)' * point.outside}"
        values = (
            point.rows,
            point.distance,
            (point.low, point.high),
            Cell(limits, f"{point.lower_limit} to {point.upper_limit}"),
            point.p_value,
            Cell(_STATUS[point.status], point.status),
        )
        rows.append(Row(point.value, values, note="outside" * point.outside, mark=" *" * point.outside))
    return Table(
        key="values",
        title=f"The values of {one_line(series.by)}",
        caption="P-values are adjusted for the number of values (Holm).",
        head=one_line(series.by),
        columns=(
            Column("Rows", "{:,}".format, 11),
            Column("Distance", points_text, 10),
            Column(interval_head(series.overall), points_text, 18),
            Column("Control limits"),
            Column("p", p_value_text, 10),
            Column("Difference"),
        ),
        rows=tuple(rows),
        foot=f"Distances are means over pairs of groups in percentage points, corrected for small samples; "
        f"{points_text(series.centre)} among all rows. *: outside the control limits, three standard errors from it.",
    )
