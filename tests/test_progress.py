"""The progress bar appears when it is due, and only where it is asked for."""

import pytest

from fairtransport._progress import progress


@pytest.mark.parametrize(
    ("options", "shown"), [({}, True), ({"show": False}, False), ({"after": 1e-9}, True), ({"after": 60}, False)]
)
def test_the_bar_is_shown_when_it_is_due(capsys, options, shown):
    with progress("Reading", 10, **options) as bar:
        bar.advance(5, "half")
        bar.advance(10)
    lines = capsys.readouterr().err.splitlines()
    assert lines == (["Reading: 50% half", "Reading: 100%"] if shown else [])
