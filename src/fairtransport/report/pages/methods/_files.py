"""A comparison as CSV and JSON, for programs and spreadsheets; no file contains the row of a person."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from fairtransport._text import one_line
from fairtransport.report._comparison import METRICS
from fairtransport.report.pages.methods._verdict import verdict

if TYPE_CHECKING:
    from fairtransport.report._comparison import Comparison

__all__ = ["safe_cell", "to_csv", "to_dict", "to_json"]

_FORMULA = ("=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}", "\N{FULLWIDTH HYPHEN-MINUS}",
            "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV: one line for each method, and the noise floor last.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str
        With a header; numbers have all digits.
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
        writer.writerow(["noise floor", "the same metric with groups assigned at random", *values, "", ""])
    return file.getvalue()


def safe_cell(text: object) -> str:
    """Return text that no spreadsheet interprets as a formula.

    Parameters
    ----------
    text : object

    Returns
    -------
    str
        One line, after an apostrophe if it begins with ``=``, ``+``, ``-``, ``@`` or one of their full-width forms.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("COT")
    ("'=1+1", 'COT')
    """
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Collect the results of a comparison, without any rows.

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
    """Return the results of `to_dict` as JSON.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str
    """
    return json.dumps(to_dict(comparison), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
