"""The progress bar appears when it is due, and only where it is asked for."""

import re

import numpy as np
import pytest

import fairtransport as ft
from fairtransport import _progress
from fairtransport._progress import progress
from fairtransport.linear import _lbfgs_solver
from fairtransport.linear._lbfgs_solver import iterations_left


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


def test_iterations_left_of_decreases_that_fall_by_a_third():
    """Closed form: with decreases of c * q^k, least is reached after log(least / c) / log(q) iterations."""
    values = 2.0 - np.cumsum(0.1 * (2 / 3) ** np.arange(20)) / 2
    decreases = -np.diff(values) / values[:-1]  # relative to the value, which hardly changes at the end
    left = iterations_left(values.tolist(), 1e-8)
    # The last decrease counts as the mean of three.
    assert left == pytest.approx(np.log(1e-8 / decreases[-2]) / np.log(2 / 3), rel=0.01)
    assert iterations_left(values[:7].tolist(), 1e-8) is None
    assert iterations_left(values.tolist(), 0.1) == 0.0


def test_time_left_is_of_the_right_size(capsys, monkeypatch):
    """While at least five iterations are left, three of four estimates are within a factor of four of what is left."""
    fits = []

    def keep(values, least):
        if len(values) == 1:
            fits.append([])
        fits[-1].append(iterations_left(values, least))
        return fits[-1][-1]

    monkeypatch.setattr(_lbfgs_solver, "iterations_left", keep)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        group, X = rng.integers(3, size=2_000), rng.normal(size=(2_000, 20))
        X[:, :3] += 0.4 * group[:, None]
        y = (X[:, 0] - X[:, 5] + rng.logistic(size=2_000) > 0.5).astype(int)
        for weight in (0.1, 1.0, 10.0):
            ft.TransportClassifier(parity_weight=weight, verbose=True).fit(X, y, sensitive_features=group)
    ratios = [left / (len(fit) - 1 - at) for fit in fits for at, left in enumerate(fit[:-5]) if left is not None]
    assert len(ratios) > 80
    assert 0.5 < np.median(ratios) < 2
    assert np.mean([0.25 < ratio < 4 for ratio in ratios]) > 0.75
    capsys.readouterr()
