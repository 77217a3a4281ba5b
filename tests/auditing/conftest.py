"""Worlds whose truth is known, which the benchmarks also use."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def benchmark_module():
    """Return a function that imports a module of ``benchmarks``, which is not part of the package."""

    def load(name):
        before = list(sys.path)
        sys.path.insert(0, str(ROOT))
        try:
            return importlib.import_module(f"benchmarks.{name}")
        finally:
            sys.path[:] = before

    return load
