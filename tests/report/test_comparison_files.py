from __future__ import annotations

import csv
import io
import json

import pytest

from fairtransport.report import METRICS, verdict
from fairtransport.report.pages.methods import safe_cell, to_csv, to_json


def test_csv_has_methods_and_floor_with_all_digits(comparison):
    rows = list(csv.DictReader(io.StringIO(to_csv(comparison))))
    assert [row["method"] for row in rows] == ["LR", "COT", "noise floor"]
    for row, outcome in zip(rows, comparison.outcomes, strict=False):
        assert {metric: float(row[metric]) for metric in METRICS} == outcome.metrics
    assert rows[-1]["strong_pairwise_disparity"] == "0.05"
    assert rows[-1]["error_rate"] == ""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r@", " ="])
def test_no_text_cell_is_a_formula(start):
    assert safe_cell(f"{start}1+1") == f"'{start.strip()}1+1"


def test_json_contains_everything_but_rows(comparison):
    saved = json.loads(to_json(comparison))
    assert saved["verdict"] == verdict(comparison)
    assert saved["groups"] == [{"name": "Female", "rows": 120}, {"name": "Male", "rows": 120}]
    assert [method["metrics"] for method in saved["methods"]] == [one.metrics for one in comparison.outcomes]
    assert saved["noise_floor"] == comparison.floor
    assert saved["settings"] == comparison.settings
    assert max(map(len, (entry for entry in saved.values() if isinstance(entry, list)))) < 10
