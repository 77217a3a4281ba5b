"""Page of a series of audits; it needs neither network nor script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport import __version__
from fairtransport._extras import load_extra
from fairtransport._text import one_line, plain
from fairtransport.auditing.series import series_table
from fairtransport.report.displays._differences import MAX_PANELS, AuditSeriesDisplay, small_multiples
from fairtransport.report.pages.rendering import check_destination, write_page
from fairtransport.report.style.figures import figure_bytes, image_address
from fairtransport.report.style.web_pages import color_scheme, date_text, software_versions, template_environment

if TYPE_CHECKING:
    from pathlib import Path

    from fairtransport.auditing import AuditSeries


def series_page(series: AuditSeries, path: Any = None, *, title: str | None = None) -> Path | str:
    """Write the page of a series of audits."""
    check_destination(path)
    environment = template_environment()
    page: str = environment.get_template("series/page.html").render(_collect(series, title), colours=color_scheme())
    return write_page(page, path)


def _collect(series: AuditSeries, title: str | None) -> dict[str, Any]:
    overall = series.overall
    columns = ", ".join(map(one_line, overall.settings.columns))
    heading = title or overall.provenance.title or f"Scores by {columns}, for each {one_line(series.by)}"
    pyplot = load_extra("matplotlib.pyplot")
    display = AuditSeriesDisplay.from_series(series)
    chart = image_address(figure_bytes(display.figure_, "svg"), "svg")
    pyplot.close(display.figure_)
    panels = image_address(figure_bytes(small_multiples(series), "svg"), "svg")
    outside = [point.value for point in series.points if point.outside]
    return {
        "title": one_line(heading),
        "verdict": one_line(series.sentence),
        "chart": chart,
        "chart_text": (
            f"Control chart of the mean distance between two groups for {len(series.points)} values of "
            f"{one_line(series.by)}; {len(outside)} outside the control limits."
        ),
        "panels": panels,
        "panels_text": f"Distribution functions of the scores of each group, one panel for each {one_line(series.by)}.",
        "n_hidden": max(0, len(series.audits) - MAX_PANELS),
        "level": f"{overall.settings.confidence:.0%}",
        "table": series_table(series),
        "verdicts": [
            (one_line(value), plain(audit.verdict.sentence))
            for value, audit in list(series.audits.items())[:MAX_PANELS]
        ],
        "set_aside": [(one_line(value), reason) for value, reason in series.set_aside.items()],
        "provenance": [(name, one_line(text)) for name, text in overall.provenance.lines()],
        "version": __version__,
        "software": software_versions(),
        "written": date_text(),
    }
