"""Displays of errors: what is drawn is what the audit holds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import fairtransport as ft
from fairtransport.report import ErrorRateDisplay, ReliabilityDisplay
from fairtransport.report._what_if import ERROR_RATES

QUICK = {"n_bootstrap": 60, "n_permutations": 60, "random_state": 0}


def test_points_are_the_rates_and_bars_their_intervals(audit):
    display = audit.plot("errors")
    assert isinstance(display, ErrorRateDisplay)
    for container, group in zip(display.points_, audit.error_rates[0].groups, strict=True):
        points, _, (bars,) = container
        expected = [group.rates[name] for name in ERROR_RATES]
        assert np.allclose(points.get_xdata(), [one.value for one in expected])
        segments = np.array(bars.get_segments())[:, :, 0]
        assert np.allclose(segments, [[one.low, one.high] for one in expected])
    assert len(display.ax_.get_yticklabels()) == len(ERROR_RATES)


def test_curves_are_the_reliability_of_the_audit(audit):
    _, ax = plt.subplots()
    display = audit.plot("reliability", ax=ax)
    assert isinstance(display, ReliabilityDisplay)
    assert display.ax_ is ax
    for line, group in zip(display.lines_, audit.calibration.groups, strict=True):
        assert np.allclose(line.get_xdata(), [part.mean_score for part in group.bins])
        assert np.allclose(line.get_ydata(), [part.rate.value for part in group.bins])


@pytest.mark.parametrize("kind", ["errors", "reliability"])
def test_labels_are_needed(kind):
    audit = ft.audit([0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], **QUICK)
    with pytest.raises(ValueError, match="The audit has no labels"):
        audit.plot(kind)


@pytest.mark.parametrize("kind", ["errors", "reliability"])
def test_many_groups_and_undefined_rates(kind):
    rng = np.random.default_rng(0)
    groups, labels = rng.integers(0, 14, 600), rng.integers(0, 2, 600)
    labels[groups == 0] = 0
    ft.audit(rng.random(600), labels, sensitive_features=groups, **QUICK).plot(kind).figure_.canvas.draw()
