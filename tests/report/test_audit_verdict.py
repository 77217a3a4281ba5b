"""The verdict states the result of the audit, and no more than the data support."""

from __future__ import annotations

import numpy as np
import pytest

import fairtransport as ft
from fairtransport._text import plain
from fairtransport.report import WhatIf, audit_verdict
from fairtransport.report.pages.audit._comparison_verdict import comparison_verdict

QUICK = {"n_bootstrap": 100, "n_permutations": 100, "random_state": 0}


def test_different_groups_are_named_with_distance_and_interval(audit):
    verdict = audit_verdict(audit, WhatIf.of(audit))
    reading = audit.readings["strong_pairwise_disparity"]
    sentence = plain(verdict.sentence)
    assert verdict.standing == "apart"
    assert sentence.startswith("The four groups are scored differently:")
    assert f"{100 / 6 * reading.corrected:.1f} percentage points apart on average" in sentence
    assert f"(95% interval {100 / 6 * reading.low:.1f} to {100 / 6 * reading.high:.1f})" in sentence
    assert f"those of a and d, the two farthest apart, {100 * audit.distances[0, 3]:.1f}." in sentence
    assert "\u2068a\u2069" in verdict.sentence


def test_points_state_ratio_repair_and_unsure_groups(audit):
    what_if, first = WhatIf.of(audit), audit.thresholds[0]
    points = [plain(point) for point in audit_verdict(audit, what_if).points]
    assert points[0].startswith(
        f"Above 0.5, {100 * first.rates[0].value:.1f}% of a and {100 * first.rates[3].value:.1f}%"
    )
    assert f"a ratio of {first.ratio.value:.2f}" in points[0]
    assert points[0].endswith("below four fifths.")
    more = 100 * (what_if.at(0.5, 1.0).error - what_if.at(0.5).error)
    assert f"{abs(more):.1f} {'more' if more > 0 else 'fewer'} wrong decisions per 100 people" in points[1]
    assert len(points) == 2
    assert len(audit_verdict(audit).points) == 1


def test_equal_groups_are_not_called_different(scored):
    scores, _, groups = scored(apart=0.0, n_rows=4000, seed=1)
    verdict = audit_verdict(ft.audit(scores, sensitive_features=groups, **QUICK))
    assert verdict.standing == "alike"
    assert "no more differently than expected by chance" in verdict.sentence
    assert "ruled out" not in verdict.sentence
    few = audit_verdict(ft.audit(scores[:130], sensitive_features=groups[:130], min_judged_rows=5, **QUICK))
    assert few.standing == "alike"
    assert "with so few rows a difference cannot be ruled out either" in few.sentence


@pytest.mark.parametrize(
    ("sizes", "text"), [((5, 6), "no group has 30 rows"), ((5, 400), "only one group has 30 rows")]
)
def test_too_few_rows_are_no_verdict(sizes, text):
    groups = np.repeat(["a", "b"], sizes)
    scores = np.where(groups == "a", 0.9, np.linspace(0, 0.5, groups.size))
    verdict = audit_verdict(ft.audit(scores, sensitive_features=groups, **QUICK))
    assert verdict.standing == "unsure"
    assert text in verdict.sentence
    assert "differently" not in verdict.sentence


def test_a_group_of_five_rows_is_named_as_unsure_and_nowhere_else(scored):
    scores, labels, groups = scored()
    scores, labels, groups = np.append(scores, [1.0] * 5), np.append(labels, [0] * 5), np.append(groups, ["five"] * 5)
    audit = ft.audit(scores, labels, sensitive_features=groups, **QUICK)
    verdict = audit_verdict(audit, WhatIf.of(audit))
    assert "five" not in verdict.sentence.removeprefix("The five groups")
    assert [point for point in verdict.points if "\u2068five\u2069" in point] == [verdict.points[-1]]
    assert "One group has fewer than 30 rows" in verdict.points[-1]


def test_equal_rates_and_empty_selection(scored):
    scores, _, groups = scored(("a", "b"))
    one = ft.audit(scores, sensitive_features=groups, thresholds=1.0, **QUICK)
    assert audit_verdict(one).points[0] == "Above 1 nobody is selected."
    same = ft.audit([0.1, 0.9, 0.2, 0.8], sensitive_features=list("aabb"), **QUICK)
    assert audit_verdict(same).points[0] == "Above 0.5, 50.0% of every group are selected."


def test_names_are_one_short_line(audit_of):
    audit = audit_of(("x" * 200 + "\n\x1b[31m", "\u202eb"))
    sentence = audit_verdict(audit).sentence
    assert plain(sentence).isprintable()
    assert len(sentence) < 400


def test_comparison_says_direction_size_and_noise(scored, audit):
    scores, labels, groups = scored()
    repaired = ft.QuantileRepair().fit_transform(scores, sensitive_features=groups)
    after = ft.audit(repaired, labels, sensitive_features={"group": groups}, **QUICK)
    better, worse, same = (
        comparison_verdict(ft.compare(*pair)) for pair in ((audit, after), (after, audit), (after, after))
    )
    assert better.standing == "smaller"
    assert better.sentence.startswith("The groups are closer together")
    assert "beyond noise" in better.sentence
    assert worse.standing == "larger"
    assert worse.sentence.startswith("The groups are farther apart")
    assert same.standing == "same"
    assert "within noise" in same.sentence
    assert any(point.startswith("Wrong decisions: ") for point in better.points)
