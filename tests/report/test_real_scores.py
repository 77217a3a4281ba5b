"""Pages and figures of scores without known bounds: real axes, ranks, and the same figures as the audit."""

import json
import re

import numpy as np
import pytest

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.report._what_if import shown_audit

FEW = {"inference": Inference(n_bootstrap=20, n_permutations=20, random_state=0)}


@pytest.fixture(scope="module")
def wages():
    rng = np.random.default_rng(0)
    group = rng.choice(["F", "M", "X"], 1500, p=[0.5, 0.4, 0.1])
    scores = np.exp(10 + 0.4 * rng.normal(0.3 * (group == "M"), 1.0))
    y = scores * np.exp(rng.normal(0, 0.2, 1500))
    scores[0] = 5e8
    return ft.audit(scores, y, sensitive_features={"sex": group}, **FEW), scores


def test_charts_leave_out_what_lies_far_from_all_others(wages):
    audit, scores = wages
    shown = shown_audit(audit)
    grid = shown.histograms.grid
    assert not grid.positions
    assert grid.high < 3e5
    assert shown.histograms.everyone.sum() == scores.size
    assert shown.metrics == audit.metrics
    inside = np.median(scores)
    assert shown.histograms.shares_above([inside])[0] == pytest.approx(
        audit.histograms.shares_above([inside])[0], abs=0.01
    )


def test_the_page_has_real_axes_and_the_errors_of_predictions(wages):
    audit, _ = wages
    page = audit.to_html()
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    assert data["ranks"]
    assert data["scoreTitle"] == "Prediction"
    assert data["range"][1] < 3e5
    assert data["audits"][0]["disparity"] == audit.metrics["rank_disparity"]
    for text in ("Predictions by sex", "Errors of the predictions", "Mean residuals by prediction", "top 10%",
                 "all shares of people selected", "Root mean squared error"):  # fmt: skip
        assert text in page, text
    assert {"residuals", "residual-deciles"} <= {*data["sheets"]}


def test_a_regression_compared_within_labels_has_a_page(wages):
    scores = wages[1]
    groups = np.resize(["F", "M", "X"], scores.size)
    labels = scores * np.linspace(0.9, 1.1, scores.size)
    within = ft.audit(scores, labels, sensitive_features={"sex": groups}, criterion="equalized_odds", **FEW)
    assert "Among people with similar outcomes" in within.to_html()


def test_a_page_of_two_audits_has_one_axis(wages):
    audit, scores = wages
    later = ft.audit(1.5 * scores, sensitive_features={"sex": np.resize(["F", "M", "X"], scores.size)}, **FEW)
    comparison = ft.compare(audit, later)
    page = comparison.to_html()
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    assert data["audits"][0]["fullBins"] == data["audits"][1]["fullBins"]
    assert "all shares of people selected" in page


@pytest.mark.parametrize("kind", ["distribution", "cdf", "pairs", "map"])
def test_figures_have_real_axes(wages, kind):
    display = wages[0].plot(kind)
    if kind in {"distribution", "cdf"}:
        assert display.ax_.get_xlabel() == "Prediction"
        assert display.ax_.get_xlim()[1] > 1e4
    if kind == "cdf":
        assert display.distance_ > 1000
    if kind == "pairs":
        assert "ranks" in display.ax_.get_xlabel()
