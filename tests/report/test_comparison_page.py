"""The page, the files and the figures of a comparison of methods."""

import base64
import csv
import io
import json
import re

import matplotlib as mpl
import numpy as np
import pytest
from tests.report.conftest import build
from tests.report.html_page import HtmlPage

from fairtransport import make_groups
from fairtransport.report import (
    COMPARISON_FILES,
    METRICS,
    Comparison,
    MethodOutcome,
    distribution_figure,
    verdict,
    write_comparison,
)
from fairtransport.report.pages.methods import comparison_page, safe_cell, to_csv, to_json
from fairtransport.report.style.figures import THEMES, figure_bytes, group_styles


@pytest.fixture(scope="module")
def page(comparison):
    return comparison_page(comparison)


@pytest.fixture(scope="module")
def hostile_page(hostile):
    return comparison_page(hostile)


def test_nothing_is_fetched(page):
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page)
    reader = HtmlPage(page)
    assert not {"script", "link", "iframe", "object", "form", "base"} & {tag for tag, _ in reader.elements}
    sources = [one["srcset"] for one in reader.all("source")] + [one["src"] for one in reader.all("img")]
    assert len(sources) == 5
    for source in sources:
        kind, _, content = source.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert base64.b64decode(content).startswith(b"<?xml")
    (policy,) = (one["content"] for one in reader.all("meta") if "http-equiv" in one)
    assert "default-src 'none'" in policy


def test_table_has_every_metric_of_every_method(page, comparison):
    text = HtmlPage(page).words
    for outcome in comparison.outcomes:
        for value in outcome.metrics.values():
            assert f"{value:.3f}" in text
    assert re.search(r"Noise floor \W \W \W 0.050 \W ", text)
    assert -1 < text.index(verdict(comparison)) < text.index("The metrics")


def test_hostile_names_are_inert(hostile_page):
    reader = HtmlPage(hostile_page)
    tags = {tag for tag, _ in reader.elements}
    assert "script" not in tags
    assert len(reader.all("img")) == 1
    assert not [key for _, attributes in reader.elements for key in attributes if key.startswith("on")]
    text = reader.words
    assert "<script>alert(1)</script>" in text  # as text
    assert "{{ 7 * 7 }} </style></svg>" in text  # neither a template nor an end of the styles
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", hostile_page)


def test_files(comparison, tmp_path):
    folder = tmp_path / "a" / "b"
    page = write_comparison(comparison, folder)
    assert page == folder / "index.html"
    assert {path.name for path in folder.iterdir()} == set(COMPARISON_FILES)
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_csv_has_methods_and_floor_with_all_digits(comparison):
    rows = list(csv.DictReader(io.StringIO(to_csv(comparison))))
    assert [row["method"] for row in rows] == ["LR", "COT", "noise floor"]
    for row, outcome in zip(rows, comparison.outcomes, strict=False):
        assert {metric: float(row[metric]) for metric in METRICS} == outcome.metrics
    assert rows[-1]["strong_pairwise_disparity"] == "0.05"
    assert rows[-1]["error_rate"] == ""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r@", " ="])
def test_no_text_cell_is_a_formula(start):
    assert safe_cell(f"{start}1+1") == f"'{start.strip()}1+1"


def test_json_contains_everything_but_rows(comparison):
    saved = json.loads(to_json(comparison))
    assert saved["verdict"] == verdict(comparison)
    assert saved["groups"] == [{"name": "Female", "rows": 120}, {"name": "Male", "rows": 120}]
    assert [method["metrics"] for method in saved["methods"]] == [one.metrics for one in comparison.outcomes]
    assert saved["noise_floor"] == comparison.floor
    assert saved["settings"] == comparison.settings
    assert max(map(len, (entry for entry in saved.values() if isinstance(entry, list)))) < 10


def sentences(*figures, floor=0.0368):
    """The verdict about methods of four groups, six pairs, with these pairs of error and sum over pairs."""
    names = [("LR", "Logistic regression, no parity"), ("COT", "Continuous transport")][: len(figures)]
    outcomes = tuple(
        MethodOutcome(
            name,
            title,
            {**dict.fromkeys(METRICS, 0.5), "error_rate": error, "strong_pairwise_disparity": disparity},
            1.0,
            np.array([0.1, 0.2, 0.3, 0.4]),
        )
        for (name, title), (error, disparity) in zip(names, figures, strict=True)
    )
    groups = make_groups(list("abcd"))
    floors = {"strong_pairwise_disparity": floor} if floor else {}
    return verdict(Comparison("toy", groups, np.zeros(4), np.array([0.2]), outcomes, floors, {}))


def test_whole_sentence_by_hand():
    # 0.81 / 0.0368 = 22.0; 0.81 / 6 = 0.135; 100 * (0.179 - 0.150) = 2.9
    assert sentences((0.150, 0.81), (0.179, 0.05)) == (
        "LR (logistic regression, no parity) scores the four groups differently: mean pairwise disparity 0.135, 22 "
        "times the noise floor of 0.006. COT (continuous transport) brings it to 0.008, 1.4 times the floor, and makes "
        "2.9 more errors per 100 people."
    )


@pytest.mark.parametrize(
    ("figures", "part"),
    [
        (((0.15, 0.06),), "scores the four groups alike: mean pairwise disparity 0.010, noise floor 0.006."),
        (((0.15, 0.8), (0.18, 0.03)), "brings it to 0.005, no more than chance would show, and"),
        (((0.15, 0.8), (0.15, 0.9)), "raises it to 0.150, 24 times the floor, and makes as many errors."),
        (((0.15, 9.5), (0.14, 10.5)), "raises it to 1.750"),
        (((0.15, 0.8), (0.14, 0.8)), "leaves it at 0.133, 22 times the floor, and makes 1.0 fewer errors per 100"),
    ],
)
def test_other_cases(figures, part):
    assert part in sentences(*figures)


def test_names_are_cleaned(hostile):
    assert verdict(hostile).isprintable()


@pytest.mark.parametrize("layout", ["wide", "tall"])
@pytest.mark.parametrize("methods", [("LR",), ("LR", "COT"), tuple("abcdefg"), ("LR", "A long method name")])
def test_two_panels_for_each_method_with_axes_in_words(layout, methods):
    figure = distribution_figure(build(methods=methods), layout=layout)
    assert len(figure.axes) == 2 * len(methods)
    labels = {axis.get_ylabel().replace("\n", " ") for axis in figure.axes} - {""}
    assert any(label.startswith("Share") for label in labels)
    assert any(label.startswith("Gap to target") for label in labels)
    assert "Threshold on the score" in {axis.get_xlabel() for axis in figure.axes}
    titles = {axis.get_title(loc="left") for axis in figure.axes} - {""}
    assert titles == {name if len(name) < 15 or layout == "wide" else "A long method…" for name in methods}


def test_panels_show_the_mean_over_pairs_that_the_page_names():
    comparison = build(names=("a", "b", "c"))
    titles = {axis.get_title(loc="right") for axis in distribution_figure(comparison).axes} - {""}
    means = [outcome.metrics["strong_pairwise_disparity"] / 3 for outcome in comparison.outcomes]  # three pairs
    assert titles == {f"mean disparity {mean:.3f}" for mean in means}
    assert all(f"{mean:.3f}" in verdict(comparison) for mean in means)


def test_lines_are_the_shares_above_each_threshold(comparison):
    above, gap = distribution_figure(comparison).axes[0], distribution_figure(comparison).axes[2]
    outcome = comparison.outcomes[0]
    for line, below, rows in zip(above.lines, gap.lines[1:], comparison.groups.rows, strict=True):
        thresholds, shares = line.get_data()
        expected = [100 * np.mean(outcome.scores[rows] > threshold) for threshold in thresholds]
        np.testing.assert_allclose(shares, expected, atol=1e-9)
        of_target = [100 * np.mean(comparison.target > threshold) for threshold in thresholds]
        np.testing.assert_allclose(below.get_ydata(), shares - of_target, atol=1e-9)


@pytest.mark.parametrize("theme", list(THEMES))
def test_a_group_has_one_colour_everywhere(theme):
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
