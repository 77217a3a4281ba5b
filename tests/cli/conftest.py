from __future__ import annotations

import shlex
import sys
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from fairtransport import make_groups
from fairtransport.cli.app import app
from fairtransport.paper.finding import Claim, Finding
from fairtransport.paper.reproduction import Reproduction
from fairtransport.report import Comparison, MethodOutcome

FIGURES = {"LR": (0.1475, 0.314, 0.428, 0.807), "COT": (0.1783, 0.025, 0.022, 0.048)}
METRICS = ("error_rate", "wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")


@pytest.fixture
def run():
    """Run the command line in this process; the first argument, and options with their values, may be one text."""

    def call(*arguments, **options):
        words = []
        for number, argument in enumerate(map(str, arguments)):
            words += shlex.split(argument) if number == 0 or argument.startswith("--") else [argument]
        return CliRunner().invoke(app, words, **options)

    return call


@pytest.fixture
def one_line():
    """Return the only line on standard error of a command that fails."""

    def line(result, status=1):
        assert (result.exit_code, result.stdout) == (status, ""), result.output
        (text,) = result.stderr.splitlines()
        return text

    return line


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def stand_in(monkeypatch, module, function, result):
    """Replace a function of the paper; return the options of its calls."""
    calls = []

    def call(**options):
        calls.append(options)
        return result

    replaced = ModuleType(f"fairtransport.paper.{module}")
    setattr(replaced, function, call)
    monkeypatch.setitem(sys.modules, replaced.__name__, replaced)
    return calls


@pytest.fixture
def compare(comparison, monkeypatch):
    """Stands in for the training of ``demo``; remembers how it was called."""
    return stand_in(monkeypatch, "comparison", "compare_on_adult", comparison)


@pytest.fixture
def reproduced(monkeypatch):
    """Stands in for ``reproduce``; remembers how it was called."""
    calls = []

    def reproduce(names, folder, **options):
        calls.append((tuple(names), options))
        finding = Finding(names[0], "Figure 1: duals", "", claims=(Claim("they mirror", "", "0.00 [i]", "agrees"),))
        (folder / "index.html").write_text("page", encoding="utf-8")
        return Reproduction((finding,), (folder / "index.html",), quick=options["quick"])

    monkeypatch.setattr("fairtransport.paper.reproduction.reproduce", reproduce)
    return calls
