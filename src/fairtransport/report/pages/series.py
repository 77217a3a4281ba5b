"""Page of a series of audits; it needs neither network nor script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport._text import plain
from fairtransport.auditing.series import series_table
from fairtransport.report.displays._differences import MAX_PANELS, AuditSeriesDisplay, small_multiples
from fairtransport.report.pages.rendering import check_destination, write_page
from fairtransport.report.style.figures import figure_bytes, image_address
from fairtransport.report.style.web_pages import render_template

if TYPE_CHECKING:
    from pathlib import Path

    from fairtransport.auditing import AuditSeries


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
