"""The audit page in a browser without network: the sliders show what Python computes."""

import csv
import io
import re
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.conftest import HOSTILE as NAMES

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.report import WhatIf

pytestmark = pytest.mark.browser

QUICK = {"inference": Inference(n_bootstrap=60, n_permutations=60, random_state=0)}
HOSTILE = (*NAMES, "</script><script>alert(3)</script>\u2028line", "{{ 7 * 7 }}")


def four_groups(n_rows=6000):
    """Scores on a grid of 1/1024, so that rows and their counts are the same thing; the last group has 5 rows."""
    rng = np.random.default_rng(0)
    codes = rng.choice(4, size=n_rows, p=[0.1, 0.2, 0.3, 0.4])
    codes[:5] = 4
    logit = rng.normal(size=n_rows) + np.array([-0.9, -0.3, -0.4, 0.5, 3.0])[codes] - 0.5
    scores = np.round(1024 / (1 + np.exp(-logit))) / 1024
    labels = (rng.random(n_rows) < scores).astype(int)
    names = np.array(["Black, Female", "Black, Male", "White, Female", "White, Male", "Five rows"])
    return scores, labels, names[codes]


@pytest.fixture(scope="module")
def rows():
    return four_groups()


@pytest.fixture(scope="module")
def audit(rows):
    scores, labels, groups = rows
    return ft.audit(scores, labels, sensitive_features={"race and sex": groups}, **QUICK)


@pytest.fixture(scope="module")
def what_if(audit):
    return WhatIf.of(audit)


@pytest.fixture(scope="module")
def repaired(rows):
    scores, _, groups = rows
    repair = ft.QuantileRepair("barycenter_w2", groups=ft.GroupPolicy(min_size=1))
    return repair.fit_transform(scores, sensitive_features=groups)


@pytest.fixture(scope="module")
def files(tmp_path_factory, audit, rows, repaired):
    """Pages of every kind, by name."""
    folder = tmp_path_factory.mktemp("pages")
    scores, labels, groups = rows
    rng = np.random.default_rng(1)
    after = ft.audit(repaired, labels, sensitive_features={"race and sex": groups}, **QUICK)
    codes = rng.integers(60, size=9000)
    many = ft.audit(
        np.clip(rng.beta(2, 4, 9000) + codes / 300, 0, 1),
        rng.integers(2, size=9000),
        sensitive_features=np.array([f"Region {code}, people with a rather long name" for code in range(60)])[codes],
        **QUICK,
    )
    bad = rng.integers(len(HOSTILE), size=3000)
    hostile = ft.audit(
        rng.beta(2, 4, 3000),
        rng.integers(2, size=3000),
        sensitive_features={"</style><b>": np.array(HOSTILE, dtype=object)[bad]},
        strata=np.array(["</table>", "=1+1"], dtype=object)[rng.integers(2, size=3000)],
        thresholds=[0.5, 0.25],
        **QUICK,
    )
    few = ft.audit(300 + 550 * scores[:40], sensitive_features=groups[:40], range=(300, 850), **QUICK)
    both = ft.audit(
        scores,
        labels,
        sensitive_features={"one": groups, "two": groups == "White, Male"},
        groups=ft.GroupPolicy(crossed=False),
        **QUICK,
    )
    return {
        "four": audit.to_html(folder / "four.html"),
        "compare": ft.compare(audit, after).to_html(folder / "compare.html"),
        "sixty": many.to_html(folder / "sixty.html"),
        "hostile": hostile.to_html(folder / "hostile.html", title="<img src=x onerror=alert(4)>"),
        "few": few.to_html(folder / "few.html"),
        "each": both.to_html(folder / "each.html"),
    }


KINDS = ["four", "compare", "sixty", "hostile", "few", "each"]


def cell(page, group, name):
    return page.locator(f'#live tr[data-group="{group}"] [data-cell="{name}"]')


def value(locator):
    return float(locator.get_attribute("data-value"))


def strip(page, name, number=0):
    return value(page.locator(f'.strip[data-audit="{number}"] [data-live="{name}"]'))


def settle(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def put(page, *, threshold=None, amount=None):
    if threshold is not None:
        page.fill("#threshold-number", str(threshold))
    if amount is not None:
        page.fill("#amount-number", str(100 * amount))
    settle(page)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_opens_without_messages_and_fits_the_screen(open_page, files, kind, width, dark):
    with open_page(files[kind], width=width, dark=dark) as page:
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".plot svg path.curve").count() > 0
        assert page.locator(".verdict").inner_text().endswith(".")
        assert page.seen.requests == [files[kind].as_uri()]


@pytest.mark.parametrize("favourable", ["high", "low"])
def test_groups_of_a_few_people_are_listed_without_figures(open_page, rows, tmp_path, favourable):
    """Neither tables nor curves nor files nor what the mouse shows have anything of a group of 4 rows."""
    scores, labels, groups = (each[1:] for each in rows)
    audit = ft.audit(scores, labels, sensitive_features={"group": groups}, favourable=favourable, **QUICK)
    at = audit.names.index("Five rows")
    expected = WhatIf.of(audit.shown)
    with open_page(audit.to_html(tmp_path / "page.html")) as page:
        box = page.locator(f'#chips input[value="{at}"]')
        for threshold, amount in ((0.5, 0.0), (0.3, 0.0), (0.3, 0.5)):
            put(page, threshold=threshold, amount=amount)
            page.click('[data-choose="all"]')
            settle(page)
            figures = page.locator(f'tr[data-group="{at}"] [data-cell]').all_inner_texts()
            assert {text.strip() for text in figures} == {"\N{EN DASH}"}
            assert (box.is_checked(), box.is_enabled()) == (False, False)
            assert page.locator(f'path.curve[data-group="{at}"]').count() == 0
            outcome = expected.at(threshold, amount)
            assert strip(page, "disparity") == pytest.approx(outcome.disparity, abs=1e-9)
            assert strip(page, "ratio") == pytest.approx(outcome.ratio.value, abs=1e-9)
            assert "NaN" not in page.locator("main").inner_text()
        page.hover('[data-chart="above"] .plot')
        assert "Five rows" not in page.locator('[data-chart="above"] .readout').inner_text()
        with page.expect_download() as download:
            page.click('[data-save="live"]')
        line = next(line for line in download.value.path().read_text().splitlines() if "Five rows" in line)
        assert line == "Five rows,4,0.3,0.5,,,,"


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.35, 0.5, 0.7001, 1.0])
@pytest.mark.parametrize("amount", [0.0, 0.37, 1.0])
def test_sliders_show_what_python_computes(open_page, files, what_if, threshold, amount):
    expected = what_if.at(threshold, amount)
    with open_page(files["four"]) as page:
        put(page, threshold=threshold, amount=amount)
        for group, rate in enumerate(expected.rates):
            assert value(cell(page, group, "rate-0")) == pytest.approx(rate.value, abs=1e-12)
            assert cell(page, group, "rate-0").inner_text() == f"{100 * rate.value:.1f}%"
            low, high = map(float, cell(page, group, "interval-0").get_attribute("data-value").split())
            assert (low, high) == pytest.approx((rate.low, rate.high), abs=1e-9)
            assert value(cell(page, group, "error-0")) == pytest.approx(expected.errors[group], abs=1e-12)
        for name in ("overall", "error", "disparity"):
            assert strip(page, name) == pytest.approx(getattr(expected, name), abs=1e-9)
        if expected.rates[expected.highest].value > 0:
            assert strip(page, "ratio") == pytest.approx(expected.ratio.value, abs=1e-12)
        for group, rates in [*enumerate(expected.error_rates), ("everyone", expected.overall_rates)]:
            for name, rate in rates.items():
                texts = page.locator(f'#error-rates tr[data-group="{group}"] [data-cell="{name}"] span')
                shown = [] if rate is None else [getattr(rate, "value", rate)]
                assert texts.nth(0).text_content() == (f"{100 * shown[0]:.1f}%" if shown else "\N{EN DASH}")
                if shown and group != "everyone":
                    assert texts.nth(1).text_content() == f"{100 * rate.low:.1f}% to {100 * rate.high:.1f}%"
        assert "equalized odds are violated by" in page.locator("#errors-summary").inner_text()
        assert page.locator('[data-chart="positives"] path.curve').count() >= 4


def test_thresholds_of_the_audit_show_its_figures(open_page, tmp_path, rows):
    scores, labels, groups = rows
    scores = np.where(scores < 0.6, scores, 0.60001 + 1e-5 * (scores > 0.7))  # two scores and a threshold in one bin
    audit = ft.audit(scores, labels, sensitive_features=groups, thresholds=[0.5, 0.60001], **QUICK)
    with open_page(audit.to_html(tmp_path / "asked.html")) as page:
        put(page, threshold=0.60001)
        at = audit.thresholds[1]
        for group, rate in enumerate(at.rates):
            assert value(cell(page, group, "rate-0")) == rate.value
        assert strip(page, "ratio") == at.ratio.value
        assert strip(page, "error") == audit.error_rates[1].overall["error_rate"].value
        gap = audit.error_rates[1].gaps["true_positive_rate"].difference.value
        expect(page.locator("#errors-summary")).to_contain_text(f"{100 * gap:.1f} points of true positive rates")


@pytest.mark.parametrize(("threshold", "amount"), [(25_000, 0.0), (31_234.5, 0.37), (40_000, 1.0)])
def test_sliders_measure_ranks_where_scores_have_no_bounds(open_page, tmp_path, threshold, amount):
    rng = np.random.default_rng(0)
    group = rng.choice(["F", "M", "X"], 1500, p=[0.5, 0.4, 0.1])
    scores = np.append(np.exp(10 + 0.4 * rng.normal(0.3 * (group[1:] == "M"), 1.0)), 5e8)
    audit = ft.audit(scores, sensitive_features={"sex": group}, **QUICK)
    expected = WhatIf.of(audit).at(threshold, amount)
    with open_page(audit.to_html(tmp_path / "real.html")) as page:
        assert strip(page, "disparity") == audit.metrics["rank_disparity"]
        put(page, threshold=threshold, amount=amount)
        for index, rate in enumerate(expected.rates):
            assert value(cell(page, index, "rate-0")) == pytest.approx(rate.value, abs=1e-12)
        if amount:
            assert strip(page, "disparity") == pytest.approx(expected.disparity, abs=1e-9)


def test_a_group_of_five_rows_is_not_judged(open_page, files):
    with open_page(files["four"]) as page:
        row = page.locator("#live tbody tr", has_text="Five rows")
        assert "few rows" in row.inner_text()
        assert float(row.locator('[data-cell="rate-0"]').get_attribute("data-value")) > 0.9  # the highest rate of all
        assert "Five rows" not in page.locator("#live-summary").inner_text()
        assert "Five rows" not in page.locator(".verdict").inner_text()
        assert "Five rows (5 rows)" in page.locator(".points li", has_text="shown but not judged").inner_text()


def test_chosen_groups_are_compared(open_page, files, what_if):
    expected = what_if.at(0.5, chosen=[0, 2])
    with open_page(files["four"]) as page:
        page.click("[data-choose=none]")
        expect(page.locator("#live-summary")).to_have_text(re.compile("^Choose two groups"))
        assert page.locator(".plot path.curve").count() == 0
        for group in (0, 2):
            page.check(f'#chips input[value="{group}"]')
        settle(page)
        assert page.locator('[data-chart="above"] path.curve').count() == 2
        assert strip(page, "ratio") == pytest.approx(expected.ratio.value, abs=1e-12)
        assert strip(page, "disparity") == pytest.approx(expected.disparity, abs=1e-9)
        expect(page.locator("#live-summary")).to_have_text(re.compile("^Of the 2 chosen groups"))
        page.click("[data-choose=all]")
        settle(page)
        assert page.locator('[data-chart="above"] path.curve').count() == 5


def test_two_audits_side_by_side(open_page, files, rows, repaired, what_if):
    _, _, groups = rows
    with open_page(files["compare"]) as page:
        assert page.locator("#amount").count() == 0
        put(page, threshold=0.3)
        before = what_if.at(0.3)
        for group, name in enumerate(sorted(set(groups))):
            assert value(cell(page, group, "rate-0")) == pytest.approx(before.rates[group].value, abs=1e-12)
            later = np.mean(repaired[groups == name] > 0.3)
            assert value(cell(page, group, "rate-1")) == pytest.approx(later, abs=0.003)
            change = value(cell(page, group, "rate-1")) - value(cell(page, group, "rate-0"))
            assert value(cell(page, group, "change")) == pytest.approx(change, abs=1e-12)
        assert strip(page, "disparity", 1) < 0.1 * strip(page, "disparity", 0)
        assert "beyond noise" in page.locator(".verdict").inner_text()


def test_keyboard_reaches_every_control(open_page, files, what_if):
    with open_page(files["four"]) as page:
        page.focus("#threshold")
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        settle(page)
        assert page.input_value("#threshold-number") == "0.53"
        assert value(cell(page, 3, "rate-0")) == pytest.approx(what_if.at(0.53).rates[3].value, abs=1e-12)
        assert page.get_attribute("#threshold", "aria-valuetext") == "0.53"
        page.keyboard.press("Tab")  # on to repair
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "amount"
        page.keyboard.press("End")
        settle(page)
        assert strip(page, "error") == pytest.approx(what_if.at(0.53, 1.0).error, abs=1e-12)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # reset
        settle(page)
        assert page.input_value("#threshold-number") == "0.5"
        page.focus('#chips input[value="1"]')
        page.keyboard.press("Space")
        settle(page)
        assert page.locator('[data-chart="above"] path.curve').count() == 4
        ring = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(ring) != "none"


@pytest.mark.parametrize("kind", KINDS)
def test_every_element_has_an_accessible_name(open_page, files, kind):
    with open_page(files[kind]) as page:
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("input, button, [role=img], [role=region], section")].filter((one) =>
                !(one.labels && one.labels.length) && !one.getAttribute("aria-label")
                && !one.getAttribute("aria-labelledby") && !one.textContent.trim()).map((one) => one.outerHTML)"""
        )
        assert nameless == []
        assert page.locator("table").count() == page.locator("table > caption").count()
        assert page.locator("thead th:not([scope]), tbody th:not([scope])").count() == 0
        assert page.get_attribute("#live-summary", "aria-live") == "polite"
        headings = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))")
        assert headings[0] == 1
        assert all(later - sooner <= 1 for sooner, later in pairwise(headings))


def test_pointer_reads_shares_and_drags_the_threshold(open_page, files, what_if):
    with open_page(files["four"]) as page:
        plot = page.locator('[data-chart="above"] .plot')
        plot.scroll_into_view_if_needed()
        box = plot.locator("svg").bounding_box()
        at = (box["x"] + 44 + 0.25 * (box["width"] - 56), box["y"] + box["height"] / 2)
        page.mouse.move(*at)
        readout = page.locator('[data-chart="above"] .readout')
        text = readout.inner_text()
        assert "White, Male" in text
        threshold = float(re.search(r"Above ([\d.]+)", text).group(1))
        assert threshold == pytest.approx(0.25, abs=0.01)
        shares = [float(share) / 100 for share in re.findall(r"([\d.]+)%", text)]
        assert shares == pytest.approx([rate.value for rate in what_if.at(threshold).rates], abs=0.01)
        page.mouse.down()
        page.mouse.move(at[0] + 0.25 * (box["width"] - 56), at[1], steps=4)
        page.mouse.up()
        settle(page)
        assert float(page.input_value("#threshold-number")) == pytest.approx(0.5, abs=0.01)
        page.mouse.move(5, 5)
        assert readout.is_hidden()


def test_sixty_groups_stay_readable(open_page, files):
    with open_page(files["sixty"]) as page:
        assert page.locator('[data-chart="above"] path.curve:not(.other)').count() == 12
        assert page.locator("#live tbody tr:visible").count() == 15
        shown = page.locator('#live tbody tr:visible [data-cell="rate-0"]')
        rates = [float(one.get_attribute("data-value")) for one in shown.all()]
        assert rates == sorted(rates)  # the lowest first
        page.locator("section", has=page.locator("#live")).get_by_text("Show all 60").click()
        assert page.locator("#live tbody tr:visible").count() == 60
        page.locator("#live th[data-sort=rate-0] button").click()
        assert page.locator("#live th[data-sort=rate-0]").get_attribute("aria-sort") == "descending"
        page.fill("#filter", "region 17")
        assert page.locator("#chips .chip:visible").count() == 1
        page.click("[data-choose=named]")
        settle(page)
        assert page.locator('[data-chart="above"] path.curve').count() == 12
        page.locator("#live tbody tr:visible").first.hover()
        assert page.locator("table.matrix tbody tr").count() == 12


def test_hostile_names_are_only_text(open_page, files):
    with open_page(files["hostile"]) as page:
        text = page.locator("#live tbody").inner_text()
        for name in ("<script>alert(1)</script>", "=cmd()", "\U0001f600", "x" * 50, "{{ 7 * 7 }}", "onerror=alert(2)"):
            assert name in text
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2  # our data and our script
        assert page.locator("h1").inner_text() == "<img src=x onerror=alert(4)>"
        assert "\u202e" not in page.content()
        plot = page.locator('[data-chart="above"] .plot')
        plot.hover()
        assert "<script>alert(1)</script>" in page.locator('[data-chart="above"] .readout').inner_text()
        put(page, threshold=0.2, amount=0.5)


def saved(page, key):
    with page.expect_download() as download:
        page.click(f'[data-save="{key}"]')
    text = download.value.path().read_text(encoding="utf-8-sig")
    return download.value.suggested_filename, list(csv.reader(io.StringIO(text, newline="")))


def test_tables_are_saved_with_all_digits_and_without_formulas(open_page, files, what_if, audit):
    with open_page(files["hostile"], accept_downloads=True) as page:
        for key in ("live", "groups", "distances", "figures", "thresholds", "strata", "pairs"):
            name, table = saved(page, key)
            assert name.endswith(".csv")
            assert not [text for row in table for text in row if re.match(r"\s*[=+@]", text)]
            assert not [text for row in table for text in row if re.match(r"-\D", text)]
            assert len({len(row) for row in table}) == 1
        assert "'=cmd()" in {row[0] for row in saved(page, "groups")[1]}
    with open_page(files["four"], accept_downloads=True) as page:
        put(page, threshold=0.3, amount=0.25)
        name, table = saved(page, "live")
        assert name == "selected.csv"
        outcome = what_if.at(0.3, 0.25)
        for row, rate, error in zip(table[1:], outcome.rates, outcome.errors, strict=True):
            assert [float(number) for number in row[2:]] == pytest.approx(
                [0.3, 0.25, rate.value, rate.low, rate.high, error], abs=1e-9
            )
        distances = np.array([[float(number) for number in row[1:]] for row in saved(page, "distances")[1][1:]])
        np.testing.assert_allclose(distances, audit.distances, atol=1e-15)


def test_content_policy_blocks_other_scripts_and_requests(open_page, files):
    with open_page(files["four"], expect_messages=True) as page:
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'hacked = 1'}))"
        )
        assert page.evaluate("typeof hacked") == "undefined"
        assert page.evaluate("fetch('https://example.org').then(() => 'sent', () => 'refused')") == "refused"
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://example.org/a.png'}))")
        page.wait_for_timeout(100)
        assert page.seen.outside == []


def contrast(page, selector):
    """Contrast of text to the page, by the formula of WCAG."""
    colours = page.evaluate(
        """(selector) => [getComputedStyle(document.querySelector(selector)).color,
            getComputedStyle(document.body).backgroundColor]
            .map((one) => one.match(/[\\d.]+/g).slice(0, 3).map(Number))""",
        selector,
    )
    light = []
    for colour in colours:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_have_enough_contrast(open_page, files, dark):
    with open_page(files["four"], dark=dark) as page:
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
        for selector in (".verdict", ".eyebrow", "figcaption", ".few-rows", "caption", ".method dd"):
            assert contrast(page, selector) >= 4.5, selector


def test_print_has_everything_but_the_controls(open_page, files):
    with open_page(files["sixty"], dark=True) as page:
        pdf = page.pdf(format="A4", prefer_css_page_size=True)
        assert pdf.startswith(b"%PDF")
        assert len(pdf) > 50_000
        page.emulate_media(media="print")
        assert page.locator("#panel").is_hidden()
        assert page.locator(".save:visible").count() == 0
        assert page.locator("#live tbody tr:visible").count() == 60
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_tables_need_no_script(open_page, files, audit):
    with open_page(files["four"], java_script_enabled=False) as page:
        text = page.locator("main").inner_text()
        assert "need JavaScript" in text
        assert page.locator("#panel").is_hidden()
        for rate in audit.thresholds[0].rates:
            assert f"{100 * rate.value:.1f}%" in text


def test_where_low_scores_are_favourable_those_flagged_most_are_worse_off(open_page, tmp_path, rows):
    scores, labels, groups = rows
    audit = ft.audit(scores, labels, sensitive_features=groups, favourable="low", **QUICK)
    expected = WhatIf.of(audit).at(0.25)
    with open_page(audit.to_html(tmp_path / "low.html")) as page:
        put(page, threshold=0.25)
        assert strip(page, "ratio") == pytest.approx(expected.ratio.value, abs=1e-9)
        worse = page.locator("#live tr:has(.worse)")
        assert worse.count() == 1
        assert worse.locator(".worse").inner_text() == "highest"  # a share that is flagged
        assert int(worse.get_attribute("data-group")) == expected.worse_off
        assert "flagged" in page.locator("#live-summary").inner_text()
        put(page, threshold=0)
        expect(page.locator("#live-summary")).to_contain_text("flagged")
