"""Errors and calibration on the audit page, and the direction of the scores: words, tables and descriptions."""

from __future__ import annotations

import re

import pytest
from tests.report.html_page import HtmlPage

from fairtransport.report import WhatIf
from fairtransport.report._what_if import ERROR_RATES


@pytest.fixture(scope="module")
def page(audit):
    return audit.to_html()


def test_what_if_has_the_rates_of_the_audit(audit_of):
    audit = audit_of(decimals=2, options={"thresholds": [0.25, 0.5, 0.75]})
    what_if = WhatIf.of(audit)
    for at in audit.error_rates:
        outcome = what_if.at(at.threshold)
        for group, rates in zip(at.groups, outcome.error_rates, strict=True):
            assert set(rates) == set(ERROR_RATES)
            for name, estimate in rates.items():
                expected = group.rates[name]
                found = (estimate.value, estimate.low, estimate.high)
                assert found == pytest.approx((expected.value, expected.low, expected.high), abs=1e-9)
        assert outcome.overall_rates == pytest.approx({name: at.overall[name].value for name in ERROR_RATES})


def test_errors_by_group_are_on_the_page(audit, page):
    tree = HtmlPage(page)
    assert "Errors by group above" in page
    assert len(tree.all("table", id="error-rates")) == 1
    for at, group in enumerate(audit.error_rates[0].groups):
        start = page.index('id="error-rates"')
        row = re.compile(rf'<tr data-group="{at}">.*?</tr>', re.DOTALL).search(page, start)
        for rate in ("true_positive_rate", "false_positive_rate"):
            assert f"{group.rates[rate].value:.1%}" in row.group()
    for title in ("Largest differences of errors", "Calibration", "Ranking between groups", "Do scores mean the same"):
        assert title in page


def test_every_table_has_scoped_headers_and_every_picture_a_description(page):
    tree = HtmlPage(page)
    assert all(attributes.get("scope") in {"col", "row"} for attributes in tree.all("th"))
    for tag, attributes in tree.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes.get("aria-label"), attributes
    for landmark in ("header", "main", "footer"):
        assert len(tree.all(landmark)) == 1
    labelled = {attributes["aria-labelledby"] for attributes in tree.all("section")}
    assert labelled <= {attributes.get("id") for _, attributes in tree.elements}
    reliability = [attributes for attributes in tree.all("svg") if attributes.get("class") == "reliability"]
    assert len(reliability) == 5  # everyone and four groups
    assert all(attributes["role"] == "img" for attributes in reliability)
    assert reliability[0]["aria-label"].startswith("Reliability curve of Everyone. Mean score and share")


def test_words_follow_the_direction_of_the_scores(audit_of):
    high, low = (audit_of(options={"favourable": way}).to_html() for way in ("high", "low"))
    for page, word, other in ((high, "Selected", "Flagged"), (low, "Flagged", "Selected")):
        body = page[: page.index('<script type="application/json"')]
        assert f">{word}</button>" in body
        assert other not in body
    assert "Not flagged, lowest over highest" in low
    assert "the shares not flagged have a ratio of" in low
    assert '"favourable":"low"' in low.replace(" ", "")
