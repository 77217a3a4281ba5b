"""Several ways to one answer on the line: quantile functions, the discrete coupling, solved and stochastic duals."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.linear import SgdSettings
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.transport import wasserstein

#: How far the value of the stochastic dual (l2, strength .02, opposite duals, 2,000 updates of 100 pairs) may be from
#: W1. The regularizer lets duals be a little steeper than 1, which raises the value by a share of it; noise and the
#: finite space of duals do the rest.
STOCHASTIC = {"share": 0.06, "plus": 0.012}
#: How far, on average, the scores of two solvers may lie apart, after full parity with weights for each group.
SCORES = 0.02
#: What may be left of the disparity: the models shift and stretch logits, and have no more to move with.
LEFT = 0.15


def two_samples(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(1, 5, size=(2, 2))
    return rng.beta(*first, 2000), rng.beta(*second, 2000)


def gap(seed):
    """By how much the stochastic answer exceeds, or falls short of, the exact one, as a share of what is allowed."""
    x, y = two_samples(seed)
    exact = wasserstein(x, y)
    found = ft.transport.solve_dual(
        x, y, strength=0.02, opposite_duals=True, kernel_variance=0.1, n_updates=2000, random_state=seed
    ).value
    return abs(found - exact) / (STOCHASTIC["share"] * exact + STOCHASTIC["plus"])


def test_the_stochastic_answer_agrees():
    assert gap(0) < 1


@pytest.mark.trust
@pytest.mark.parametrize("first", range(0, 100, 10))
def test_the_stochastic_answer_agrees_for_seeds_0_to_99(first):
    assert {seed: share for seed in range(first, first + 10) if (share := gap(seed)) >= 1} == {}


def solved(seed):
    """Scores of one feature, moved to one target by each solver."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=2000)
    X = rng.normal(size=(2000, 1)) * np.where(group, 1.0, 0.8)[:, None] + group[:, None] * 0.8
    y = (X[:, 0] + rng.logistic(size=2000) > 0.4).astype(int)
    keys = {"sensitive_features": group}
    how = {"target": "barycenter_w2", "group_specific": True, "parity_weight": 3.0, "scale": "score"}
    sgd = {"solver": SgdSettings(n_updates=2000, random_state=seed)}
    models = {
        "initial": LogisticRegression().fit(X, y),
        "quantile": ft.QuantileRepairClassifier(
            LogisticRegression(), repair=ft.QuantileRepair(target="barycenter_w2")
        ).fit(X, y, **keys),
        "stochastic": ft.TransportClassifier(**how, **sgd).fit(X, y, **keys),
        "continuous": ft.TransportClassifier(**how).fit(X, y, **keys),
        "discrete": ft.TransportClassifier(distance="discrete", **how).fit(X, y, **keys),
    }
    return {
        name: model.predict_proba(X, **({} if name == "initial" else keys))[:, 1] for name, model in models.items()
    }, group


def apart(seed):
    """Mean distances between the scores of the four, and to those before; disparities after."""
    scores, group = solved(seed)
    start = scores.pop("initial")
    names = sorted(scores)
    distances = [np.abs(scores[a] - scores[b]).mean() for a in names for b in names if a < b]
    left = [strong_pairwise_disparity(scores[name], sensitive_features=group) for name in names]
    before = strong_pairwise_disparity(start, sensitive_features=group)
    return max(distances), max(left) / before, np.abs(scores["quantile"] - start).mean()


def test_all_models_agree():
    between, left, moved = apart(0)
    assert between < SCORES
    assert left < LEFT
    assert moved > 2 * between  # they went a long way, and to one place


@pytest.mark.trust
@pytest.mark.parametrize("first", range(0, 100, 10))
def test_all_models_agree_for_seeds_0_to_99(first):
    found = {seed: apart(seed) for seed in range(first, first + 10)}
    assert {seed: told for seed, told in found.items() if told[0] >= SCORES or told[1] >= LEFT} == {}
