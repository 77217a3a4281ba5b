"""The verdict states the result of the audit, and no more than the data support."""

from __future__ import annotations

import numpy as np
import pytest

import fairtransport as ft
from fairtransport._text import plain
from fairtransport.report import WhatIf, audit_verdict
from fairtransport.report.pages.audit._comparison_verdict import comparison_verdict

QUICK = {"n_bootstrap": 100, "n_permutations": 100, "random_state": 0}


def test_groups_apart_are_named_with_their_distance_and_interval(audit):
    told = audit_verdict(audit, WhatIf.of(audit))
    reading = audit.readings["strong_pairwise_disparity"]
    sentence = plain(told.sentence)
    assert told.standing == "apart"
    assert sentence.startswith("The four groups are scored differently:")
    assert f"{100 / 6 * reading.corrected:.1f} percentage points apart on average" in sentence
    assert f"(95% interval {100 / 6 * reading.low:.1f} to {100 / 6 * reading.high:.1f})" in sentence
    assert f"those of a and d, the two farthest apart, {100 * audit.distances[0, 3]:.1f}." in sentence
    assert "\u2068a\u2069" in told.sentence


def test_points_tell_ratio_repair_and_unsure_groups(audit):
    what_if, first = WhatIf.of(audit), audit.thresholds[0]
    told = [plain(point) for point in audit_verdict(audit, what_if).points]
    assert told[0].startswith(
        f"Above 0.5, {100 * first.rates[0].value:.1f}% of a and {100 * first.rates[3].value:.1f}%"
    )
    assert f"a ratio of {first.ratio.value:.2f}" in told[0]
    assert told[0].endswith("below four fifths.")
    more = 100 * (what_if.at(0.5, 1.0).error - what_if.at(0.5).error)
    assert f"{abs(more):.1f} {'more' if more > 0 else 'fewer'} wrong decisions per 100 people" in told[1]
    assert len(told) == 2
    assert len(audit_verdict(audit).points) == 1


def test_no_difference_is_not_called_one(scored):
    scores, _, groups = scored(apart=0.0, n_rows=4000, seed=1)
    told = audit_verdict(ft.audit(scores, sensitive_features=groups, **QUICK))
    assert told.standing == "alike"
    assert "no more differently than expected by chance" in told.sentence
    assert "ruled out" not in told.sentence
    few = audit_verdict(ft.audit(scores[:130], sensitive_features=groups[:130], unsure_below=5, **QUICK))
    assert few.standing == "alike"
    assert "with so few rows a difference cannot be ruled out either" in few.sentence


@pytest.mark.parametrize(
    ("sizes", "told"), [((5, 6), "no group has 30 rows"), ((5, 400), "only one group has 30 rows")]
)
def test_too_few_rows_are_no_verdict(sizes, told):
    groups = np.repeat(["a", "b"], sizes)
    scores = np.where(groups == "a", 0.9, np.linspace(0, 0.5, groups.size))
    found = audit_verdict(ft.audit(scores, sensitive_features=groups, **QUICK))
    assert found.standing == "unsure"
    assert told in found.sentence
    assert "differently" not in found.sentence


def test_a_group_of_five_rows_is_named_as_unsure_and_nowhere_else(scored):
    scores, labels, groups = scored()
    scores, labels, groups = np.append(scores, [1.0] * 5), np.append(labels, [0] * 5), np.append(groups, ["five"] * 5)
    audit = ft.audit(scores, labels, sensitive_features=groups, **QUICK)
    told = audit_verdict(audit, WhatIf.of(audit))
    assert "five" not in told.sentence.removeprefix("The five groups")
    assert [point for point in told.points if "\u2068five\u2069" in point] == [told.points[-1]]
    assert "One group has fewer than 30 rows" in told.points[-1]


def test_ties_and_nobody(scored):
    scores, _, groups = scored(("a", "b"))
    one = ft.audit(scores, sensitive_features=groups, thresholds=1.0, **QUICK)
    assert audit_verdict(one).points[0] == "Above 1 nobody is selected."
    same = ft.audit([0.1, 0.9, 0.2, 0.8], sensitive_features=list("aabb"), **QUICK)
    assert audit_verdict(same).points[0] == "Above 0.5, 50.0% of every group are selected."


def test_names_are_one_short_line(audit_of):
    audit = audit_of(("x" * 200 + "\n\x1b[31m", "\u202eb"))
    told = audit_verdict(audit).sentence
    assert plain(told).isprintable()
    assert len(told) < 400


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
