"""Distribution functions by group within each outcome, as a figure and on the page."""

from __future__ import annotations

import numpy as np
import pytest

import fairtransport as ft

QUICK = {"n_bootstrap": 50, "n_permutations": 50, "random_state": 0}


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


def test_without_labels_there_are_no_outcomes():
    audit = ft.audit([0.1, 0.9], sensitive_features=["a", "b"], **QUICK)
    with pytest.raises(ValueError, match="no labels"):
        audit.plot("separation")


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
