"""Page that compares methods; it needs neither network nor script."""

from __future__ import annotations

import csv
import io
import json
import os
from itertools import product
from pathlib import Path

from fairtransport._text import count_word, one_line
from fairtransport.report._comparison import METRICS, Comparison, MethodOutcome
from fairtransport.report.displays._method_panels import distribution_figure
from fairtransport.report.style.figures import THEMES, figure_bytes, group_styles, image_address
from fairtransport.report.style.web_pages import render_template
from fairtransport.storage import write_atomically

# The result of a comparison in plain words.

_BEYOND_CHANCE = 2.0  # multiple of the noise floor


def verdict(comparison: Comparison) -> str:
    """State how differently the first method scores the groups and what the last one changes.

    Notes
    -----
    The disparity is the mean distance over all pairs of groups, the strong pairwise demographic disparity (SPDD) of the
    table divided by their number. Groups are scored differently if it is at least twice its noise floor. Errors are
    counted at threshold 0.5 and compared per 100 people.
    """
    floor = comparison.mean_disparity(comparison.floor)
    first = _first(comparison, floor)
    if len(comparison.outcomes) == 1:
        return first
    return f"{first} {_second(comparison, floor)}"


def _first(comparison: Comparison, floor: float) -> str:
    value = comparison.mean_disparity(comparison.baseline.metrics)
    groups = f"the {count_word(len(comparison.groups))} groups"
    if floor and value < _BEYOND_CHANCE * floor:
        text = f"scores {groups} alike: mean pairwise disparity {value:.3f}, noise floor {floor:.3f}."
    elif floor:
        text = (
            f"scores {groups} differently: mean pairwise disparity {value:.3f}, {_times(value / floor)} times "
            f"the noise floor of {floor:.3f}."
        )
    else:
        text = f"scores {groups} with a mean pairwise disparity of {value:.3f}."
    return f"{_method(comparison.baseline)} {text}"


def _second(comparison: Comparison, floor: float) -> str:
    outcomes = comparison.baseline, comparison.featured
    before, after = (round(comparison.mean_disparity(outcome.metrics), 3) for outcome in outcomes)
    verb = "leaves it at" if after == before else "brings it to" if after < before else "raises it to"
    relation = ""
    if floor and after <= round(floor, 3):
        relation = ", no more than chance would show,"
    elif floor:
        relation = f", {_times(comparison.mean_disparity(comparison.featured.metrics) / floor)} times the floor,"
    return f"{_method(comparison.featured)} {verb} {after:.3f}{relation} and makes {_errors(comparison)}."


def _errors(comparison: Comparison) -> str:
    extra = 100 * (comparison.featured.metrics["error_rate"] - comparison.baseline.metrics["error_rate"])
    if abs(extra) < 0.05:
        return "as many errors"
    return f"{abs(extra):.1f} {'more' if extra > 0 else 'fewer'} errors per 100 people"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.1f}"


def _method(outcome: MethodOutcome) -> str:
    name, title = one_line(outcome.name), one_line(outcome.title)
    # Within a sentence a title starts with a small letter, unless its first word is an abbreviation.
    start = title[:1].lower() if title[1:2].islower() else title[:1]
    return f"{name} ({start}{title[1:]})" if title else name


# A comparison as CSV and JSON, for programs and spreadsheets; no file contains the row of a person.

_FORMULA = ("=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}", "\N{FULLWIDTH HYPHEN-MINUS}",
            "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV: one line for each method, and the noise floor last."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["method", "title", *METRICS, "seconds", "note"])
    for outcome in comparison.outcomes:
        values = [repr(float(outcome.metrics[metric])) for metric in METRICS]
        name, title, note = map(safe_cell, (outcome.name, outcome.title, outcome.note))
        writer.writerow([name, title, *values, f"{outcome.seconds:.3f}", note])
    if comparison.floor:
        values = [repr(float(comparison.floor[metric])) if metric in comparison.floor else "" for metric in METRICS]
        writer.writerow(["noise floor", "the same metric with groups assigned at random", *values, "", ""])
    return file.getvalue()


def safe_cell(text: object) -> str:
    """Return text that no spreadsheet interprets as a formula."""
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def to_json(comparison: Comparison) -> str:
    """Return the results of a comparison as JSON, without any rows."""
    groups = zip(comparison.groups.names, comparison.groups.counts.tolist(), strict=True)
    content = {
        "dataset": comparison.dataset,
        "verdict": verdict(comparison),
        "groups": [{"name": name, "rows": rows} for name, rows in groups],
        "methods": [
            {
                "name": outcome.name,
                "title": outcome.title,
                "metrics": {metric: float(outcome.metrics[metric]) for metric in METRICS},
                "seconds": float(outcome.seconds),
                "note": outcome.note,
            }
            for outcome in comparison.outcomes
        ],
        "noise_floor": {metric: float(value) for metric, value in comparison.floor.items()},
        "settings": {str(key): str(value) for key, value in comparison.settings.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
    """Write the page of a comparison and its data to a folder; files of an earlier run are replaced."""
    contents = {
        "comparison.png": figure_bytes(distribution_figure(comparison), "png"),
        "comparison.csv": to_csv(comparison).encode(),
        "comparison.json": to_json(comparison).encode(),
        "index.html": comparison_page(comparison).encode(),
    }
    destination = Path(folder)
    destination.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(destination / name, content)
    return destination / "index.html"


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    methods, groups = len(comparison.outcomes), comparison.groups
    figures = {
        f"{layout}_{theme}": figure_bytes(distribution_figure(comparison, layout=layout, theme=theme), "svg")
        for layout, theme in product(("wide", "tall"), THEMES)
    }
    plural = "methods" if methods > 1 else "method"
    return render_template(
        "methods/page.html",
        title=f"{comparison.dataset}: {count_word(methods)} {plural}, {count_word(len(groups))} groups",
        verdict=verdict(comparison),
        comparison=comparison,
        figures={name: image_address(content, "svg") for name, content in figures.items()},
        abbreviations=METRICS,
        descriptions=_DESCRIPTIONS,
        groups=list(zip(groups.names, groups.rows, group_styles(groups), strict=True)),
    )
