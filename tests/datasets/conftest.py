import sys

import pytest


@pytest.fixture(params=["pandas", "polars", None], ids=["pandas", "polars", "arrays"])
def kind(request, monkeypatch):
    """What the loaders return; for polars, pandas is made to look as if it were not installed."""
    if request.param == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    return request.param


@pytest.fixture
def load(kind):
    """Call a loader so that it returns the kind at hand."""
    return lambda loader, **options: loader(as_frame=kind is not None, **options)
