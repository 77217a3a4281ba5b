"""The verdict: what it says in each case, which groups it refers to, and that all outputs say the same."""

import numpy as np
import polars as pl
import pytest

import fairtransport as ft
from fairtransport._text import interval_text, percent, plain
from fairtransport.auditing import Inference
from fairtransport.auditing.proportions import holm, pair_critical_value
from fairtransport.auditing.records import compare_rates
from fairtransport.auditing.tables import audit_tables

SPDD = "strong_pairwise_disparity"
QUICK = {"inference": Inference(n_bootstrap=100, n_permutations=100, random_state=0)}


def audit_of(scores, groups, **options):
    return ft.audit(scores, sensitive_features=groups, **{**QUICK, **options})


def risk_scores():
    """Six groups as in a public table of risk scores: four with hundreds of rows, two with 12 and 3."""
    rng = np.random.default_rng(5)
    groups = np.repeat(list("abcdef"), [1100, 700, 250, 149, 12, 3])
    shift = np.select([groups == "a", groups == "b"], [0.12, -0.1], 0.0)
    scores = np.clip(rng.beta(1.5, 2.2, groups.size) + shift, 0, 1)
    scores[groups == "f"] = [0.0, 1.0, 1.0]
    return scores, groups


def test_fifteen_rows_do_not_decide():
    scores, groups = risk_scores()
    result = audit_of(scores, groups)
    large = np.isin(groups, list("abcd"))
    alone = audit_of(scores[large], groups[large])
    assert result.readings == alone.readings
    assert result.verdict.status == alone.verdict.status == "matters"
    assert result.verdict.sentence == alone.verdict.sentence
    assert (result.verdict.higher, result.verdict.lower, result.verdict.ordered) == ("a", "b", True)
    assert result.verdict.judged == ("a", "b", "c", "d")
    assert result.verdict.set_aside == {"e": "12 rows", "f": "3 rows"}
    assert "e (12 rows), f (3 rows)" in plain(result.verdict.points[-1])
    assert [group.name for group in result.groups] == list("abcdef")
    assert "Means over all" not in str(result)  # one of them has 3 rows
    more = audit_of(np.append(scores, [1.0, 1.0]), np.append(groups, ["f", "f"]))
    assert "Means over all 6 groups" in str(more)
    assert more.metrics_all_groups[SPDD] > more.metrics[SPDD]
    at = result.thresholds[0]
    assert {result.groups[index].name for index in (at.lowest, at.highest)} <= {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("scale", "n", "materiality", "status", "words"),
    [
        (0.7, 2000, 0.02, "matters", "are scored differently, by enough to matter: a is scored higher than b, by"),
        (0.985, 40_000, 0.02, "small", "points between the two groups is established, and small"),
        (0.9, 1500, 0.07, "different", "Whether a difference reaches the 7.0 points that matter is open"),
        (1.0, 40_000, 0.02, "alike", "No difference between the two groups is established"),
        (1.0, 200, 0.02, "cannot_tell", "cannot tell whether the two groups are scored differently"),
    ],
)
def test_different_and_material_are_two_questions(scale, n, materiality, status, words):
    rng = np.random.default_rng(1)
    groups = np.repeat(["a", "b"], n)
    result = audit_of(rng.random(2 * n) * np.where(groups == "b", scale, 1.0), groups, materiality=materiality)
    assert result.verdict.status == status
    assert words in plain(result.verdict.sentence)
    established = status in {"matters", "small", "different"}
    assert result.verdict.different == established
    assert result.verdict.matters is {"matters": True, "small": False, "alike": False}.get(status)
    assert (result.readings[SPDD].low > 0) == established


@pytest.mark.parametrize(
    ("sizes", "text"), [((5, 6), "no group has 30 rows"), ((5, 400), "only one group has 30 rows")]
)
def test_too_few_rows_are_no_verdict(sizes, text):
    groups = np.repeat(["a", "b"], sizes)
    result = audit_of(np.where(groups == "a", 0.9, np.linspace(0, 0.5, groups.size)), groups)
    assert result.verdict.status == "too_few_rows"
    assert text in result.verdict.sentence
    assert not result.verdict.different
    assert result.metrics == {**result.metrics, **result.metrics_all_groups}


def test_degenerate_scores_have_words():
    constant = audit_of([0.5] * 100, ["a", "b"] * 50)
    assert constant.verdict.status == "constant"
    assert constant.verdict.sentence == "All 100 scores are equal, so no group is scored differently from another."
    rng = np.random.default_rng(0)
    binary = audit_of((rng.random(1000) < np.repeat([0.3, 0.6], 500)) * 1.0, np.repeat(["a", "b"], 500))
    assert binary.verdict.status == "matters"
    assert any("only two values" in point for point in binary.verdict.points)
    empty = pl.DataFrame({"s": [None] * 3, "g": ["a", "b", "b"]}, schema={"s": float, "g": str})
    with pytest.raises(ValueError, match="No row of the table can be counted: 3 with no score"):
        ft.audit_table(empty, score="s", sensitive_features="g")


@pytest.mark.trust
def test_a_hundred_groups_have_one_sentence_and_adjusted_p_values():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(116), 40)
    null = audit_of(
        rng.random(groups.size), groups, inference=Inference(n_bootstrap=40, n_permutations=100, random_state=0)
    )
    assert null.verdict.status == "cannot_tell"
    assert null.verdict.n_pairs == 116 * 115 // 2
    assert np.nanmin(null.pair_p_values) > 0.05
    assert len(plain(str(null.verdict))) < 1500
    shifted = audit_of(
        np.clip(rng.random(groups.size) + 0.4 * (groups == 7), 0, 1),
        groups,
        inference=Inference(n_bootstrap=40, n_permutations=100, random_state=0),
    )
    assert shifted.verdict.different
    assert shifted.verdict.higher == "7"


def test_groups_that_differ_in_spread_are_not_ordered():
    rng = np.random.default_rng(0)
    result = audit_of(np.r_[rng.beta(8, 8, 2000), rng.beta(1, 1, 2000)], np.repeat(["a", "b"], 2000))
    assert not result.verdict.ordered
    assert "neither being higher throughout" in result.verdict.sentence


def test_holm_is_that_of_statsmodels():
    # Values of multipletests in statsmodels.
    p = [0.001, 0.04, 0.012, 0.3, 0.012]
    assert holm(p).tolist() == pytest.approx([0.005, 0.08, 0.048, 0.3, 0.048])
    assert np.isnan(holm([np.nan, 0.01])).tolist() == [True, False]
    assert holm([]).size == 0


def test_critical_values_are_those_of_the_studentised_range():
    from scipy.stats import studentized_range  # noqa: PLC0415

    for n_groups in (2, 3, 12):
        expected = studentized_range.ppf(0.95, n_groups, np.inf) / np.sqrt(2)
        assert pair_critical_value(n_groups, 0.95) == pytest.approx(expected, abs=1e-3)


def test_pairs_that_differ_are_found_and_others_are_not():
    rng = np.random.default_rng(0)
    groups = np.repeat(list("abcde"), [3000, 3000, 400, 40, 35])
    scores = np.clip(rng.beta(3, 3, groups.size) + 0.06 * (groups == "b"), 0, 1)
    result = audit_of(scores, groups, inference=Inference(n_bootstrap=200, n_permutations=200, random_state=0))
    assert result.pair("a", "b").p_value <= 0.05
    assert result.pair("a", "c").p_value > 0.05
    assert {result.verdict.higher, result.verdict.lower} == {"a", "b"}  # not the noise of 35 rows
    assert np.array_equal(result.pair_p_values, result.pair_p_values.T, equal_nan=True)


def test_the_farthest_pair_need_not_be_the_clearest():
    rng = np.random.default_rng(3)
    sizes = (33, 400, 4000, 35)
    scores = np.concatenate([rng.beta(a, 3, n) for a, n in zip((2.7, 2.3, 2, 2.1), sizes, strict=True)])
    result = audit_of(scores, np.repeat(list("abcd"), sizes))
    farthest, clearest, largest = result.farthest, result.clearest, result.largest_distance
    assert farthest.distance == pytest.approx(result.distances.max())
    assert {farthest.lower, farthest.higher} == {"a", "c"}
    assert farthest.p_value > 0.05
    assert "Farthest apart: c and a, distance 0.073 (which chance may explain)" in " ".join(str(result).split())
    assert {clearest.lower, clearest.higher} == {result.verdict.lower, result.verdict.higher} == {"b", "c"}
    assert clearest.p_value <= 0.05
    assert largest.low == clearest.estimate.low
    assert largest.value == max(farthest.estimate.value, clearest.estimate.value)
    assert largest.high >= farthest.estimate.high


def test_intervals_agree_with_adjusted_p_values():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        groups = rng.choice(list("abcd"), 700)
        scores = rng.random(700) - 0.09 * (groups == "b") - 0.07 * (groups == "c")
        for row in compare_rates(audit_of(np.clip(scores, 0, 1), groups)):
            assert row.significant == (row.difference.low > 0) == (row.ratio.high < 1) == (row.p_value <= 0.05)
    assert interval_text(1e-9, 0.2, "{:.3f}".format) == "<0.001 to 0.200"
    assert interval_text(1e-9, 0.2, percent) == "<0.1% to 20.0%"
    assert interval_text(0.0, 0.2, percent) == "0.0% to 20.0%"


def test_rates_from_too_few_rows_are_marked():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [300, 300, 36])
    scores = rng.random(636)
    result = audit_of(scores, groups, y_true=(rng.random(636) < scores).astype(int))
    rates = next(table for table in audit_tables(result) if table.key == "errors-0")
    few = {row.name: sum(cell.shown.endswith("?") for cell in row.values[:4]) for row in rates.rows[:3]}
    assert few == {"a": 0, "b": 0, "c": 4}
    assert "too few rows to judge the rate" in str(result)
    calibration = result.calibration
    assert (calibration.n_bins, calibration.compared) == (10, (0, 1))
    assert [len(one.bins) for one in calibration.groups] == [10, 10, 1]
    assert "?: too few rows for 10 bins, so not compared." in " ".join(str(result).split())
    alone = audit_of(scores[:306], np.repeat(["a", "b"], [300, 6]), y_true=np.arange(306) % 2)
    assert not alone.error_rates[0].gaps["accuracy"].judged
    assert "; too few rows to judge" in alone.to_markdown()


def test_effective_rows_decide_who_is_judged():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], 200)
    weights = np.where((groups == "c") & (np.arange(600) % 20 > 0), 0.001, 1.0)
    result = ft.audit(rng.random(600), sensitive_features=groups, sample_weight=weights, **QUICK)
    assert result.not_judged == ("c",)
    assert result.verdict.set_aside["c"] == "200 rows with weights that are worth 10"
    few, y = np.repeat(["a", "b", "c"], [100, 100, 37]), np.arange(237) % 2
    odds = audit_of(rng.random(237), few, y_true=y, criterion="equalized_odds")
    assert "having fewer than 30 rows of every outcome that is compared: c (37 rows)" in plain(odds.verdict.points[-1])


SCORES = np.repeat([0.9, 0.1, 0.9, 0.1], [30, 70, 60, 40])
GROUPS = np.repeat(["a", "b"], 100)


def test_turning_the_scores_around_turns_the_direction_around():
    low = ft.audit(SCORES, sensitive_features=GROUPS, favourable="low", thresholds=0.5, **QUICK).thresholds[0]
    high = ft.audit(1 - SCORES, sensitive_features=GROUPS, thresholds=0.5, **QUICK).thresholds[0]
    for name in ("value", "low", "high"):
        assert getattr(low.ratio, name) == pytest.approx(getattr(high.ratio, name))
    assert (low.worse_off, low.better_off) == (high.worse_off, high.better_off)
    assert (low.four_fifths, low.conclusive) == (high.four_fifths, high.conclusive)


def test_everyone_flagged_has_no_ratio():
    at = ft.audit(SCORES, sensitive_features=GROUPS, favourable="low", thresholds=0.0, **QUICK)
    assert at.thresholds[0].four_fifths is None
    assert "everyone is flagged" in str(at)


def test_the_text_names_the_favourable_outcome():
    audit = ft.audit(SCORES, sensitive_features=GROUPS, favourable="low", thresholds=[0.5, 0.25], **QUICK)
    text = " ".join(str(audit).split())
    assert "30.0% of a and 60.0% of b are flagged: the shares not flagged have a ratio of 0.57" in text
    assert "Above 0.25, 30.0% of a and 60.0% of b are flagged: the shares not flagged have a ratio of 0.57" in text


def test_groups_that_are_numbers_are_named_with_their_column():
    scores = np.r_[np.linspace(0, 0.9, 200), np.linspace(0.1, 1, 200)]
    codes = np.repeat(["1", "2"], 200)
    audit = audit_of(scores, pl.DataFrame({"sex": codes}))
    assert "sex 2 is scored higher than sex 1" in plain(audit.verdict.sentence)
    assert "of sex 1 and" in plain(audit.verdict.points[0])
    assert "Farthest apart: sex 1 and sex 2" in str(audit)
    assert "group 2 is scored higher than group 1" in plain(audit_of(scores, codes).verdict.sentence)


def test_two_intervals_of_one_distance_say_what_differs():
    rng = np.random.default_rng(0)
    groups = np.repeat(list("abc"), [1500, 1500, 60])
    shift = np.select([groups == "a", groups == "c"], [0.2, 0.19])
    audit = audit_of(rng.beta(2, 3, groups.size) + shift, groups, range=(0, 2))
    named, any_pair = audit.verdict.difference, audit.largest_distance
    assert named.value == any_pair.value
    assert named.high < any_pair.high
    assert "whichever pair is the farthest apart" in audit.verdict.points[0]


def test_a_dash_has_one_legend():
    groups = np.repeat(["a", "b", "c", "d"], [60, 60, 40, 2])
    labels = np.where(groups == "c", 0, np.arange(groups.size) % 2)
    scores = np.random.default_rng(0).random(groups.size)
    text = str(ft.audit(scores, labels, sensitive_features=groups, **QUICK))
    (rates,) = (part for part in text.split("\n\n") if part.startswith("Error rates"))
    assert rates.count("\N{EN DASH}:") == 1
    assert "no rows to compute the rate from, or withheld" in " ".join(rates.split())
