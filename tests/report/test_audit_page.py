"""The page as a file: complete, small, and safe for any names. tests/browser has its behaviour in a browser."""

import base64
import hashlib
import json
import re
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.report.conftest import QUICK, audit_of, scored
from tests.report.html_page import HtmlPage

import fairtransport as ft
from fairtransport.auditing import Inference, audit_histograms
from fairtransport.auditing.tables import calibration_tables, error_tables, figure_tables
from fairtransport.histograms import Grid, GroupHistograms
from fairtransport.report import WhatIf
from fairtransport.report.pages.audit import audit_page, verdict_points
from fairtransport.report.pages.comparison import audit_comparison_page, comparison_verdict
from fairtransport.report.pages.rendering import embedded_json


@pytest.fixture(scope="module")
def page(audit):
    return audit_page(audit)


@pytest.fixture(scope="module")
def reader(page):
    return HtmlPage(page)


@pytest.fixture(scope="module")
def repaired():
    """The same rows after repair."""
    scores, labels, groups = scored()
    moved = ft.QuantileRepair().fit_transform(scores, sensitive_features=groups)
    return ft.audit(moved, labels, sensitive_features={"group": groups}, **QUICK)


def test_page_is_self_contained(page, reader):
    assert page.startswith("<!DOCTYPE html>")
    script = reader.raw["script", ""].replace("http://www.w3.org/2000/svg", "")  # the name of a namespace
    assert not re.search(r"https?:|@import|url\(|import\(|fetch\(|XMLHttpRequest|WebSocket|eval\(|innerHTML", script)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    links = [attributes for tag, attributes in reader.elements if tag in {"link", "img", "iframe", "object", "base"}]
    assert links == [{"rel": "icon", "href": "data:,"}]
    assert not [
        name for _, attributes in reader.elements for name in attributes if name.startswith("on") or name == "style"
    ]


def test_content_policy_comes_first_and_matches_style_and_script(page, reader):
    (policy,) = (one["content"] for tag, one in reader.elements if tag == "meta" and "http-equiv" in one)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for part in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(reader.raw[part, ""].encode()).digest()).decode()
        assert rules[f"{part}-src"] == f"'sha256-{digest}'"
    assert {rules[rule] for rule in ("default-src", "form-action", "base-uri")} == {"'none'"}
    assert "http" not in policy
    assert page.index("http-equiv") < page.index("<style>")


def test_data_are_the_counts(reader, audit):
    data = reader.data
    assert data["range"] == [0.0, 1.0]
    assert data["labelled"] is True
    assert data["z"] == pytest.approx(1.959964, abs=1e-6)
    (one,) = data["audits"]
    assert one["bins"] == 16384
    assert one["disparity"] == audit.mean_readings["strong_pairwise_disparity"].value
    for index, group in enumerate(one["groups"]):
        nodes = np.cumsum(group["at"])
        masses = np.zeros((2, 16385))
        masses[:, nodes] = group["masses"]
        np.testing.assert_array_equal(masses, audit.histograms.by_class[:, index])
        assert group["rows"] == audit.groups[index].rows
        assert len(group["images"]) == len(nodes)
        assert all(isinstance(mass, int) for mass in group["masses"][0])
    settings = {"range", "ranks", "scoreTitle", "threshold", "confidence", "z", "tukey", "favourable", "labelled"}
    settings.add("minJudgedRows")
    assert set(data) == {*settings, "groups", "audits", "sheets"}
    tables = [*figure_tables(audit), *error_tables(audit), *calibration_tables(audit)]
    assert {table.key for table in tables} | {"distances", "reliability"} == set(data["sheets"])
    assert data["sheets"]["groups"][1][2] == audit.groups[0].mean  # all digits


NAMES = st.text(min_size=1, max_size=40)
HOSTILE = (
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "]]>",
    "\u2028",
    '" onload="x',
    "'><svg/onload=x>",
    "&lt;",
    "{{ 7*7 }}",
    "{% raw %}",
    "\u202e",
    "\x00\x1b[31m",
    "\ud800",
    "</title>",
    "</style>",
    "x" * 300,
    "",
    "=1+1",
    "$a_{$",
)


def skeleton(page):
    """Elements and names of attributes: what names from outside may not change."""
    return [(tag, sorted(attributes)) for tag, attributes in HtmlPage(page).elements]


def small_page(names, column, other):
    """A page where every text comes from outside."""
    groups = ft.make_groups({column: list(names)}).select(np.empty(0, dtype=int))
    masses = np.arange(2 * 3 * 9.0).reshape(2, 3, 9)
    histograms = GroupHistograms(Grid(n_bins=8), groups, masses, None, masses.sum(axis=(0, 2)).astype(np.int64))
    quick = Inference(n_bootstrap=20, n_permutations=20, random_state=0)
    audit = audit_histograms(histograms, strata={other: histograms}, set_aside={other: 3}, inference=quick)
    return audit_page(audit, title=other)


HARMLESS = small_page(("a", "b", "c"), "group", "north")


@settings(max_examples=20)
@given(names=st.lists(NAMES | st.sampled_from(HOSTILE), min_size=3, max_size=3, unique=True), column=NAMES)
def test_names_do_not_change_the_elements(names, column):
    hostile = small_page(names, column, names[0])
    hostile.encode()  # no half of a surrogate
    assert skeleton(hostile) == skeleton(HARMLESS)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066\u2067]", hostile)


def test_comparison_has_both_audits_and_what_changed(audit, repaired):
    comparison = ft.compare(audit, repaired, names=("<b>Old</b>", "New"))
    reader = HtmlPage(comparison.to_html())
    assert reader.tags["b"] == 0
    assert "<b>Old</b>" in reader.words
    for change in comparison.mean_changes.values():
        assert f"{abs(change.value):.3f}" in reader.words or f"{100 * abs(change.value):.1f} points" in reader.words
    assert len(reader.data["audits"]) == 2
    assert reader.data["audits"][0]["groups"][0]["images"] is None  # no repair here
    assert audit_comparison_page(comparison, title="Two").count("<h1>Two</h1>") == 1


def test_groups_of_the_second_audit_are_put_in_the_order_of_the_first():
    scores, labels, groups = scored()
    one = ft.audit(scores, labels, sensitive_features=groups, **QUICK)
    counted = one.histograms
    turned = ft.make_groups(list("abcd")[::-1])
    assert turned.labels == tuple("abcd")
    order = [3, 1, 0, 2]
    labels = tuple(counted.groups.labels[k] for k in order)
    other_groups = type(turned)(labels, labels, counted.groups.memberships, counted.groups.columns, "crossed", "error")
    shuffled = GroupHistograms(counted.grid, other_groups, counted.masses[:, order], None, counted.rows[order])
    two = audit_histograms(shuffled, **QUICK)
    comparison = ft.compare(one, two)
    assert comparison.positions == (2, 1, 3, 0)
    assert all(change.value == pytest.approx(0, abs=1e-12) for change in comparison.thresholds[0].rates)
    data = HtmlPage(comparison.to_html()).data
    assert data["audits"][0]["groups"] == data["audits"][1]["groups"]


def test_ten_million_rows_make_a_small_page():
    rng = np.random.default_rng(0)
    masses = np.zeros((2, 8, 16385))
    for group in range(8):
        shares = np.diff(np.linspace(0, 1, 16386) ** (1 + 0.1 * group))
        masses[:, group] = rng.multinomial(625_000, shares / shares.sum(), size=2)
    groups = ft.make_groups(list("abcdefgh")).select(np.empty(0, dtype=int))
    counted = GroupHistograms(Grid(), groups, masses, None, masses.sum(axis=(0, 2)).astype(np.int64))
    audit = audit_histograms(counted, **QUICK)
    assert audit.rows == 10_000_000
    page = audit_page(audit)
    assert len(page.encode()) < 3_000_000
    assert HtmlPage(page).data["audits"][0]["bins"] == 8192
    for threshold in (0.25, 0.5, 0.625):  # exact at the page's own resolution
        expected = counted.shares_above([threshold])[0]
        rates = [rate.value for rate in WhatIf.of(audit).at(threshold).rates]
        np.testing.assert_allclose(rates, expected, atol=1e-12)


@pytest.mark.trust
def test_two_hundred_weighted_groups_stay_below_five_megabytes():
    rng = np.random.default_rng(0)
    masses = rng.random((2, 200, 1025))
    groups = ft.make_groups([f"group number {code}" for code in range(200)]).select(np.empty(0, dtype=int))
    counted = GroupHistograms(Grid(n_bins=1024), groups, masses, masses**2, np.full(200, 5000))
    page = audit_page(audit_histograms(counted, inference=Inference(n_bootstrap=20, n_permutations=20, random_state=0)))
    assert 500_000 < len(page.encode()) < 5_000_000


def test_paths_that_cannot_be_written(audit, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing does not exist; create it first"):
        audit.to_html(tmp_path / "missing" / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        audit.to_html(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ft.compare(audit, audit).to_html(tmp_path / "missing" / "report.html")
    with pytest.raises(TypeError, match="colour"):
        audit.to_html(colour="red")


def test_without_jinja2_the_error_says_what_to_install(audit, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'jinja2: pip install "fairtransport\[report\]"'):
        audit.to_html()


def test_the_cost_of_repair_is_a_further_point(audit):
    what_if = WhatIf.of(audit)
    *points, repair = verdict_points(audit, what_if)
    assert tuple(points) == audit.verdict.points
    more = 100 * (what_if.at(0.5, 1.0).error - what_if.at(0.5).error)
    assert repair.startswith("Full repair, measured on the rows it is fitted to, leaves")
    assert f"{abs(more):.1f} {'more' if more > 0 else 'fewer'} wrong decisions per 100 people" in repair
    assert verdict_points(audit, WhatIf.of(audit, repair_target=None)) == list(audit.verdict.points)


def test_comparison_says_direction_size_and_noise(audit, repaired):
    pairs = ((audit, repaired), (repaired, audit), (repaired, repaired))
    better, worse, same = (comparison_verdict(ft.compare(*pair)) for pair in pairs)
    assert (better.status, worse.status, same.status) == ("smaller", "larger", "same")
    assert better.sentence.startswith("The groups are closer together")
    assert "beyond noise" in better.sentence
    assert worse.sentence.startswith("The groups are farther apart")
    assert "within noise" in same.sentence
    assert any(point.startswith("Wrong decisions: ") for point in better.points)


@pytest.mark.parametrize(("n_groups", "hidden"), [(16, 0), (30, 0), (40, 28)])
def test_long_tables_hide_many_rows_or_none_and_never_the_largest_group(n_groups, hidden):
    names = tuple(f"group {number:02d}" for number in range(n_groups))
    sizes = 5 + np.arange(n_groups)
    groups = np.repeat(names, sizes)
    audit = ft.audit(np.linspace(0, 1, groups.size), sensitive_features=groups, **QUICK)
    table = re.search(r'id="table-groups".*?</table>', audit.to_html(), re.DOTALL)[0]
    assert len(re.findall(r'<tr class="rest">', table)) * (" long" in table) == hidden
    assert "rest" not in re.search(rf"<tr[^>]*><th[^>]*>(?:(?!<tr).)*{names[-1]}", table, re.DOTALL)[0]


def test_names_are_escaped_and_many_groups_cut():
    html = audit_of(("<script>alert(1)</script>", "\u202eb", *(f"g{k}" for k in range(40))), 3000)._repr_html_()
    assert "<script" not in html
    assert "\u202e" not in html
    assert html.count("<tr>") == 13
    assert "30 smaller groups are not shown" in html


def test_needs_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    html = ft.audit(np.linspace(0, 1, 40), sensitive_features=["a", "b"] * 20, **QUICK)._repr_html_()
    assert "few rows" in html
    assert "Wrong" not in html  # there are no labels


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
    assert "Do scores mean the same" in page


def test_words_follow_the_direction_of_the_scores():
    high, low = (audit_of(options={"favourable": way}).to_html() for way in ("high", "low"))
    for page, word, other in ((high, "Selected", "Flagged"), (low, "Flagged", "Selected")):
        body = page[: page.index('<script type="application/json"')]
        assert f">{word}</button>" in body
        assert other not in body
    assert "Not flagged, lowest over highest" in low
    assert "the shares not flagged have a ratio of" in low
    assert '"favourable":"low"' in low.replace(" ", "")


TEXT = st.text(st.characters(exclude_categories=("Cs",)))


@settings(max_examples=50)
@given(
    st.recursive(
        TEXT | st.integers() | st.booleans() | st.none(), lambda one: st.lists(one) | st.dictionaries(TEXT, one)
    )
)
@example("</script><!--<script>\u2028\u2029&amp;]]>")
def test_json_round_trips_and_cannot_end_its_element(value):
    text = embedded_json(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029]", text)


def test_numbers_that_are_not_finite_are_rejected():
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json([float("nan")])
