"""Page of a series of audits; it needs neither network nor script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport import __version__
from fairtransport._extras import load_extra
from fairtransport._text import one_line, plain
from fairtransport.report.displays._differences import MAX_PANELS, AuditSeriesDisplay, small_multiples
from fairtransport.report.pages.rendering import check_destination, write_page
from fairtransport.report.style.figures import figure_bytes, image_address
from fairtransport.report.style.web_pages import color_scheme, date_text, software_versions, template_environment

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
    environment = template_environment("fairtransport.report.pages")
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
        "sentence": one_line(series.sentence),
        "by": one_line(series.by),
        "chart": chart,
        "chart_text": (
            f"Control chart of the mean distance between two groups for {len(series.points)} values of "
            f"{one_line(series.by)}; {len(outside)} outside the control limits."
        ),
        "panels": panels,
        "panels_text": f"Distribution functions of the scores of each group, one panel for each {one_line(series.by)}.",
        "n_hidden": max(0, len(series.audits) - MAX_PANELS),
        "level": f"{overall.settings.confidence:.0%}",
        "points": [
            {
                "value": one_line(point.value),
                "rows": f"{point.rows:,}",
                "distance": f"{100 * point.distance:.1f}",
                "interval": f"{100 * point.low:.1f} to {100 * point.high:.1f}",
                "limits": f"{100 * point.lower_limit:.1f} to {100 * point.upper_limit:.1f}",
                "p": "< 0.001" if point.p_value < 0.001 else f"{point.p_value:.2g}",
                "status": _STATUS[point.status],
                "outside": point.outside,
            }
            for point in series.points
        ],
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
