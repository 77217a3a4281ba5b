"""A comparison as CSV and JSON, for programs and spreadsheets. No file holds a person's row."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from fairtransport._text import one_line
from fairtransport.report.pages._comparison_verdict import verdict
from fairtransport.report.pages.comparison import METRICS

if TYPE_CHECKING:
    from fairtransport.report.pages.comparison import Comparison

__all__ = ["safe_cell", "to_csv", "to_dict", "to_json"]

_FORMULA = ("=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}", "\N{FULLWIDTH HYPHEN-MINUS}",
            "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """Write one line for each method, and the noise floor last.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str
        CSV with a header; numbers with all digits.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["method", "title", *METRICS, "seconds", "note"])
    for outcome in comparison.outcomes:
        values = [repr(float(outcome.metrics[metric])) for metric in METRICS]
        name, title, note = map(safe_cell, (outcome.name, outcome.title, outcome.note))
        writer.writerow([name, title, *values, f"{outcome.seconds:.3f}", note])
    if comparison.floor:
        values = [repr(float(comparison.floor[metric])) if metric in comparison.floor else "" for metric in METRICS]
        writer.writerow(["noise floor", "the same metric with groups drawn by lot", *values, "", ""])
    return file.getvalue()


def safe_cell(text: object) -> str:
    """Return text that no spreadsheet takes for a formula.

    Parameters
    ----------
    text : object

    Returns
    -------
    str
        One line; with an apostrophe in front where it begins with ``=``, ``+``, ``-`` or ``@``, also as wide as an
        ideograph, which some spreadsheets take for the same.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("COT")
    ("'=1+1", 'COT')
    """
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Collect everything except rows.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    dict
        ``dataset``, ``verdict``, ``groups`` (name and rows), ``methods``, ``noise_floor`` and ``settings``.
    """
    groups = zip(comparison.groups.names, comparison.groups.counts.tolist(), strict=True)
    return {
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


def to_json(comparison: Comparison) -> str:
    """Write `to_dict` as JSON.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str
    """
    return json.dumps(to_dict(comparison), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
