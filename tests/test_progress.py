"""The progress bar: in its time, and only for those who see it."""

from __future__ import annotations

import pytest

from fairtransport._progress import progress


@pytest.mark.parametrize(
    ("options", "shown"), [({}, True), ({"show": False}, False), ({"after": 1e-9}, True), ({"after": 60}, False)]
)
def test_it_is_shown_when_it_is_due(capsys, options, shown):
    with progress("Reading", 10, **options) as bar:
        bar.advance(5, "half")
        bar.advance(10)
    told = capsys.readouterr().err
    assert told.splitlines() == (["Reading: 50% half", "Reading: 100%"] if shown else [])
