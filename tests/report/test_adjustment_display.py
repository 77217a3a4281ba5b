"""AdjustmentDisplay draws what was measured, with gaps, alarms and labels."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from fairtransport.report import AdjustmentDisplay

CM = 1 / 2.54


def history(batches=200, jump=100):
    noise = np.random.default_rng(0).normal(size=batches)
    return [
        {
            "batch": k + 1,
            "rows": 500 * (k + 1),
            "disparity": abs(0.02 + 0.004 * noise[k]) + (0.13 * np.exp((jump - k) / 20) if k >= jump else 0.0),
            "noise_floor": 0.03 + 0.02 / (1 + k / 20),
            "alarm": k in (jump, jump + 5),
            "updates": 200 if k >= jump else 0,
            "moved": 0.002 * k,
            "agreement": 0.99 - 0.0002 * k,
        }
        for k in range(batches)
    ]


def drawn(width=16.0, height=10.0, points=None, **options):
    figure, ax = plt.subplots(figsize=(width * CM, height * CM), layout="constrained")
    display = AdjustmentDisplay.from_history(history() if points is None else points, ax=ax, **options)
    figure.draw_without_rendering()
    return display


def words(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("y", ["disparity", "agreement", "moved", "updates"])
@pytest.mark.parametrize("x", ["batch", "rows"])
def test_line_is_the_history(x, y):
    display, points = drawn(x=x, y=y), history()
    assert display.line_.get_xdata().tolist() == [point[x] for point in points]
    assert display.line_.get_ydata().tolist() == [point[y] for point in points]
    assert display.alarms_.get_xdata().tolist() == [points[100][x], points[105][x]]
    assert (display.floor_ is not None) == (y == "disparity")
    assert "_" not in display.ax_.get_ylabel()


def test_floor_is_shaded_up_to_its_values():
    display = drawn()
    corners = display.floor_.get_paths()[0].vertices
    for point in history()[::40]:
        assert np.isclose(corners, (point["batch"], point["noise_floor"])).all(axis=1).any()
    assert words(display) == ["Disparity", "Noise floor: chance alone", "Alarm"]
    assert display.ax_.get_ylim()[0] == 0.0


def test_missing_values_are_gaps():
    points = history(20, jump=30)
    points[3]["disparity"], points[4]["disparity"] = None, float("nan")
    del points[5]["disparity"]
    points = [{key: value for key, value in point.items() if key != "noise_floor"} for point in points]
    display = drawn(points=points)
    assert np.isnan(display.line_.get_ydata()).tolist() == [index in (3, 4, 5) for index in range(20)]
    assert display.floor_ is None
    assert display.alarms_ is None
    assert words(display) == ["Disparity"]


@pytest.mark.parametrize("attribute", ["history", "snapshot"])
def test_from_adjuster(attribute):
    points = history(30)
    attributes = {"history": points} if attribute == "history" else {"snapshot": lambda: {"history": points}}
    display = AdjustmentDisplay.from_adjuster(SimpleNamespace(**attributes), y="moved")
    assert display.line_.get_ydata().tolist() == [point["moved"] for point in points]
    other = plt.subplots()[1]
    assert display.plot(other).ax_ is other


@pytest.mark.parametrize(("width", "least"), [(6, 6.0), (16, 8.0)])
def test_text_is_readable_and_does_not_overlap(width, least):
    display = drawn(width, 0.9 * width)
    texts = [*display.ax_.get_legend().get_texts(), display.ax_.xaxis.label, *display.ax_.get_xticklabels()]
    assert min(text.get_fontsize() for text in texts) >= least
    legend = display.ax_.get_legend().get_window_extent()
    inside = display.ax_.get_window_extent()
    assert legend.y0 >= inside.y1 - 1
    assert legend.x1 <= display.figure_.bbox.x1
    assert inside.height > 0.45 * display.figure_.bbox.height
    ticks = [tick.get_window_extent() for tick in display.ax_.get_xticklabels() if tick.get_text()]
    assert not any(one.overlaps(other) for one, other in combinations(ticks, 2))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: AdjustmentDisplay.from_history([]), ValueError, "history is empty"),
        (
            lambda: AdjustmentDisplay.from_history({"batch": 1}),
            TypeError,
            "list of dicts, one for each batch; got dict",
        ),
        (lambda: AdjustmentDisplay.from_history([1]), TypeError, "some entries are not dicts"),
        (lambda: AdjustmentDisplay.from_history(history(), x="zeal"), ValueError, "x must be one of"),
        (lambda: AdjustmentDisplay.from_history(history(), y="zeal"), ValueError, "y must be one of"),
        (lambda: AdjustmentDisplay.from_history([{"batch": 1}]), ValueError, "No entry .* 'batch' and 'disparity'"),
        (lambda: AdjustmentDisplay.from_adjuster(3), TypeError, "int has no history"),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()
