"""Page that compares methods; it needs neither network nor script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport import __version__
from fairtransport._text import count_word, one_line, three_digits
from fairtransport.report._comparison import METRICS
from fairtransport.report.displays._method_panels import distribution_figure
from fairtransport.report.pages.methods._files import to_csv, to_json
from fairtransport.report.pages.methods._verdict import verdict
from fairtransport.report.style.colors import THEMES, group_styles
from fairtransport.report.style.figure_files import figure_bytes, image_address
from fairtransport.report.style.web_pages import color_scheme, date_text, software_versions, template_environment
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    import os
    from datetime import datetime

    from fairtransport.report._comparison import Comparison

__all__ = ["COMPARISON_FILES", "collect_comparison_page", "render_comparison_page", "write_comparison"]

COMPARISON_FILES = ("index.html", "comparison.png", "comparison.csv", "comparison.json")
"""Files that `write_comparison` writes to its folder."""

_DESCRIPTIONS = {
    "error_rate": ("Errors", "Error rate at threshold 0.5: share of people whose score is on the wrong side of it."),
    "wasserstein_disparity": (
        "To the target",
        "Wasserstein-1 disparity: sum of the distances from each group's scores to the target.",
    ),
    "strong_demographic_disparity": (
        "To everyone",
        "Strong demographic disparity: sum of the distances from each group's scores to everyone's.",
    ),
    "strong_pairwise_disparity": (
        "Between groups",
        "Strong pairwise demographic disparity: sum of the distances between the scores of any two groups.",
    ),
}
"""Name of each metric in the table, and its description below."""


def write_comparison(comparison: Comparison, folder: str | os.PathLike[str]) -> Path:
    """Write the page of a comparison and its data to a folder; files of an earlier run are replaced.

    Parameters
    ----------
    comparison : Comparison
        Methods on the same test rows.
    folder : path
        Created if it does not exist.

    Returns
    -------
    Path
        Path of ``index.html``, a page that needs neither network nor other files. ``comparison.png``,
        ``comparison.csv`` and ``comparison.json`` are written beside it.

    See Also
    --------
    distribution_figure : The figure of the page.
    verdict : The sentences at its top.
    """
    contents = {
        "comparison.png": figure_bytes(distribution_figure(comparison), "png"),
        "comparison.csv": to_csv(comparison).encode(),
        "comparison.json": to_json(comparison).encode(),
        "index.html": render_comparison_page(collect_comparison_page(comparison)).encode(),
    }
    destination = Path(folder)
    destination.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(destination / name, content)
    return destination / "index.html"


def render_comparison_page(context: dict[str, Any]) -> str:
    """Fill the template.

    Parameters
    ----------
    context : dict
        Result of `collect_comparison_page`.

    Returns
    -------
    str
        HTML with figures and styles inside.
    """
    environment = template_environment("fairtransport.report.pages")
    page: str = environment.get_template("methods/page.html").render(context, colours=color_scheme())
    return page


def collect_comparison_page(comparison: Comparison, *, written: datetime | None = None) -> dict[str, Any]:
    """Collect what the page shows.

    Parameters
    ----------
    comparison : Comparison
        Methods on the same test rows.
    written : datetime, default=None
        Date to print; if None, the current one.

    Returns
    -------
    dict
        Values of the template.
    """
    methods, groups = len(comparison.outcomes), len(comparison.groups)
    plural = "methods" if methods > 1 else "method"
    return {
        "title": one_line(f"{comparison.dataset}: {count_word(methods)} {plural}, {count_word(groups)} groups"),
        "verdict": verdict(comparison),
        "figures": {
            f"{layout}_{theme}": image_address(
                figure_bytes(distribution_figure(comparison, layout=layout, theme=theme), "svg"), "svg"
            )
            for layout in ("wide", "tall")
            for theme in THEMES
        },
        "alternative_text": _alternative_text(comparison),
        "metrics": [
            {"abbreviation": METRICS[metric], "name": name, "description": description}
            for metric, (name, description) in _DESCRIPTIONS.items()
        ],
        "methods": _methods(comparison),
        "floor": [three_digits(comparison.floor[m]) if m in comparison.floor else "" for m in _DESCRIPTIONS],
        "groups": _groups(comparison),
        "settings": [(one_line(key), one_line(value)) for key, value in comparison.settings.items()],
        "rows": f"{comparison.groups.n_rows:,}",
        "version": __version__,
        "software": software_versions(),
        "written": date_text(written),
    }


def _methods(comparison: Comparison) -> list[dict[str, Any]]:
    best = {metric: comparison.best(metric) for metric in _DESCRIPTIONS}
    return [
        {
            "name": one_line(outcome.name),
            "title": one_line(outcome.title),
            "note": one_line(outcome.note),
            "seconds": f"{outcome.seconds:.1f}",
            "cells": [
                {"value": three_digits(outcome.metrics[metric]), "best": outcome.name in best[metric]}
                for metric in _DESCRIPTIONS
            ],
        }
        for outcome in comparison.outcomes
    ]


def _groups(comparison: Comparison) -> list[dict[str, Any]]:
    """Return each group with its line style and the share that each method scores above 0.5."""
    groups = comparison.groups
    entries = zip(groups.names, groups.rows, group_styles(groups), strict=True)
    return [
        {
            "name": one_line(name),
            "rows": f"{rows.size:,}",
            "style": style,
            "dashes": style.dash_array,
            "shares": [f"{100 * np.mean(outcome.scores[rows] > 0.5):.1f}" for outcome in comparison.outcomes],
        }
        for name, rows, style in entries
    ]


def _alternative_text(comparison: Comparison) -> str:
    """Describe the figure for readers who do not see it."""
    values = ", ".join(
        f"{one_line(outcome.name)} {outcome.metrics['strong_pairwise_disparity']:.2f}"
        for outcome in comparison.outcomes
    )
    return (
        "For each method, the share of each group scored above every threshold, drawn over the target, and below "
        f"it the gap to the target. The closer the lines, the smaller the pairwise disparity: {values}."
    )
