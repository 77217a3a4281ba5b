"""A plugin for `make trust`: writes each test's outcome, and how many cases it and hypothesis tried, to a folder.

A test tells the number of its cases by ``record_property("cases", ...)``.

Only loaded by scripts/trust.py (``-p tests.counting``).
"""

import os
from pathlib import Path

import pytest
from hypothesis import core

FOLDER = Path(os.environ.get("TRUST_FOLDER", "."))
_execute = core.StateForActualGivenExecution.execute_once
_tried = 0


def _counted(self, *arguments, **options):
    global _tried  # noqa: PLW0603 - one number for a process
    _tried += 1
    return _execute(self, *arguments, **options)


core.StateForActualGivenExecution.execute_once = _counted


@pytest.hookimpl
def pytest_runtest_logreport(report):
    if os.environ.get("PYTEST_XDIST_WORKER") and "TRUST_FOLDER" in os.environ:
        return  # the process that gathers reports writes them
    if report.when == "call" or (report.when == "setup" and not report.passed):
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        with (FOLDER / "all.tests").open("a") as file:
            cases = sum(number for name, number in report.user_properties if name == "cases") or 1
            file.write(f"{report.nodeid.replace(' ', '_')} {outcome} {cases}\n")


@pytest.hookimpl
def pytest_sessionfinish(session):
    (FOLDER / f"{os.getpid()}.examples").write_text(str(_tried))
