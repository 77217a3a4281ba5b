"""What the trade-offs of the benchmarks measure, against the library, and LinearPost's rule against its constraints."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from fairtransport.metrics import (
    equalized_odds_difference,
    error_rate,
    rank_disparity,
    separation_disparity,
    strong_pairwise_disparity,
)


def load(name):
    return importlib.import_module(f"benchmarks.{name}")


@pytest.fixture(scope="module")
def task():
    """Two groups with different base rates and calibrated scores, known at prediction."""
    rng = np.random.default_rng(0)
    groups = (rng.random(4000) < 0.6).astype(int)
    scores = rng.beta(np.where(groups == 0, 2.0, 1.0), 2.0)
    labels = (rng.random(4000) < scores).astype(int)
    members = np.eye(2)[groups][:, :, None]
    joint = members * np.column_stack((1 - scores, scores))[:, None]
    train, test = slice(0, 2000), slice(2000, None)
    return SimpleNamespace(
        y_train=labels[train], groups_train=groups[train], y_test=labels[test], groups_test=groups[test],
        scores=(scores[train], scores[test]), joint=(joint[train], joint[test]), aware=True, seed=0,
    )  # fmt: skip


def test_measures_are_those_of_the_library(task):
    rows = load("_curves").TestRows(task, n_bootstrap=1)
    scores, labels, groups = task.scores[1], task.y_test, task.groups_test
    for number, weights in enumerate(rows.weights):
        known = {"sensitive_features": groups, "sample_weight": weights}
        chosen = [np.average(scores[groups == code] > 0.5, weights=weights[groups == code]) for code in (0, 1)]
        expected = (
            error_rate(labels, scores, sample_weight=weights),
            abs(chosen[0] - chosen[1]),
            strong_pairwise_disparity(scores, **known),
            equalized_odds_difference(labels, scores, **known),
            2 * separation_disparity(labels, scores, reduce="mean", **known),  # a sum over labels, not a mean
        )
        found = rows.measure(scores)[number]
        np.testing.assert_allclose(np.delete(found, 3), expected, rtol=1e-9)
        if number == 0:  # ranks are those among all test rows, however they are resampled
            np.testing.assert_allclose(found[3], rank_disparity(scores, sensitive_features=groups), rtol=1e-9)
    decisions = (scores > 0.5).astype(float)
    decided, scored = rows.measure(None, decisions), rows.measure(decisions)
    assert np.isnan(decided[:, 2:4]).all()
    np.testing.assert_allclose(np.delete(decided, (2, 3), axis=1), np.delete(scored, (2, 3), axis=1), rtol=1e-9)
    np.testing.assert_allclose(rows.measure(np.array([scores, scores])), rows.measure(scores), rtol=1e-9)


def test_linear_post_keeps_its_constraints_and_costs_little(task):
    joint = task.joint[1].reshape(len(task.y_test), -1)
    grid = (0.01, 0.05, 1.0)
    found = {bound: chance for bound, _, chance in load("_peers").linear_post(task, grid, criterion="equalized_odds")}
    for bound, chance in found.items():
        rates = (joint.T @ chance / joint.sum(axis=0)).reshape(2, 2)
        assert np.ptp(rates, axis=0).max() <= bound + 0.05  # fresh rows: rates of 2,000 rows vary by some .02
    clear = np.abs(task.scores[1] - 0.5) > 0.005
    np.testing.assert_allclose(found[1.0][clear], task.scores[1][clear] > 0.5, atol=1e-6)  # no constraint binds
    rows = load("_curves").TestRows(task, n_bootstrap=0)
    (strict, loose, free) = (rows.measure(None, chance)[0] for chance in found.values())
    assert strict[0] >= loose[0] - 0.01 >= free[0] - 0.02
    assert strict[4] < free[4] / 3


def test_a_curve_is_read_where_it_reaches():
    curve = load("_curves").Curve.through([0.1, 0.3, 0.2], [0.3, 0.2, 0.4])  # the last point is dominated
    np.testing.assert_allclose(curve.at([0.05, 0.2, 0.5]), [np.nan, 0.25, 0.2])
    assert curve.at(0.05, below=None) == 0.3
