"""Displays draw the data, with the same colours everywhere, readable text and nothing cut off."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tests.report.conftest import QUICK, assert_legible, audit_of, draw_on_axes, legend_words, scored

import fairtransport as ft
from fairtransport.metrics import pairwise_distances
from fairtransport.report import (
    AdjustmentDisplay,
    CdfDisplay,
    DualDisplay,
    ErrorRateDisplay,
    GroupDistributionDisplay,
    PairwiseDisparityDisplay,
    ReliabilityDisplay,
    TransportMapDisplay,
)
from fairtransport.report._what_if import ERROR_RATES
from fairtransport.report.style.figures import group_styles
from fairtransport.transport.line import wasserstein

HOSTILE = ("$a_{$", "_hidden", "x" * 300, "\u05e9\u05dc\u05d5\u05dd")
OF_SCORES = (GroupDistributionDisplay, CdfDisplay, PairwiseDisparityDisplay)


@pytest.fixture(scope="module")
def rows():
    """Four groups and one of five rows."""
    scores, labels, groups = scored()
    return np.append(scores, np.linspace(0.9, 1, 5)), np.append(labels, [1] * 5), np.append(groups, ["few"] * 5)


@pytest.fixture(scope="module")
def classifier(rows):
    scores, labels, groups = rows
    X = np.column_stack([np.log(scores + 1e-3), np.sin(7 * scores)])
    return ft.QuantileRepairClassifier(LogisticRegression()).fit(X, labels, sensitive_features=groups), X


@pytest.fixture(scope="module")
def model(rows):
    scores, labels, groups = rows
    X = np.column_stack([scores, np.sin(7 * scores)])
    keep = groups != "few"
    cot = ft.TransportClassifier(parity_weight=0.3)
    return cot.fit(X[keep], labels[keep], sensitive_features=groups[keep])


def test_density_follows_the_scores(rows):
    scores, _, groups = rows
    display = GroupDistributionDisplay.from_predictions(scores, sensitive_features=groups, target=None)
    for name, line in zip(sorted(set(groups)), display.lines_, strict=True):
        x, y = line.get_data()
        assert y.mean() == pytest.approx(1, abs=1e-9)  # over cells of equal width
        if name != "few":
            assert (x * y).mean() == pytest.approx(scores[groups == name].mean(), abs=0.01)
    assert display.target_ is None
    tops = [line.get_ydata().max() for line in display.lines_[:4]]
    assert display.ax_.get_ylim()[1] == pytest.approx(1.05 * max(tops))  # the five rows do not set the height


def test_histogram_has_the_shares(rows):
    scores, _, groups = rows
    scores = scores.round(2)  # many of them on the edges of bins
    options = {"kind": "histogram", "n_bins": 10}
    display = GroupDistributionDisplay.from_predictions(scores, sensitive_features=groups, **options)
    for name, line in zip(sorted(set(groups)), display.lines_, strict=True):
        cells = np.maximum(np.ceil(np.round(100 * scores[groups == name]) / 10), 1)
        expected = [np.mean(cells == cell) for cell in range(1, 11)]
        np.testing.assert_allclose(line.get_ydata()[::2], expected, atol=1e-12)
    assert display.ax_.get_ylabel() == "Share in 0.1"


def test_target_is_shaded(rows):
    scores, _, groups = rows
    one = GroupDistributionDisplay.from_predictions(scores, sensitive_features=groups, target="a")
    corners = one.target_.get_paths()[0].vertices
    x, y = one.lines_[0].get_data()
    inside = [point for point in zip(x, y, strict=True) if np.isclose(corners, point, atol=0.2).all(axis=1).any()]
    assert len(inside) == x.size
    assert legend_words(one)[-1] == "Target"


def test_cdf_and_its_area(rows):
    scores, _, groups = rows
    display = CdfDisplay.from_predictions(scores, sensitive_features=groups)
    for name, line in zip(sorted(set(groups)), display.lines_, strict=True):
        x, y = line.get_data()
        expected = [np.mean(scores[groups == name] <= point) for point in x]
        np.testing.assert_allclose(y, expected, atol=1e-12)
    # The farthest pair of those that are judged, not the five rows.
    exact = wasserstein(scores[groups == "a"], scores[groups == "d"])
    assert display.distance_ == pytest.approx(exact, abs=1 / 16384)
    low, high = display.area_.get_paths()[0].vertices[:, 1].min(), display.area_.get_paths()[0].vertices[:, 1].max()
    assert (low, high) == (0, 1)
    assert f"Distance {exact:.3f}" in legend_words(display)
    other = CdfDisplay.from_predictions(scores, sensitive_features=groups, pair=("b", "few"))
    assert other.distance_ == pytest.approx(wasserstein(scores[groups == "b"], scores[groups == "few"]), abs=1 / 16384)


def test_pairwise_distances_are_exact(rows, audit):
    scores, _, groups = rows
    display = PairwiseDisparityDisplay.from_predictions(scores, sensitive_features=groups)
    expected = 100 * pairwise_distances(scores, sensitive_features=groups)
    np.testing.assert_allclose(display.image_.get_array(), expected)
    numbers = [text.get_text() for text in display.texts_]
    assert numbers == [f"{value:.1f}" for value in expected[~np.eye(5, dtype=bool)]]
    assert display.ax_.get_yticklabels()[4].get_text() == "few ?  5"
    of_audit = PairwiseDisparityDisplay.from_audit(audit)
    np.testing.assert_allclose(of_audit.image_.get_array(), 100 * audit.distances)


def test_maps_of_a_repair(rows):
    scores, _, groups = rows
    repair = ft.QuantileRepair("barycenter_w2", amount=0.7).fit(scores, sensitive_features=groups)
    display = TransportMapDisplay.from_estimator(repair)
    for name, line in zip(sorted(set(groups)), display.lines_, strict=True):
        before, after = line.get_data()
        np.testing.assert_allclose(after, repair.transform(before, sensitive_features=[name] * before.size), atol=1e-12)
    assert display.bands_ == []


def test_scores_before_and_after(rows):
    scores, _, groups = rows
    rng = np.random.default_rng(0)
    after = np.clip(scores**2 + rng.normal(0, 0.01, scores.size), 0, 1)
    display = TransportMapDisplay.from_predictions(scores, after, sensitive_features=groups)
    before, middle = display.lines_[0].get_data()
    np.testing.assert_allclose(middle, before**2, atol=0.03)
    assert len(display.bands_) == 4  # none for the five rows
    assert "few (n = 5, few rows)" in legend_words(display)


def test_duals_of_a_model_and_of_a_solution(model):
    points = np.linspace(0.1, 0.9, 11)
    display = DualDisplay.from_estimator(make_pipeline(model), points=points)
    for label, line in zip(model.groups_.labels, display.lines_, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), points)
        np.testing.assert_allclose(line.get_ydata(), model.duals_.of_group(label, points))
    rng = np.random.default_rng(0)
    solution = ft.transport.solve_dual(rng.beta(2, 5, 300), rng.beta(5, 2, 300), n_updates=200, random_state=0)
    both = DualDisplay.from_solution(solution, names=("z", "a"), points=points)  # the names' order is not the lines'
    drawn = dict(zip(legend_words(both), both.lines_, strict=True))
    np.testing.assert_allclose(drawn["z"].get_ydata(), solution.x_dual(points))
    np.testing.assert_allclose(drawn["a"].get_ydata(), solution.y_dual(points))


@pytest.mark.parametrize("display", OF_SCORES)
def test_from_estimator_passes_groups_if_prediction_needs_them(display, classifier, rows):
    model, X = classifier
    _, _, groups = rows
    scores = model.predict_proba(X, sensitive_features=groups)[:, 1]
    made = display.from_estimator(model, X, sensitive_features=groups)
    same = display.from_predictions(scores, sensitive_features=groups)
    if display is PairwiseDisparityDisplay:
        np.testing.assert_array_equal(made.image_.get_array(), same.image_.get_array())
    else:
        for one, other in zip(made.lines_, same.lines_, strict=True):
            np.testing.assert_array_equal(one.get_ydata(), other.get_ydata())
    plain = display.from_estimator(model.estimator_, X, sensitive_features=groups)
    assert plain.figure_ is plain.ax_.figure
    with pytest.raises(TypeError, match="predict_proba; str has none"):
        display.from_estimator("model", X, sensitive_features=groups)


@pytest.mark.parametrize(
    ("kind", "display"),
    [
        ("distribution", GroupDistributionDisplay),
        ("cdf", CdfDisplay),
        ("pairs", PairwiseDisparityDisplay),
        ("map", TransportMapDisplay),
    ],
)
def test_audit_plot_draws_each_kind_on_the_axes(audit, kind, display):
    _, ax = plt.subplots()
    made = audit.plot(kind, ax=ax)
    assert isinstance(made, display)
    assert made.ax_ is ax
    assert made.plot().ax_ is not ax  # again, elsewhere
    assert isinstance(audit.plot(), GroupDistributionDisplay)


def test_a_group_has_one_colour_everywhere(rows):
    audit = audit_of(("a", "b", "c"))
    colours = [style.colour for style in group_styles(audit.histograms.groups, audit.histograms.group_rows)]
    for kind in ("distribution", "cdf", "map"):
        assert [line.get_color() for line in audit.plot(kind).lines_] == colours
    scores, _, groups = rows
    repair = ft.QuantileRepair().fit(scores, sensitive_features=groups)
    lines = TransportMapDisplay.from_estimator(repair).lines_
    assert [line.get_color() for line in lines[:3]] == colours


@pytest.mark.parametrize("name", ["distribution", "cdf", "pairs", "map", "dual", "adjustment"])
def test_all_text_is_legible_at_six_centimetres(rows, model, name):
    scores, _, groups = rows
    constructor, data, options = {
        "distribution": (GroupDistributionDisplay.from_predictions, [scores], {"sensitive_features": groups}),
        "cdf": (CdfDisplay.from_predictions, [scores], {"sensitive_features": groups}),
        "pairs": (PairwiseDisparityDisplay.from_predictions, [scores], {"sensitive_features": groups}),
        "map": (TransportMapDisplay.from_predictions, [scores, scores**2], {"sensitive_features": groups}),
        "dual": (DualDisplay.from_estimator, [model], {}),
        "adjustment": (AdjustmentDisplay.from_history, [history()], {}),
    }[name]
    assert_legible(draw_on_axes(constructor, *data, width=6, **options))


@pytest.mark.parametrize("display", OF_SCORES)
@pytest.mark.parametrize("size", [6, 14])
def test_sixty_groups_stay_readable(display, size):
    scores, _, groups = scored([f"Region {k:02d}, with a long name" for k in range(60)], 4000)
    made = draw_on_axes(display.from_predictions, scores, sensitive_features=groups, width=size)
    ax = made.ax_
    assert ax.get_window_extent().height > 0.3 * made.figure_.bbox.height
    if display is PairwiseDisparityDisplay:
        assert made.image_.get_array().shape == (12, 12)
        assert "48 smaller groups left out" in ax.get_xlabel()
        every = display.from_predictions(scores, sensitive_features=groups, most=None)
        assert every.image_.get_array().shape == (60, 60)
    else:
        words = legend_words(made)
        assert len(words) <= 14
        assert any("smaller groups" in word or "more" in word for word in words)
        assert sum(line.get_linewidth() > 1 for line in made.lines_) <= 12


def test_hostile_names_are_text():
    scores, _, groups = scored(HOSTILE)
    for display in OF_SCORES:
        made = display.from_predictions(scores, sensitive_features=groups)
        made.figure_.draw_without_rendering()
        if display is not PairwiseDisparityDisplay:
            words = " ".join(legend_words(made))
            assert "$a_{$" in words
            assert "_hidden" in words
            assert "x" * 60 not in words


@pytest.mark.parametrize("display", OF_SCORES)
def test_without_matplotlib_the_error_says_what_to_install(display, audit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "fairtransport\[report\]"'):
        display.from_audit(audit)


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


@pytest.mark.parametrize("kind", ["errors", "reliability", "separation"])
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


@pytest.fixture(scope="module")
def audits():
    rng = np.random.default_rng(0)
    groups, y = rng.choice(["a", "b", "<c>"], 900), rng.integers(0, 2, 900)
    scores = rng.beta(2 + y, 3, 900)
    return {
        name: ft.audit(scores, y, sensitive_features=groups, criterion=name, **QUICK)
        for name in ("demographic_parity", "equalized_odds", "equal_opportunity")
    }


def test_the_lines_are_the_distribution_functions_of_each_outcome(audits):
    audit = audits["equalized_odds"]
    display = audit.plot("separation")
    rates = audit.error_curves([0.5])
    for label, name in ((0, "false_positive_rate"), (1, "true_positive_rate")):
        heights = [np.interp(0.5, line.get_xdata(), line.get_ydata()) for line in display.lines_[label]]
        assert heights == pytest.approx((1 - rates[name][:, 0]).tolist(), abs=1e-9)
        assert display.axes_[label].figure is display.figure_


def test_the_page_shows_the_outcomes_of_the_criterion(audits):
    pages = {name: audit.to_html() for name, audit in audits.items()}
    assert "outcomes-title" not in pages["demographic_parity"]
    for name, shown in (("equalized_odds", 2), ("equal_opportunity", 1)):
        page = pages[name]
        section = page[page.index('id="outcomes-title"') :].partition("</section>")[0]
        assert section.count("<svg") == shown
        assert "conflict in general" in section
        assert "<c>" not in section
        assert f"Average gap between two groups, {name.replace('_', ' ')}" in page


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
    points = history() if points is None else points
    return draw_on_axes(AdjustmentDisplay.from_history, points, width=width, height=height, **options)


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
    assert legend_words(display) == ["Disparity", "Noise floor: chance alone", "Alarm"]
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
    assert legend_words(display) == ["Disparity"]


def test_from_adjuster():
    points = history(30)
    display = AdjustmentDisplay.from_adjuster(SimpleNamespace(snapshot=lambda: {"history": points}), y="moved")
    assert display.line_.get_ydata().tolist() == [point["moved"] for point in points]
    other = plt.subplots()[1]
    assert display.plot(other).ax_ is other


@pytest.mark.parametrize(
    ("points", "options", "error", "match"),
    [
        ([], {}, ValueError, "history is empty"),
        ({"batch": 1}, {}, TypeError, "list of dicts, one for each batch; got dict"),
        ([1], {}, TypeError, "some entries are not dicts"),
        (history(), {"x": "zeal"}, ValueError, "x must be one of"),
        (history(), {"y": "zeal"}, ValueError, "y must be one of"),
        ([{"batch": 1}], {}, ValueError, "No entry .* 'batch' and 'disparity'"),
    ],
)
def test_bad_history(points, options, error, match):
    with pytest.raises(error, match=match):
        AdjustmentDisplay.from_history(points, **options)
    with pytest.raises(TypeError, match="int has no history"):
        AdjustmentDisplay.from_adjuster(3)
