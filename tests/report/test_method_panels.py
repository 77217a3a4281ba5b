from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from scipy.integrate import trapezoid

from fairtransport.metrics._disparity import disparities
from fairtransport.report import distribution_figure
from fairtransport.report.style.figures import THEMES, figure_bytes, group_styles


@pytest.mark.parametrize("layout", ["wide", "tall"])
@pytest.mark.parametrize("methods", [("LR",), ("LR", "COT"), tuple("abcdefg"), ("LR", "A long method name")])
def test_two_panels_for_each_method_with_axes_in_words(build, layout, methods):
    figure = distribution_figure(build(methods=methods), layout=layout)
    assert len(figure.axes) == 2 * len(methods)
    labels = {axis.get_ylabel().replace("\n", " ") for axis in figure.axes} - {""}
    assert any(label.startswith("Share") for label in labels)
    assert any(label.startswith("Gap to target") for label in labels)
    assert "Threshold on the score" in {axis.get_xlabel() for axis in figure.axes}
    titles = {axis.get_title(loc="left") for axis in figure.axes} - {""}
    assert titles == {name if len(name) < 15 or layout == "wide" else "A long method…" for name in methods}


def test_lines_are_the_shares_above_each_threshold(comparison):
    above, gap = distribution_figure(comparison).axes[0], distribution_figure(comparison).axes[2]
    outcome = comparison.outcomes[0]
    for line, below, rows in zip(above.lines, gap.lines[1:], comparison.groups.rows, strict=True):
        thresholds, shares = line.get_data()
        expected = [100 * np.mean(outcome.scores[rows] > threshold) for threshold in thresholds]
        np.testing.assert_allclose(shares, expected, atol=1e-9)
        of_target = [100 * np.mean(comparison.target > threshold) for threshold in thresholds]
        np.testing.assert_allclose(below.get_ydata(), shares - of_target, atol=1e-9)


def test_area_of_the_gaps_is_the_disparity(comparison):
    # The lower panels show the terms of wasserstein_disparity; the tolerance is the error of the grid of thresholds.
    gap = distribution_figure(comparison).axes[2]
    area = sum(trapezoid(np.abs(line.get_ydata()), line.get_xdata()) for line in gap.lines[1:]) / 100
    exact = disparities(comparison.outcomes[0].scores, sensitive_features=comparison.groups, target=comparison.target)[
        "wasserstein_disparity"
    ]
    assert area == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("theme", list(THEMES))
def test_a_group_has_one_colour_everywhere(build, theme):
    comparison = build(names=("a", "b", "c"), methods=("LR", "DPP", "COT"))
    colours = [style.colour for style in group_styles(comparison.groups)]
    for axis in distribution_figure(comparison, theme=theme).axes:
        assert [line.get_color() for line in axis.lines if line.get_linewidth() > 1] == colours


def test_hostile_names_are_drawn_as_text(hostile):
    figure = distribution_figure(hostile)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == 9
    assert any(label.startswith("_hidden") for label in labels)
    assert any(label.startswith("$a_{$") for label in labels)
    assert all(label.isprintable() for label in labels)
    svg = figure_bytes(figure, "svg")
    assert b"<script" not in svg


def test_figures_are_reproducible_and_leave_the_style_of_the_caller_unchanged(comparison):
    with mpl.rc_context({"axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        first = figure_bytes(distribution_figure(comparison), "svg")
        assert dict(mpl.rcParams) == before
    assert first == figure_bytes(distribution_figure(comparison), "svg")
    assert figure_bytes(distribution_figure(comparison), "png", dpi=40).startswith(b"\x89PNG")
