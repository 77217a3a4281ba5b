"""Repair of real scores: closed forms, affine equivariance, extrapolation and equalized odds with a real y."""

import numpy as np
import pytest
from scipy.stats import norm, wasserstein_distance
from tests.worlds import real_scores

import fairtransport as ft
from fairtransport.criteria import EqualizedOdds
from fairtransport.repair import OnlineSettings

SHARES = np.array([0.3, 0.7])
MEANS, DEVIATIONS = np.array([2.0, 5.0]), np.array([1.0, 3.0])


def gaussian_groups(n=40_000):
    """Scores at equally spaced levels of two Gaussian distributions, so that only the grid of levels is an error."""
    sizes = (SHARES * n).astype(int)
    levels = [(np.arange(size) + 0.5) / size for size in sizes]
    scores = np.concatenate([norm.ppf(u, m, s) for u, m, s in zip(levels, MEANS, DEVIATIONS, strict=True)])
    return scores, np.repeat(["a", "b"], sizes)


def learned(**options):
    return ft.QuantileRepair(range="learned", **options)


def test_the_aware_optimum_of_gaussian_groups():
    """f(x, a) = sum_b p_b Q_b(F_a(eta)): here a Gaussian with the mean of the means and of the deviations."""
    scores, group = gaussian_groups()
    repaired = learned().fit(scores, sensitive_features=group).transform(scores, sensitive_features=group)
    mean, deviation = SHARES @ MEANS, SHARES @ DEVIATIONS
    for label, m, s in zip("ab", MEANS, DEVIATIONS, strict=True):
        rows = group == label
        expected = mean + deviation * (scores[rows] - m) / s
        inner = np.abs(scores[rows] - m) < 3 * s
        assert np.abs(repaired[rows] - expected)[inner].max() < 2e-3
    change = np.mean((repaired - scores) ** 2)  # the least change: sum_a p_a W2^2(S_a, barycenter)
    assert change == pytest.approx(SHARES @ ((MEANS - mean) ** 2 + (DEVIATIONS - deviation) ** 2), rel=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.81])
def test_a_share_alpha_of_the_unfairness_is_left_by_amount_one_minus_its_root(alpha):
    """Unfairness is sum_a p_a W2^2(S_a, barycenter); for Gaussian groups in closed form."""
    scores, group = gaussian_groups()
    repair = learned(amount=1 - np.sqrt(alpha)).fit(scores, sensitive_features=group)
    repaired = repair.transform(scores, sensitive_features=group)

    def unfairness(values):
        means, deviations = ([f(values[group == g]) for g in "ab"] for f in (np.mean, np.std))
        center = SHARES @ means, SHARES @ deviations
        return SHARES @ ((means - center[0]) ** 2 + (deviations - center[1]) ** 2)

    assert unfairness(repaired) == pytest.approx(alpha * unfairness(scores), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"amount": 0.4},
        {"target": "barycenter"},
        {"target": "pooled"},
        {"target": "b"},
        {"criterion": "equalized_odds"},
        {"criterion": EqualizedOdds(label_weight="share")},
        {"strata": True},
        {"strata": True, "criterion": "equalized_odds"},
    ],
)
@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 5.0), (1e-6, -3e-6), (1e9, 0.0)])
def test_repair_commutes_with_affine_maps(options, scale, shift):
    scores, y, group = real_scores(600)
    new = np.concatenate((scores[:300] + 0.01, [-100.0, 100.0, 0.0]))
    own, others = ({"sensitive_features": names} for names in (group, np.append(group[:300], ["a", "b", "c"])))
    if "strata" in options:
        region = np.random.default_rng(2).choice(["north", "south"], 600)
        own["strata"], others["strata"] = region, region[: new.size]
        options = {name: value for name, value in options.items() if name != "strata"}
    before = learned(**options).fit(scores, y, **own)
    after = learned(**options).fit(scale * scores + shift, scale * y + shift, **own)
    expected = scale * before.transform(new, **others) + shift
    found = after.transform(scale * new + shift, **others)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)


def test_a_given_range_is_the_unit_range_rescaled():
    scores, y, group = real_scores(600, 2)
    share = 1 / (1 + np.exp(-scores))
    for criterion in ("demographic_parity", "equal_opportunity", "equalized_odds"):
        labels = (y > 1).astype(int)
        unit = ft.QuantileRepair(criterion=criterion).fit(share, labels, sensitive_features=group)
        points = ft.QuantileRepair(range=(300, 850), criterion=criterion)
        points.fit(300 + 550 * share, labels, sensitive_features=group)
        expected = 300 + 550 * unit.transform(share, sensitive_features=group)
        found = points.transform(300 + 550 * share, sensitive_features=group)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert points.range_ == (300.0, 850.0)


@pytest.mark.parametrize("amount", [1.0, 0.3])
def test_scores_beyond_those_of_fit_are_shifted_continuously_and_keep_their_order(amount):
    scores, _, group = real_scores()
    repair = learned(amount=amount).fit(scores, sensitive_features=group)
    for label, carry in zip("abc", repair.maps_, strict=True):
        low, high = carry.knots[[0, -1]]
        beyond = np.array([low - 50, low - 1e-9, low, high, high + 1e-9, high + 50])
        moved = repair.transform(beyond, sensitive_features=[label] * 6)
        shift = amount * (carry.images[[0, -1]] - [low, high])
        np.testing.assert_allclose(moved[:3] - beyond[:3], shift[0], atol=1e-8)
        np.testing.assert_allclose(moved[3:] - beyond[3:], shift[1], atol=1e-8)
        assert np.all(np.diff(moved) > 0)


def test_probabilities_are_refused_beyond_their_range_unless_it_is_learned():
    scores, _, group = real_scores()
    with pytest.raises(ValueError, match=r"outside \[0, 1\].*range=\(low, high\).*range='learned'"):
        ft.QuantileRepair().fit(scores, sensitive_features=group)
    share = 1 / (1 + np.exp(-scores))
    repair = ft.QuantileRepair().fit(share, sensitive_features=group)
    with pytest.raises(ValueError, match=r"1 of 1 values outside \[0, 1\]"):
        repair.transform([1.5], sensitive_features=["a"])
    any_score = learned().fit(share, sensitive_features=group)
    inside = np.clip(share, 0.2, 0.8)
    np.testing.assert_array_equal(
        any_score.transform(inside, sensitive_features=group), repair.transform(inside, sensitive_features=group)
    )
    assert any_score.transform([1.5], sensitive_features=["a"])[0] > 1.0


def test_an_array_as_target_has_any_range():
    scores, _, group = real_scores()
    target = np.linspace(100, 200, 50)
    repaired = learned(target=target).fit(scores, sensitive_features=group).transform(scores, sensitive_features=group)
    for label in "abc":
        assert wasserstein_distance(repaired[group == label], target) < 1.0
    with pytest.raises(ValueError, match=r"not within \[0, 1\]"):
        ft.QuantileRepair(target=target).fit(np.linspace(0, 1, scores.size), sensitive_features=group)


def conditional(scores, y, group):
    return ft.metrics.separation_disparity(y, scores, sensitive_features=group, scale="score")


def test_people_with_similar_y_are_brought_closer_than_by_any_partial_repair():
    rng = np.random.default_rng(3)
    group = rng.integers(2, size=3000)
    y = rng.normal(size=3000) + group
    scores = y + group * (0.5 + 0.5 * np.sin(y)) + 0.5 * rng.normal(size=3000)
    repair = learned(criterion="equalized_odds").fit(scores, y, sensitive_features=group)
    parity = learned().fit(scores, sensitive_features=group)
    partial = []
    for amount in np.linspace(0, 1, 6):
        parity.amount = amount
        partial.append(conditional(parity.transform(scores, sensitive_features=group), y, group))
    found = conditional(repair.transform(scores, sensitive_features=group), y, group)
    assert found < 0.9 * min(partial)


def test_ranges_of_y_that_a_group_does_not_have_are_not_compared():
    scores, y, group = real_scores(800, 5)
    kept = (group != "c") | (y > np.quantile(y, 0.4))  # group c has no low y
    repair = learned(criterion="equalized_odds").fit(scores[kept], y[kept], sensitive_features=group[kept])
    moved = repair.transform(scores[kept], sensitive_features=group[kept])
    assert conditional(moved, y[kept], group[kept]) <= conditional(scores[kept], y[kept], group[kept])


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"criterion": "equal_opportunity"}, None, "a regression has no positive label"),
        ({"criterion": "equalized_odds", "randomize": True}, None, "randomize=True needs a range of scores"),
        ({"criterion": "equalized_odds", "randomize": True, "range": (-99, 99)}, None, "is for two labels"),
        ({"criterion": "equalized_odds"}, lambda y, _: np.append(y[1:], np.nan), "y has 1 NaN"),
        ({"criterion": "equalized_odds"}, lambda _, group: np.unique(group, return_inverse=True)[1], "no range of y"),
    ],
)
def test_what_a_real_y_does_not_allow(options, change, message):
    scores, y, group = real_scores(seed=6)
    y = y if change is None else change(y, group)
    with pytest.raises(ValueError, match=message):
        ft.QuantileRepair(**{"range": "learned", **options}).fit(scores, y, sensitive_features=group)


def test_a_stream_has_no_real_y():
    scores, y, group = real_scores(seed=6)
    with pytest.raises(ValueError, match="y"):
        learned(criterion="equalized_odds").partial_fit(scores, y, sensitive_features=group)


def test_a_stream_of_real_scores_learns_the_maps_of_its_rows():
    scores, _, group = real_scores(6000, 7, n_groups=2)
    rows = learned(online=OnlineSettings(np.inf)).fit(scores, sensitive_features=group)
    stream = learned(online=OnlineSettings(np.inf))
    for part in np.array_split(np.arange(scores.size), 6):
        stream.partial_fit(scores[part], sensitive_features=group[part])
    moved, expected = (one.transform(scores, sensitive_features=group) for one in (stream, rows))
    inner = np.abs(scores) < 3  # where every bin has rows
    assert np.abs(moved - expected)[inner].max() < 3 * stream.grid_.width
    far = stream.transform([1e6, -1e6], sensitive_features=["a", "b"])
    np.testing.assert_allclose(far, [1e6, -1e6], atol=100.0)
    assert stream.grid_.n_bins == 4096
