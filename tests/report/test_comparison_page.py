from __future__ import annotations

import base64
import re
from datetime import UTC, datetime

import pytest
from tests.report.html_page import HtmlPage

from fairtransport.report import COMPARISON_FILES, verdict, write_comparison
from fairtransport.report.pages.methods import collect_comparison_page, render_comparison_page

WRITTEN = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def page(comparison):
    return render_comparison_page(collect_comparison_page(comparison, written=WRITTEN))


@pytest.fixture(scope="module")
def hostile_page(hostile):
    return render_comparison_page(collect_comparison_page(hostile, written=WRITTEN))


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


def test_verdict_comes_first(page, comparison):
    text = HtmlPage(page).words
    assert verdict(comparison) in text
    assert text.index(verdict(comparison)) < text.index("The metrics")


def test_table_has_every_metric_of_every_method(page, comparison):
    text = HtmlPage(page).words
    for outcome in comparison.outcomes:
        for value in outcome.metrics.values():
            assert f"{value:.3f}" in text
    assert re.search(r"Noise floor \W \W \W 0.050 \W ", text)


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
