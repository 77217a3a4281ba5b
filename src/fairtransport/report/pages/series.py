"""Page of a series of audits; it needs neither network nor script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport._text import one_line, plain
from fairtransport.auditing.records import points_text
from fairtransport.report.displays._differences import MAX_PANELS, AuditSeriesDisplay, small_multiples
from fairtransport.report.pages.rendering import check_destination, write_page
from fairtransport.report.pages.tables import Cell, Row, Table, interval_head
from fairtransport.report.style.figures import figure_bytes, image_address
from fairtransport.report.style.web_pages import render_template

if TYPE_CHECKING:
    from pathlib import Path

    from fairtransport.auditing import AuditSeries

_STATUS = {
    "matters": "established, and it matters",
    "different": "established, size uncertain",
    "small": "established, and small",
    "alike": "none that matters",
    "cannot_tell": "cannot tell",
    "too_few_rows": "too few rows",
    "constant": "all scores are equal",
}


def series_page(series: AuditSeries, path: Any = None, *, title: str | None = None) -> Path | str:
    """Write the page of a series of audits."""
    check_destination(path)
    overall = series.overall
    chart = AuditSeriesDisplay.from_series(series).figure_
    images = [image_address(figure_bytes(figure, "svg"), "svg") for figure in (chart, small_multiples(series))]
    load_extra("matplotlib.pyplot").close(chart)
    by = f"Scores by {', '.join(overall.settings.columns)}, for each {series.by}"
    page = render_template(
        "series/page.html",
        title=title or overall.provenance.title or by,
        verdict=series.sentence,
        series=series,
        images=images,
        table=series_table(series),
        max_panels=MAX_PANELS,
        plain=plain,
    )
    return write_page(page, path)


def series_table(series: AuditSeries) -> Table:
    """Return the audit of each value of the column: distance, interval, control limits, p-value and verdict."""
    rows = []
    for point in series.points:
        intervals = ((point.low, point.high, ""), (point.lower_limit, point.upper_limit, " (outside)" * point.outside))
        cells = (
            Cell(f"{point.rows:,}", point.rows),
            Cell(points_text(point.distance), point.distance),
            *(
                Cell(f"{points_text(low)} to {points_text(high)}{mark}", f"{low} to {high}")
                for low, high, mark in intervals
            ),
            Cell("< 0.001" if point.p_value < 0.001 else f"{point.p_value:.2g}", point.p_value),
            Cell(_STATUS[point.status], point.status),
        )
        rows.append(Row(point.value, cells, note="outside" if point.outside else ""))
    return Table(
        key="values",
        title=f"The values of {one_line(series.by)}",
        caption="Distances in percentage points, corrected for the upward bias of small samples. P-values are adjusted "
        "for the number of values (Holm).",
        columns=(
            one_line(series.by),
            "Rows",
            "Distance",
            interval_head(series.overall),
            "Control limits",
            "p",
            "Difference",
        ),
        rows=tuple(rows),
    )
