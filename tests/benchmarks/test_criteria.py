"""What `benchmarks.criteria` measures, against the library, and its rule of LinearPost against its constraints."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairtransport.metrics import equalized_odds_difference, error_rate, separation_disparity

pytest.importorskip("lightgbm")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def load():
    before = list(sys.path)
    sys.path.insert(0, str(ROOT))
    try:
        yield lambda name: importlib.import_module(f"benchmarks.{name}")
    finally:
        sys.path[:] = before


@pytest.fixture(scope="module")
def task():
    """Two groups with different base rates and calibrated scores, known at prediction."""
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(4000) < 0.4, "a", "b")
    scores = rng.beta(np.where(groups == "a", 2.0, 1.0), 2.0)
    labels = (rng.random(4000) < scores).astype(int)
    members = (groups[:, None] == ["a", "b"])[:, :, None]
    joint = members * np.column_stack((1 - scores, scores))[:, None]
    train, test = slice(0, 2000), slice(2000, None)
    return SimpleNamespace(
        y_train=labels[train], groups_train=groups[train], y_test=labels[test], groups_test=groups[test],
        scores=(scores[train], scores[test]), joint=(joint[train], joint[test]), aware=True, seed=0,
    )  # fmt: skip


def test_measures_are_those_of_the_library(load, task):
    rows = load("criteria").TestRows(task, n_bootstrap=1)
    scores, labels, groups = task.scores[1], task.y_test, task.groups_test
    for number, weights in enumerate(rows.weights):
        known = {"sensitive_features": groups, "sample_weight": weights}
        expected = (
            error_rate(labels, scores, sample_weight=weights),
            equalized_odds_difference(labels, scores, **known),
            2 * separation_disparity(labels, scores, reduce="mean", **known),  # a sum over labels, not a mean
        )
        np.testing.assert_allclose(rows.measure(scores, decides=False)[number], expected, rtol=1e-9)
    decisions = (scores > 0.5).astype(float)
    decided = rows.measure(decisions, decides=True)
    np.testing.assert_allclose(decided, rows.measure(decisions, decides=False), rtol=1e-9)
    twice = rows.measure(np.array([scores, scores]), decides=False)
    np.testing.assert_allclose(twice, rows.measure(scores, decides=False), rtol=1e-9)


def test_linear_post_keeps_its_constraints_and_costs_little(load, task):
    criteria, peers = load("criteria"), load("_odds_peers")
    joint = task.joint[1].reshape(len(task.y_test), -1)
    found = dict(peers.linear_post(task, (0.01, 0.05, 1.0)))
    for bound, chance in found.items():
        rates = (joint.T @ chance / joint.sum(axis=0)).reshape(2, 2)
        assert np.ptp(rates, axis=0).max() <= bound + 0.05  # fresh rows: rates of 2,000 rows vary by some .02
    clear = np.abs(task.scores[1] - 0.5) > 0.005
    np.testing.assert_allclose(found[1.0][clear], task.scores[1][clear] > 0.5, atol=1e-6)  # no constraint binds
    rows = criteria.TestRows(task, n_bootstrap=0)
    (strict, loose, free) = (rows.measure(chance, decides=True)[0] for chance in found.values())
    assert strict[0] >= loose[0] - 0.01 >= free[0] - 0.02
    assert strict[1] < free[1] / 3
