"""What pages add to the verdict: the cost of a repair, and the verdict on two audits."""

from __future__ import annotations

import fairtransport as ft
from fairtransport.report import WhatIf
from fairtransport.report.pages.audit import verdict_points
from fairtransport.report.pages.comparison import comparison_verdict

QUICK = {"n_bootstrap": 100, "n_permutations": 100, "random_state": 0}


def test_the_cost_of_repair_is_a_further_point(audit):
    what_if = WhatIf.of(audit)
    *points, repair = verdict_points(audit, what_if)
    assert tuple(points) == audit.verdict.points
    more = 100 * (what_if.at(0.5, 1.0).error - what_if.at(0.5).error)
    assert repair.startswith("Full repair, measured on the rows it is fitted to, leaves")
    assert f"{abs(more):.1f} {'more' if more > 0 else 'fewer'} wrong decisions per 100 people" in repair
    assert verdict_points(audit, WhatIf.of(audit, repair_target=None)) == list(audit.verdict.points)


def test_comparison_says_direction_size_and_noise(scored, audit):
    scores, labels, groups = scored()
    repaired = ft.QuantileRepair().fit_transform(scores, sensitive_features=groups)
    after = ft.audit(repaired, labels, sensitive_features={"group": groups}, **QUICK)
    better, worse, same = (
        comparison_verdict(ft.compare(*pair)) for pair in ((audit, after), (after, audit), (after, after))
    )
    assert better.status == "smaller"
    assert better.sentence.startswith("The groups are closer together")
    assert "beyond noise" in better.sentence
    assert worse.status == "larger"
    assert worse.sentence.startswith("The groups are farther apart")
    assert same.status == "same"
    assert "within noise" in same.sentence
    assert any(point.startswith("Wrong decisions: ") for point in better.points)
