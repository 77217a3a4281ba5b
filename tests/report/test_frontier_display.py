"""FrontierDisplay draws the measurements; curves differ without colour, and no label covers another."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.report.conftest import assert_legible, draw_on_axes, legend_words

import fairtransport as ft
from fairtransport.report import FrontierDisplay
from fairtransport.selection.frontier_result import CURVE_METRICS, Frontier

ERROR, APART = [0.148, 0.150, 0.158, 0.168, 0.176, 0.183], [0.73, 0.62, 0.40, 0.22, 0.12, 0.08]


def made(error=ERROR, apart=APART, values=(0, 0.1, 0.3, 1, 3, 10), *, n_folds=5, floor=0.03, **changes):
    rng = np.random.default_rng(0)
    shape = (n_folds, len(values))
    folds = {metric: rng.uniform(0.2, 0.8, size=shape) for metric in CURVE_METRICS}
    folds["error_rate"] = np.array(error) + rng.normal(0, 0.002, size=shape)
    folds["pairwise_disparity"] = np.array(apart) + rng.normal(0, 0.002, size=shape)
    folds["noise_floor"] = np.full(shape, floor)
    entries = {
        "estimator": ft.TransportClassifier(), "parameter": "parity_weight", "folds": folds,
        "values": np.array(values, dtype=float), "situation": "blind", "reason": "by hand", "threshold": 0.5,
        "n_rows": 1000, "n_groups": 2,
    }  # fmt: skip
    return Frontier(**{**entries, **changes})


THREE = {
    "COT": made(),
    "Quantile repair": made(
        np.linspace(0.148, 0.172, 11), np.linspace(0.8, 0.05, 11), np.linspace(0, 1, 11),
        parameter="amount", situation="aware", floor=0.025,
    ),
    "Weights by group": made(np.array(ERROR) - 0.005, np.array(APART) * 0.8, situation="aware"),
}  # fmt: skip


def drawn(frontier, width=16.0, height=11.0, **options):
    return draw_on_axes(FrontierDisplay.from_frontier, frontier, width=width, height=height, **options)


def test_lines_bands_and_floor_are_the_measurements():
    curve = made()
    display = drawn(curve)
    (line,) = display.lines_
    assert np.array_equal(line.get_xdata(), curve.mean("pairwise_disparity"))
    assert np.array_equal(line.get_ydata(), curve.mean("error_rate"))
    corners = display.bands_[0].get_paths()[0].vertices
    upper = curve.mean("error_rate") + curve.standard_error("error_rate")
    for corner in zip(curve.mean("pairwise_disparity"), upper, strict=True):
        assert np.isclose(corners, corner).all(axis=1).any()
    assert display.floor_.get_window_extent().x1 == pytest.approx(display.ax_.transData.transform((0.03, 0))[0])
    assert display.ax_.get_xlim()[0] == 0.0


@pytest.mark.parametrize("x", CURVE_METRICS)
@pytest.mark.parametrize("y", ["error_rate", "log_loss", "auc"])
def test_any_two_metrics_with_axes_in_words(x, y):
    curve = made()
    display = drawn(curve, x=x, y=y)
    assert np.array_equal(display.lines_[0].get_xdata(), curve.mean(x))
    assert np.array_equal(display.lines_[0].get_ydata(), curve.mean(y))
    assert display.ax_.get_ylabel() == {"error_rate": "Error rate", "log_loss": "Log-loss", "auc": "AUC"}[y]
    assert "_" not in display.ax_.get_xlabel()
    assert (display.floor_ is None) == (x != "pairwise_disparity")  # the floor is of this one


def test_aware_and_blind_differ_in_label_and_dashes():
    display = drawn(THREE)
    assert legend_words(display)[:3] == ["COT, blind", "Quantile repair, aware", "Weights by group, aware"]
    styles = [line.get_linestyle() for line in display.lines_]
    assert styles == ["--", "-", "-"]
    assert len({line.get_color() for line in display.lines_}) == 3
    assert len({line.get_marker() for line in display.lines_}) == 3
    assert legend_words(display)[3:] == ["Noise floor: chance alone", "Numbers: amount, parity_weight"]
    assert legend_words(drawn(made()))[0] == "Transport, blind"


@pytest.mark.parametrize("frontiers", [made(), THREE], ids=["one", "three"])
@pytest.mark.parametrize(("width", "height"), [(6, 6.5), (16, 11)])
def test_nothing_overlaps(frontiers, width, height):
    display = drawn(frontiers, width, height)
    boxes = [label.get_window_extent() for label in display.labels_]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    inside = display.ax_.get_window_extent()
    for box in boxes:
        assert inside.x0 <= box.x0
        assert box.x1 <= inside.x1 + 1
    points = np.concatenate(
        [display.ax_.transData.transform(np.column_stack(line.get_data())) for line in display.lines_]
    )
    assert not any(box.contains(*point) for point in points for box in boxes)
    for label, box in zip(display.labels_, boxes, strict=True):  # a number stands nearest to its own point
        corners = np.array([[box.x0, box.y0], [box.x1, box.y1]])
        gaps = np.hypot(*np.maximum(0, np.maximum(corners[0] - points, points - corners[1])).T)
        assert points[gaps.argmin()] == pytest.approx(display.ax_.transData.transform(label.xy), abs=0.5)
    assert inside.width > 0.6 * display.figure_.bbox.width  # the legend squeezes nothing
    assert_legible(display)


def test_from_estimator_and_plot_of_a_frontier():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], size=300)
    X = rng.normal(size=(300, 2)) + (group == "b")[:, None]
    y = (X.sum(axis=1) + rng.logistic(size=300) > 1).astype(int)
    repair = ft.QuantileRepairClassifier(LogisticRegression())
    options = {"sensitive_features": group, "amounts": [0, 1], "cv": 2, "random_state": 0}
    display = FrontierDisplay.from_estimator(repair, X, y, y_metric="auc", **options)
    curve = ft.frontier(repair, X, y, **options)
    assert np.array_equal(display.lines_[0].get_ydata(), curve.mean("auc"))
    again = curve.plot(y="auc")
    assert isinstance(again, FrontierDisplay)
    assert np.array_equal(again.lines_[0].get_ydata(), display.lines_[0].get_ydata())
    other = plt.subplots()[1]
    assert display.plot(other).ax_ is other


def test_hostile_names_are_drawn_as_text():
    names = ("_hidden", "$a_{$", "\x1b[31mred", "x" * 90)
    display = drawn(dict.fromkeys(names, made()), 6, 8)
    labels = legend_words(display)
    assert labels[0] == "_hidden, blind"
    assert labels[1] == "$a_{$, blind"
    assert all(word.isprintable() for word in labels)
    assert labels[3].endswith("…, blind")
    assert display.ax_.get_legend().get_window_extent().x1 <= display.figure_.bbox.x1


@pytest.mark.parametrize(
    ("frontier", "options", "error", "match"),
    [
        ({}, {}, ValueError, "dict is empty"),
        ("COT", {}, TypeError, r"result of fairtransport\.frontier"),
        ({"COT": 1}, {}, TypeError, r"result of fairtransport\.frontier"),
        (made(), {"x": "zeal"}, ValueError, "x must be one of"),
        (made(), {"y": "zeal"}, ValueError, "y must be one of"),
    ],
)
def test_bad_input(frontier, options, error, match):
    with pytest.raises(error, match=match):
        FrontierDisplay.from_frontier(frontier, **options)


def test_bad_metrics_are_refused_before_training():
    with pytest.raises(ValueError, match="y_metric must be one of"):
        FrontierDisplay.from_estimator(None, None, None, sensitive_features=None, y_metric="zeal")
