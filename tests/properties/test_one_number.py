"""A number that an audit shows in several places is the same text in all of them."""

import json
import re
from functools import partial
from html import unescape
from itertools import combinations
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.drawn import brief

import fairtransport as ft
from fairtransport._text import percent, plain, three_digits
from fairtransport.auditing import Inference
from fairtransport.auditing.records import compared_groups, distance_text, points_text
from fairtransport.auditing.tables import EMPTY, RATE_NAMES, Column
from fairtransport.cli._limits import ABOVE, BELOW, Limit
from fairtransport.groups import GroupPolicy

LABELS = {"numbers": (0, 1), "words": ("denied", "approved"), "booleans": (False, True)}
METRICS = ("The metrics", "The metrics among all people (demographic parity)")
CRITERIA = ("demographic_parity", "demographic_parity", "equalized_odds")


@st.composite
def audits(draw):
    """Audits of tied and of different scores, tiny, pooled and crossed groups, and thresholds anywhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    sizes = draw(st.lists(st.sampled_from([2, 9, 31, 60, 140]), min_size=2, max_size=5).filter(lambda n: sum(n) > 30))
    group = np.repeat([f"a rather long name of a group, number {number}" for number in range(len(sizes))], sizes)
    scores = rng.beta(2, 2 + np.repeat(np.arange(len(sizes)), sizes) * draw(st.sampled_from([0.0, 1.0])))
    scores = scores.round(draw(st.sampled_from([1, 2, 16])))
    options = {"sensitive_features": {"group": group}, "favourable": draw(st.sampled_from(["high", "low"]))}
    if draw(st.booleans()):
        options["sensitive_features"]["sex"] = rng.choice(["f", "m"], group.size)
    if max(sizes) > 130 and draw(st.booleans()):  # half of which is more than 30, so that some group is left
        options["groups"] = GroupPolicy(small="pool", min_size=draw(st.sampled_from([5, 30])))
    if draw(st.booleans()):
        options["sample_weight"] = rng.integers(1, 4, group.size)
    cuts = [0.3, 0.5, 0.60001, float(scores[0]), float(np.quantile(scores, 0.7))]
    options["thresholds"] = draw(st.lists(st.sampled_from(cuts), min_size=1, max_size=2, unique=True))
    y = None
    if kind := draw(st.sampled_from(["", *LABELS])):
        positive = rng.random(group.size) < scores
        positive[:2] = True, False
        y = np.array(LABELS[kind], dtype=object)[positive.astype(int)]
        options |= {"pos_label": LABELS[kind][1], "criterion": draw(st.sampled_from(CRITERIA))}
    if draw(st.integers(0, 3)) == 0:
        scores, options["thresholds"] = 1000 * scores - 5, [1000 * cut - 5 for cut in options["thresholds"]]
    return ft.audit(scores, y, inference=Inference(n_bootstrap=20, n_permutations=20, random_state=0), **options)


def cells(html):
    """The texts of each cell of each row of a table."""
    rows = re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [
        [[unescape(text).strip() for text in re.split("<[^>]*>", one) if text.strip()] for one in row] for row in found
    ]


def page_tables(page):
    """The tables of a page by heading, each with its rows after the head."""
    parts = re.split(r"<h2[^>]*>", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))[1:]
    titles = [unescape(re.sub("<[^>]*>", "", part.split("</h2>")[0])) for part in parts]
    return {title: cells(part) for title, part in zip(titles, parts, strict=True) if "<table" in part}


def markdown_tables(markdown):
    """The tables of Markdown by title: each with its heads, and rows of texts."""
    tables = {}
    for part in markdown.replace("\\", "").split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        tables[title] = [line[2:-2].split(" | ") for line in rest.splitlines() if line.startswith("| ")]
    return tables


def column(table, name):
    """One column of a table in Markdown, by the name of its head."""
    at = table[0].index(name)
    return [row[at] for row in table[2:]]


def values_of(texts):
    """The values of cells that may have intervals behind them."""
    return [text.split(" (")[0] for text in texts]


def shares_of(estimates):
    """Estimates of shares, of which some may not be defined, as texts."""
    return [EMPTY if one is None else percent(one["value"]) for one in estimates]


class Shown(NamedTuple):
    """An audit in all its forms."""

    audit: ft.Audit
    values: dict  # JSON
    text: str
    markdown: str
    html: str
    tables: dict  # of Markdown, by title
    page: dict  # tables of the page, by title
    asked: dict  # figures at the first threshold, in the data of the page's script

    @classmethod
    def of(cls, audit):
        html, markdown = audit.to_html(), audit.to_markdown().replace("\\", "")
        data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])
        asked = next(one for one in data["audits"][0]["asked"] if one["threshold"] == data["threshold"])
        parts = audit.to_dict(), str(audit), markdown, html
        return cls(audit.shown, *parts, markdown_tables(markdown), page_tables(html), asked)

    @property
    def metrics(self):
        return next(rows[2:] for title, rows in self.tables.items() if title in METRICS)

    def titled(self, start):
        """A table of the page, after its head, by the start of its title."""
        return next(rows for title, rows in self.page.items() if title.startswith(start))[1:]


@brief
@given(audits())
def test_every_number_is_the_same_text_wherever_it_is_shown(audit):
    audit = audit.shown
    shown = Shown.of(audit)
    check_sentences(shown)
    check_tables(shown)
    if any(part.withheld for part in (*audit.groups, *audit.strata)):  # other tests have what is left of the rest
        return
    check_rates(shown)
    check_distances(shown)
    if audit.error_rates:
        check_errors(shown)


def words_of(html):
    return " ".join(unescape(re.sub("<[^>]*>", "", html)).split())


def check_sentences(shown):
    verdict = shown.audit.verdict
    sentences = [plain(part) for part in (verdict.sentence, *verdict.points)]
    assert [shown.values["verdict"]["sentence"], *shown.values["verdict"]["points"]] == sentences
    for sentence in sentences:
        assert sentence in " ".join(shown.text.split())
        assert sentence in shown.markdown
        assert sentence in words_of(shown.html)
    assert sentences[0] in words_of(shown.audit._repr_html_())


def check_tables(shown):
    """Page and Markdown have the same texts, and text those of fewer columns."""
    lines = shown.text.splitlines()
    for title, table in shown.tables.items():
        for row, on_page in zip(table[2:], shown.page.get(title, [])[1:], strict=title in shown.page):
            assert row[1:] == [" ".join(texts) for texts in on_page[1:]], title
        if title in lines:
            rows = list(zip(table[2:], lines[lines.index(title) + 2 :], strict=False))
            if title == "The groups":  # names are cut to different texts
                assert len({line[:23] for _, line in rows}) == len(rows)
            for row, line in rows:
                assert set(re.findall(r"\d+\.\d+%?", line[24:])) <= {*re.findall(r"\d+\.\d+%?", " ".join(row))}, title


def check_rates(shown):
    """Rates at the first threshold: groups, notebook, slider table, frame, JSON, verdict, gate."""
    audit, first = shown.audit, shown.values["thresholds"][0]
    groups, live = shown.tables["The groups"], shown.titled("Above")
    rates = [percent(rate["value"]) for rate in first["rates"]]
    assert rates == next(column(groups, name) for name in groups[0] if name.startswith("Above"))
    assert rates == [row[2][0] for row in live] == [percent(rate["value"]) for rate in shown.asked["rates"]]
    assert rates == [percent(rate) for rate in audit.to_frame("thresholds")["selection_rate"][: len(rates)]]
    assert rates == [row[-3 if audit.error_rates else -1][0] for row in cells(audit._repr_html_())[1:]]
    intervals = [f"{percent(rate['low'])} to {percent(rate['high'])}" for rate in first["rates"]]
    assert intervals == [row[3][0] for row in live]
    assert [EMPTY if one is None else f"{one:.2f}" for one in first["ratios"]] == [row[4][0] for row in live]
    table = shown.tables["At the thresholds of the audit"]
    for end in ("lowest", "highest"):
        extremes = [percent(at["rates"][at[end]]["value"]) for at in shown.values["thresholds"]]
        assert extremes == [text.split(" of ")[0] for text in column(table, end.capitalize())]
    if first["four_fifths"] is not None:
        assert column(table, "Ratio")[0] == f"{first['ratio']['value']:.2f}" == f"{shown.asked['ratio']['value']:.2f}"
        least = min((at.ratio for at in audit.thresholds if at.four_fifths is not None), key=lambda one: one.value)
        assert gate(audit, "ratio", upper=False) == f"{least.value:.4g}"


def check_distances(shown):
    """Means and pairs: metrics, verdict, card, matrix, pairs, frame, JSON and gate."""
    audit, metric = shown.audit, shown.audit.settings.pairs_metric
    mean, corrected = audit.mean_readings[metric], shown.values["mean_pairwise_distance"]
    name = "Between pairs, mean" if audit.settings.bounded else "Rank disparity, mean"
    row = next(row for row in shown.metrics if row[0].startswith(name))
    assert [row[1], row[3]] == [distance_text(audit, one, metric) for one in (mean.value, corrected["value"])]
    low, high = corrected["low"], corrected["high"]
    assert 0 <= low <= corrected["value"] <= high <= 1
    assert row[2] == Column("", partial(distance_text, audit, metric=metric)).text((low, high))
    if audit.within is None:
        assert f"interval {points_text(low)} to {points_text(high)}" in words_of(shown.html)
    judged = audit.within or audit
    assert f"disparity {three_digits(judged.mean_readings[metric].value)}," in repr(audit)
    assert f"{points_text(judged.mean_pairwise_distance.value)} points" in words_of(shown.html)
    assert gate(audit, "mean") == f"{corrected['value']:.4g}"
    matrix = shown.titled("Distances between groups")
    distances = shown.values["distances" if audit.settings.bounded else "rank_distances"]
    frame = iter(audit.to_frame("pairs")["distance" if audit.settings.bounded else "rank_distance"])
    for one, other in combinations(range(len(audit.groups)), 2):
        assert next(frame) == distances[one][other]
        if len(matrix) == len(audit.groups):
            assert matrix[one][2 + other][0] == f"{100 * distances[one][other]:.1f}"
    farthest = max(distances[one][other] for one, other in combinations(compared_groups(audit), 2))
    if "Farthest apart" in shown.tables:
        heads = shown.tables["Farthest apart"][0]
        distance = "Distance" if "Distance" in heads else "Between ranks"
        assert column(shown.tables["Farthest apart"], distance)[0] == three_digits(farthest)
    assert f" {three_digits(farthest)}" in " ".join(shown.text.split()).split("Farthest apart: ")[1]
    assert three_digits(shown.values["farthest"]["distance"]) == three_digits(farthest)
    assert gate(audit, "largest") == f"{shown.values['largest_distance']['value']:.4g}"
    assert f"{points_text(judged.largest_distance.value)} points" in words_of(shown.html)


def check_errors(shown):
    """The positive label, error rates, their largest differences and areas under curves, wherever they are shown."""
    audit, values, tables = shown.audit, shown.values, shown.tables
    label = values["provenance"]["positive"]
    assert label in {str(one) for _, one in LABELS.values()}
    for output in (" ".join(shown.text.split()), shown.markdown, words_of(shown.html), words_of(audit._repr_html_())):
        assert re.search(rf"(?i)positive label(:| is| \|) ?{label}\b", output)
    errors, groups = values["error_rates"][0], tables["The groups"]
    wrong = [percent(error["value"]) for error in values["thresholds"][0]["errors"]]
    assert wrong == column(groups, "Wrong") == [percent(group["error"]["value"]) for group in values["groups"]]
    assert wrong == [percent(error) for error in shown.asked["errors"]] == [row[5][0] for row in shown.titled("Above")]
    assert wrong == [percent(group["rates"]["error_rate"]["value"]) for group in errors["groups"]]
    overall = percent(values["metrics"]["error_rate"])
    assert overall == percent(errors["overall"]["error_rate"]["value"]) == percent(shown.asked["error"])
    assert overall == next(row[1] for row in shown.metrics if row[0].startswith("Wrong decisions"))
    table = tables[next(title for title in tables if title.startswith("Error rates, "))]
    on_page = shown.titled("Errors by group")
    gaps = tables["Largest differences of errors"]
    for number, (rate, (name, *_)) in enumerate(RATE_NAMES.items()):
        expected = shares_of(one["rates"][rate] for one in (*errors["groups"], {"rates": errors["overall"]}))
        assert expected == values_of(column(table, name)) == [row[1 + number][0] for row in on_page]
        assert expected[:-1] == shares_of(rates[rate] for rates in shown.asked["errorRates"])
        gap = errors["gaps"][rate]
        row = next(row for row in gaps[2:] if row[0].startswith(name))
        assert row[1] == (EMPTY if gap is None else f"{100 * gap['difference']['value']:.1f}")
        if gap is not None:
            assert f"{100 * shown.asked['gaps'][rate]:.1f}" == row[1]
            low, high = (float(expected[gap[end]].removesuffix("%")) for end in ("lowest", "highest"))
            assert abs(high - low - float(row[1])) < 0.11  # each of the three is rounded
            assert [audit.groups[gap["lowest"]].name, audit.groups[gap["highest"]].name] == row[4:] or "…" in str(row)
    if (odds := errors["equalized_odds"]) is not None:
        assert f"{100 * odds['value']:.1f}" == next(row[1] for row in gaps if row[0].startswith("Equalized odds ("))
        assert gate(audit, "eo") == f"{max(at.equalized_odds.corrected for at in audit.error_rates):.4g}"

    areas = [EMPTY if group["auc"] is None else f"{group['auc']['value']:.2f}" for group in values["groups"]]
    assert areas == column(groups, "AUC") == column(tables["Calibration"], "AUC")[:-1]
    if crossed := tables.get("Ranking between groups"):
        at = dict(zip(audit.cross_auc.groups, crossed[2:], strict=True))
        assert [at[index][1 + number] for number, index in enumerate(at)] == [areas[index] for index in at]


def gate(audit, alias, *, upper=True):
    """The value that a limit on the command line compares."""
    message = Limit(alias, (ABOVE if upper else BELOW)[alias], -1.0 if upper else 9.0, upper).exceeded(audit)
    return re.search(r" is (\S+) ", message)[1]
