"""The noise floor: what a disparity reads when group membership is drawn by lot."""

from itertools import permutations

import numpy as np
import pytest

from fairtransport.metrics import (
    NoiseFloor,
    disparities,
    noise_floor,
    strong_demographic_disparity,
    strong_pairwise_disparity,
    wasserstein_disparity,
)


def test_the_mean_nears_the_mean_over_all_permutations():
    scores, groups = np.array([0.0, 0.1, 0.3, 0.6, 1.0]), np.array(["a", "a", "b", "b", "b"])
    exact = [strong_pairwise_disparity(scores, sensitive_features=groups[list(o)]) for o in permutations(range(5))]
    floor = noise_floor(strong_pairwise_disparity, scores, sensitive_features=groups, n_shuffles=2000, random_state=0)
    error = np.std(exact) / np.sqrt(2000)
    assert floor.mean == pytest.approx(np.mean(exact), abs=4 * error)
    assert floor.sd == pytest.approx(np.std(exact), rel=0.1)
    reaching = np.mean(np.array(exact) >= floor.observed - 1e-12)
    assert floor.p_value == pytest.approx(reaching, abs=4 * np.sqrt(reaching / 2000))


def test_summary_by_hand():
    floor = NoiseFloor(observed=0.5, values=np.array([0.1, 0.5, 0.7, 0.3]))
    assert floor.mean == pytest.approx(0.4)
    assert floor.sd == pytest.approx(np.std([0.1, 0.5, 0.7, 0.3], ddof=1))
    assert floor.p_value == (1 + 2) / (1 + 4)
    assert NoiseFloor(observed=0.9, values=floor.values).p_value == 1 / 5  # never 0
    assert NoiseFloor(observed=0.0, values=floor.values).p_value == 1.0
    assert NoiseFloor(observed=np.nextafter(0.5, 1), values=floor.values).p_value == 3 / 5  # a rounding is no excess


def test_a_true_difference_exceeds_the_noise_floor_and_permuted_groups_do_not():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 60)
    apart = np.where(groups == "a", rng.beta(2, 5, 120), rng.beta(5, 2, 120))
    assert noise_floor(strong_pairwise_disparity, apart, sensitive_features=groups, random_state=0).p_value == 1 / 101
    p_values = [
        noise_floor(
            strong_pairwise_disparity, rng.random(40), sensitive_features=groups[40:80], n_shuffles=19, random_state=rng
        ).p_value
        for _ in range(100)
    ]
    assert np.mean(np.array(p_values) <= 0.1) < 0.2  # expected 0.1; sd 0.03
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.12)


def test_small_groups_have_the_floor_of_the_design():
    # Communities with 8 groups of about 60 test rows shows SPDD near 1.8 even after perfect repair.
    # Uniform scores: E|F_a - F_b| = sqrt(2/pi) sqrt(u(1-u) 2/n) at u, in all 28 * .8 * .39 * sqrt(2/60) = 1.6.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 60)
    floor = noise_floor(strong_pairwise_disparity, rng.random(480), sensitive_features=groups, random_state=0)
    assert floor.mean == pytest.approx(28 * np.sqrt(2 / np.pi) * (np.pi / 8) * np.sqrt(2 / 60), rel=0.1)


def test_a_seed_fixes_it_and_another_changes_it():
    scores, options = np.random.default_rng(0).random(50), {"sensitive_features": np.repeat(["a", "b"], 25)}
    seeds = (1, np.random.default_rng(1), 2)
    one, same, other = (
        noise_floor(strong_demographic_disparity, scores, n_shuffles=5, random_state=seed, **options).values
        for seed in seeds
    )
    assert one.tolist() == same.tolist() != other.tolist()
    assert len(set(one)) == 5


def test_observed_is_the_metric_with_its_options():
    rng = np.random.default_rng(0)
    scores, weights, groups = rng.random(30), rng.random(30), np.repeat(["a", "b", "c"], 10)
    options = {"sensitive_features": groups, "target": "b", "sample_weight": weights}
    floor = noise_floor(wasserstein_disparity, scores, n_shuffles=3, random_state=0, **options)
    assert floor.observed == wasserstein_disparity(scores, **options)
    assert floor.observed not in floor.values


def test_what_it_refuses():
    scores, groups = [0.1, 0.2], ["a", "b"]
    with pytest.raises(TypeError, match="metric must be a function, such as strong_pairwise_disparity; got str"):
        noise_floor("spdd", scores, sensitive_features=groups)
    with pytest.raises(ValueError, match="n_shuffles must be at least 2; got 1"):
        noise_floor(strong_pairwise_disparity, scores, sensitive_features=groups, n_shuffles=1)
    with pytest.raises(ValueError, match="at least 2"):
        noise_floor(strong_pairwise_disparity, scores, sensitive_features=["a", "a"])
    with pytest.raises(TypeError):
        noise_floor(disparities, scores, sensitive_features=groups)  # a dict is no number
