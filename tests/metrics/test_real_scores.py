"""Disparities of real scores: in units of the score, in standard deviations, by rank; Kolmogorov-Smirnov by scipy."""

from itertools import combinations

import numpy as np
import pytest
import sklearn
from scipy.stats import ks_2samp, wasserstein_distance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_validate

import fairtransport as ft
from fairtransport import GroupPolicy
from fairtransport.metrics import (
    conditional_demographic_disparity,
    conditional_disparity,
    disparities,
    equalized_odds_difference,
    group_scorer,
    kolmogorov_smirnov_disparity,
    noise_floor,
    opportunity_disparity,
    pairwise_disparity,
    pairwise_distances,
    rank_disparity,
    separation_disparity,
    strong_demographic_disparity,
    strong_pairwise_disparity,
    wasserstein_disparity,
)
from fairtransport.metrics._disparity import _shares_below


def predictions(seed=0, n=400):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    scores = np.round(rng.normal(size=n) * 30 + 40 * (group == "b") - 10, 0)  # negative ones and ties among them
    return scores, scores + rng.normal(size=n) * 20, group


PAIRS = list(combinations("abc", 2))
DISTANCES = [
    pairwise_disparity,
    strong_pairwise_disparity,
    strong_demographic_disparity,
    wasserstein_disparity,
    lambda scores, **options: float(pairwise_distances(scores, **options)[0, 1]),
    lambda scores, **options: disparities(scores, **options)["strong_demographic_disparity"],
    lambda scores, **options: conditional_disparity(scores, strata=np.arange(len(scores)) % 2, **options),
]


def test_units_of_the_score_are_those_of_scipy():
    scores, _, group = predictions()
    expected = sum(wasserstein_distance(scores[group == a], scores[group == b]) for a, b in PAIRS)
    options = {"sensitive_features": group}
    assert strong_pairwise_disparity(scores, scale="score", **options) == pytest.approx(expected, rel=1e-12)
    deviation = scores.std()
    standardized = strong_pairwise_disparity(scores, scale="standardized", **options)
    assert standardized == pytest.approx(expected / deviation, rel=1e-12)
    assert strong_pairwise_disparity(scores, scale=deviation, **options) == pytest.approx(standardized, rel=1e-12)
    assert strong_pairwise_disparity(scores, scale="ranks", **options) / 3 == rank_disparity(scores, **options)
    assert pairwise_disparity(scores, scale="score", **options) == pytest.approx(expected / 3, rel=1e-12)
    to_all = sum(wasserstein_distance(scores[group == a], scores) for a in "abc")
    assert strong_demographic_disparity(scores, scale="score", **options) == pytest.approx(to_all, rel=1e-12)
    to_target = sum(wasserstein_distance(scores[group == a], [-50.0, 90.0]) for a in "abc")
    found = wasserstein_disparity(scores, scale=10.0, target=[-50.0, 90.0], **options)
    assert found == pytest.approx(to_target / 10, rel=1e-12)


@pytest.mark.parametrize("metric", DISTANCES)
def test_scales_under_affine_maps(metric):
    scores, _, group = predictions()
    moved = 1000 * scores + 5
    for scale, factor in (("score", 1000), ("standardized", 1), ("ranks", 1), (7.0, 1000)):
        before, after = (metric(x, sensitive_features=group, scale=scale) for x in (scores, moved))
        assert after == pytest.approx(factor * before, rel=1e-9)
    share = (scores - scores.min()) / np.ptp(scores)
    unit, width = (
        metric(share, sensitive_features=group),
        metric(scores, sensitive_features=group, scale=np.ptp(scores)),
    )
    assert unit == pytest.approx(width, rel=1e-9)  # as an audit with range=(lowest, highest)


@pytest.mark.parametrize("metric", DISTANCES)
def test_probabilities_unless_the_caller_says_otherwise(metric):
    scores, _, group = predictions()
    with pytest.raises(ValueError, match=r"outside \[0, 1\]; probabilities are needed.*scale='score'"):
        metric(scores, sensitive_features=group)
    for wrong in ("units", 0.0, -1.0, None):
        with pytest.raises((TypeError, ValueError), match="scale"):
            metric(scores, sensitive_features=group, scale=wrong)
    with pytest.raises(ValueError, match="1 NaN or infinite"):
        metric(np.append(scores[1:], np.nan), sensitive_features=group, scale="score")


def test_people_with_similar_y_are_compared():
    scores, y, group = predictions(2, 1000)
    cuts = np.quantile(y, np.arange(1, 10) / 10)  # 1000 rows: ten ranges, but no more than 30 rows for each of 3 groups
    ranges = np.searchsorted(cuts, y, side="right")
    expected = np.mean(
        [
            sum(
                wasserstein_distance(scores[(group == a) & (ranges == k)], scores[(group == b) & (ranges == k)])
                for a, b in PAIRS
            )
            for k in range(10)
        ]
    )
    found = separation_disparity(y, scores, sensitive_features=group, scale="score", reduce="sum")
    assert found == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="a regression has no positive label"):
        opportunity_disparity(y, scores, sensitive_features=group, scale="score")
    with pytest.raises(ValueError, match="y_true has 1 NaN"):
        separation_disparity(np.append(y[1:], np.nan), scores, sensitive_features=group, scale="score")


def test_thresholds_among_scores_and_ranks():
    scores, y, group = predictions(3)
    labels, share = (y > 0).astype(int), 1 / (1 + np.exp(-scores / 30))
    cut = 17.5
    expected = equalized_odds_difference(labels, share, sensitive_features=group, threshold=1 / (1 + np.exp(-cut / 30)))
    found = equalized_odds_difference(labels, scores, sensitive_features=group, threshold=cut, scale="score")
    assert found == expected
    top = conditional_demographic_disparity(scores, sensitive_features=group, threshold=0.9, scale="ranks")
    tenth = conditional_demographic_disparity(
        scores, sensitive_features=group, threshold=float(np.quantile(scores, 0.9)) - 0.5, scale="score"
    )
    assert top == pytest.approx(tenth, abs=0.05)
    with pytest.raises(ValueError, match="scale"):
        equalized_odds_difference(labels, scores, sensitive_features=group, scale="standardized")


@pytest.mark.parametrize("seed", range(5))
def test_the_statistics_are_those_of_scipy(seed):
    scores, _, group = predictions(seed, 150)
    pairs = [ks_2samp(scores[group == a], scores[group == b]).statistic for a, b in PAIRS]
    alone = [ks_2samp(scores[group == a], scores).statistic for a in "abc"]
    for against, values in (("pairs", pairs), ("everyone", alone)):
        for reduce, function in (("max", np.max), ("mean", np.mean), ("sum", np.sum)):
            found = kolmogorov_smirnov_disparity(scores, sensitive_features=group, against=against, reduce=reduce)
            assert found == pytest.approx(function(values), abs=1e-12)


def test_it_does_not_depend_on_increasing_maps_order_of_rows_or_blocks(monkeypatch):
    scores, _, group = predictions(5)
    options = {"sensitive_features": group, "reduce": "sum"}
    expected = kolmogorov_smirnov_disparity(scores, **options)
    assert kolmogorov_smirnov_disparity(np.exp(scores / 50), **options) == expected
    assert kolmogorov_smirnov_disparity(scores[::-1], sensitive_features=group[::-1], reduce="sum") == expected
    monkeypatch.setitem(_shares_below.__globals__, "_BLOCK", 12)
    assert kolmogorov_smirnov_disparity(scores, **options) == pytest.approx(expected, abs=1e-12)


def test_weights_are_copies_and_columns_may_overlap():
    scores, _, group = predictions(6)
    weights = np.random.default_rng(1).integers(1, 4, scores.size)
    copies = np.repeat(np.arange(scores.size), weights)
    weighted = kolmogorov_smirnov_disparity(scores, sensitive_features=group, sample_weight=weights)
    copied = kolmogorov_smirnov_disparity(scores[copies], sensitive_features=group[copies])
    assert weighted == pytest.approx(copied, abs=1e-12)
    table = {"letter": group, "parity": np.arange(scores.size) % 2}
    each = kolmogorov_smirnov_disparity(
        scores, sensitive_features=table, groups=GroupPolicy(crossed=False), against="everyone"
    )
    alone = [kolmogorov_smirnov_disparity(scores, sensitive_features=table[n], against="everyone") for n in table]
    assert each == pytest.approx(max(alone), abs=1e-12)


def test_wrong_options_raise():
    for options in ({"against": "all"}, {"reduce": "median"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            kolmogorov_smirnov_disparity([1, 2], sensitive_features=["a", "b"], **options)


def test_noise_floors_and_scorers_take_real_scores():
    scores, y, group = predictions(7)
    floor = noise_floor(kolmogorov_smirnov_disparity, scores, sensitive_features=group, random_state=0)
    assert floor.p_value < 0.02 < floor.mean
    noise_floor(strong_pairwise_disparity, scores, sensitive_features=group, n_shuffles=2, scale="standardized")
    with sklearn.config_context(enable_metadata_routing=True):
        scoring = {
            name: group_scorer(metric, response_method="predict", **options).set_score_request(sensitive_features=True)
            for name, metric, options in (
                ("ks", kolmogorov_smirnov_disparity, {"against": "everyone"}),
                ("units", ft.metrics.strong_pairwise_disparity, {"scale": "score"}),
                ("similar", separation_disparity, {"scale": "standardized"}),
            )
        }
        found = cross_validate(
            LinearRegression(), scores[:, None], y, scoring=scoring, params={"sensitive_features": group}
        )
    assert np.all(found["test_ks"] < 0)
    assert np.all(found["test_units"] < -10)
    assert np.all(found["test_similar"] < 0)
