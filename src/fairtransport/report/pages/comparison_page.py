"""The page: collect what it shows as a plain dict, then render it; nothing in it needs a network."""

from __future__ import annotations

import base64
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport import __version__
from fairtransport._extras import load_extra
from fairtransport._text import count_word, one_line, three_digits
from fairtransport.report.displays.method_panels import distribution_figure, draw
from fairtransport.report.pages._comparison_files import to_csv, to_json
from fairtransport.report.pages._comparison_verdict import verdict
from fairtransport.report.pages.comparison import METRICS
from fairtransport.report.style.colors import THEMES, GroupStyle, group_styles
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    import os

    from fairtransport.report.pages.comparison import Comparison

__all__ = ["FILES", "render_page", "write_comparison"]

FILES = ("index.html", "comparison.png", "comparison.csv", "comparison.json")
"""What `write_comparison` leaves in its folder."""

_WORDS = {
    "error_rate": ("Errors", "Share of people whose score is on the wrong side of 0.5."),
    "wasserstein_disparity": ("To the target", "Distance from each group's scores to the target, summed."),
    "strong_demographic_disparity": ("To everyone", "Distance from each group's scores to everyone's, summed."),
    "strong_pairwise_disparity": ("Between groups", "Distance between the scores of any two groups, summed."),
}
"""Each metric in a word for the table, and in a sentence below it."""


def write_comparison(comparison: Comparison, folder: str | os.PathLike[str]) -> Path:
    """Write the page and its figures to a folder; files of an earlier run are replaced.

    Parameters
    ----------
    comparison : Comparison
        What to show.
    folder : path
        Made when it does not exist.

    Returns
    -------
    Path
        Of ``index.html``: one page that needs neither network nor neighbours. Beside it lie
        ``comparison.png``, ``comparison.csv`` and ``comparison.json``.
    """
    contents = {
        "comparison.png": draw(distribution_figure(comparison), "png"),
        "comparison.csv": to_csv(comparison).encode(),
        "comparison.json": to_json(comparison).encode(),
        "index.html": render_page(comparison).encode(),
    }
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(home / name, content)
    return home / "index.html"


def render_page(comparison: Comparison, *, written: datetime | None = None) -> str:
    """Render the page.

    Parameters
    ----------
    comparison : Comparison
        What to show.
    written : datetime, optional
        The date to print; now, when omitted.

    Returns
    -------
    str
        HTML with pictures, styles and no script inside.
    """
    jinja2 = load_extra("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairtransport.report.pages"),
        autoescape=True,  # names come from the user's data
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("comparison.html").render(_collect(comparison, written or datetime.now(UTC)))
    return page


def _collect(comparison: Comparison, written: datetime) -> dict[str, Any]:
    """Gather all that the template shows."""
    methods, groups = len(comparison.outcomes), len(comparison.groups)
    plural = "methods" if methods > 1 else "method"
    return {
        "title": one_line(f"{comparison.dataset}: {count_word(methods)} {plural}, {count_word(groups)} groups"),
        "verdict": verdict(comparison),
        "themes": THEMES,
        "pictures": {
            f"{layout}_{theme}": _data_address(draw(distribution_figure(comparison, layout=layout, theme=theme), "svg"))
            for layout in ("wide", "tall")
            for theme in THEMES
        },
        "alternative": _alternative(comparison),
        "measures": [{"short": METRICS[metric], "word": word, "told": told} for metric, (word, told) in _WORDS.items()],
        "methods": _methods(comparison),
        "floor": [three_digits(comparison.floor[m]) if m in comparison.floor else "" for m in _WORDS],
        "groups": _groups(comparison),
        "settings": [(one_line(key), one_line(value)) for key, value in comparison.settings.items()],
        "rows": f"{comparison.groups.n_rows:,}",
        "version": __version__,
        "software": ", ".join(f"{name} {found}" for name, found in _software().items()),
        "written": written.strftime("%Y-%m-%d %H:%M %Z").strip(),
    }


def _methods(comparison: Comparison) -> list[dict[str, Any]]:
    best = {metric: comparison.best(metric) for metric in _WORDS}
    return [
        {
            "name": one_line(outcome.name),
            "title": one_line(outcome.title),
            "note": one_line(outcome.note),
            "seconds": f"{outcome.seconds:.1f}",
            "cells": [
                {"value": three_digits(outcome.metrics[metric]), "best": outcome.name in best[metric]}
                for metric in _WORDS
            ],
        }
        for outcome in comparison.outcomes
    ]


def _groups(comparison: Comparison) -> list[dict[str, Any]]:
    """Each group with its line and the share that every method scores above 0.5."""
    groups = comparison.groups
    entries = zip(groups.names, groups.rows, group_styles(groups), strict=True)
    return [
        {
            "name": one_line(name),
            "rows": f"{rows.size:,}",
            "style": style,
            "dashes": _dash_list(style),
            "shares": [f"{100 * np.mean(outcome.scores[rows] > 0.5):.1f}" for outcome in comparison.outcomes],
        }
        for name, rows, style in entries
    ]


def _dash_list(style: GroupStyle) -> str:
    return " ".join(f"{2 * length:g}" for length in style.dashes) or "none"


def _alternative(comparison: Comparison) -> str:
    """Say what the picture shows to those who do not see it."""
    values = ", ".join(
        f"{one_line(outcome.name)} {outcome.metrics['strong_pairwise_disparity']:.2f}"
        for outcome in comparison.outcomes
    )
    return (
        "For each method, the share of each group scored above every threshold, drawn over the target, and below "
        f"it the gap to the target. The closer the lines, the smaller the pairwise disparity: {values}."
    )


def _software() -> dict[str, str]:
    """Name the versions that the figures depend on."""
    names = ("numpy", "scipy", "scikit-learn", "numba")
    return {"Python": platform.python_version(), **{name: metadata.version(name) for name in names}}


def _data_address(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()
