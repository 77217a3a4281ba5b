"""The progress bar appears when it is due, and only where it is asked for."""

import re

import numpy as np
import pytest

import fairtransport as ft
from fairtransport import _progress
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


@pytest.mark.parametrize("seconds", [(0.5, 1.0, 1.5, 2.0, 3.9, 4.0, 100.0, 159.0, 160.0)])
def test_work_of_unknown_length_shows_the_time_taken(capsys, monkeypatch, seconds):
    """A line when the time has doubled, and then one each minute; no percentage and no time left."""
    clock = iter((0.0, *seconds))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    with progress("Training", None) as bar:
        for number, _ in enumerate(seconds):
            bar.advance(number, "disparity 0.1")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"Training: {shown} s, disparity 0.1" for shown in (1, 2, 4, 100, 160)]


def test_training_shows_disparity_and_iterations_without_a_percentage(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_FIRST_LINE", 0.0)
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=400)
    X = rng.normal(size=(400, 2)) + group[:, None]
    y = (X[:, 0] + rng.logistic(size=400) > 0.5).astype(int)
    ft.TransportClassifier(parity_weight=0.1, verbose=True).fit(X, y, sensitive_features=group)
    first = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(r"COT training: 0 s, fit 1, iteration 1, disparity 0\.\d{4}, loss 0\.\d{4}", first)
