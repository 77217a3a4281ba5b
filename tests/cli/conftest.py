from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from fairtransport import make_groups
from fairtransport.cli.app import app
from fairtransport.report import Comparison, MethodOutcome

FIGURES = {"LR": (0.1475, 0.314, 0.428, 0.807), "COT": (0.1783, 0.025, 0.022, 0.048)}
METRICS = ("error_rate", "wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")


@pytest.fixture
def run():
    """Run the command line in this process."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def comparison():
    groups = make_groups(["Female", "Male"] * 20)
    scores = np.linspace(0, 1, 40)
    outcomes = tuple(
        MethodOutcome(name, f"Title of {name}", dict(zip(METRICS, figures, strict=True)), 1.5, scores)
        for name, figures in FIGURES.items()
    )
    floor = {"strong_pairwise_disparity": 0.061}
    return Comparison("Adult", groups, np.zeros(40, dtype=int), scores, outcomes, floor, {"Seed": "0"})


@pytest.fixture
def compare(comparison, monkeypatch):
    """Stands in for the training of ``demo``; remembers how it was called."""
    calls = []

    def compare_on_adult(**options):
        calls.append(options)
        if options["progress"] is not None:
            options["progress"]("Training COT")
        return comparison

    module = ModuleType("fairtransport.paper.comparison")
    module.compare_on_adult = compare_on_adult
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


@dataclass
class Row:
    dataset: str
    method: str
    metric: str
    mean: float
    spread: float | None
    published: float | None
    floor: float | None


class Table:
    rows = (
        Row("Adult", "LR", "Err-.5", 0.1475, 0.0, 0.142, None),
        Row("Adult", "LR", "SPDD", 0.8074, 0.0, 0.806, 0.0612),
        Row("Adult", "COT", "Err-.5", 0.1783, 0.0021, None, None),
        Row("Adult", "COT", "SPDD", 0.0477, 0.0036, 0.044, 0.0612),
        Row("Communities", "LR", "Err-.5", 0.1441, 0.012, 0.116, None),
        Row("Communities", "LR", "SPDD", 7.5312, 0.412, 7.649, 1.8),
        *(Row("Wide", "COT (anchor)", metric, 0.1783, 0.0121, 0.175, 0.1) for metric in "abcd"),
    )

    def write(self, folder):
        paths = [folder / f"table1.{ending}" for ending in ("csv", "md", "json")]
        for path in paths:
            path.write_text("figures\n", encoding="utf-8")
        return paths


@pytest.fixture
def table1(monkeypatch):
    """Stands in for the computation of ``reproduce table1``; remembers how it was called."""
    calls = []

    def run_table1(**options):
        calls.append(options)
        return Table()

    module = ModuleType("fairtransport.paper.table1")
    module.run_table1 = run_table1
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


@pytest.fixture
def table1_row():
    return Row
