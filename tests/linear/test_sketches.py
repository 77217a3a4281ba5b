"""Sketches against the rows that they stand for."""

import numpy as np
import pytest

from fairtransport import make_groups
from fairtransport.linear.sketches import POINTS, Sketches
from fairtransport.training.responses import LOSSES
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.regularizers import sigmoid

LOGISTIC = LOSSES["logistic"]


def rows(n=4000, seed=0):
    """Normal features with correlation, so that the mean feature at a logit is linear in the logit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.7]] + [0.5, 0.0, -1.0]
    return X, make_groups(rng.choice(["a", "b"], n))


def sketched(X, groups, theta, half_life=np.inf):
    mass = np.ones(len(X))
    return Sketches.empty(2, 3).seen(X, X @ theta[:-1] + theta[-1], groups.rows, mass, half_life, loss=LOGISTIC)


def distance(points, values):
    return wasserstein(Sample.from_values(points), Sample.from_values(values))


def test_moments_and_quantiles_are_those_of_the_rows():
    X, groups = rows()
    theta = np.array([1.0, -0.5, 0.3, 0.2])
    logits = X @ theta[:-1] + theta[-1]
    whole = sketched(X, groups, theta)
    parts = Sketches.empty(2, 3)
    for some in np.array_split(np.arange(4000), [1, 2, 50, 51, 700]):
        parts = parts.seen(X[some], logits[some], groups.select(some).rows, np.ones(len(some)), np.inf, loss=LOGISTIC)
    for sketches in (whole, parts):
        for a, own in enumerate(groups.rows):
            np.testing.assert_allclose(sketches.means[a], X[own].mean(axis=0))
            np.testing.assert_allclose(sketches.centers[a], logits[own].mean())
            np.testing.assert_allclose(sketches.variances[a], logits[own].var())
            covariance = np.cov(np.column_stack((X[own], logits[own])).T, bias=True)[-1, :-1]
            np.testing.assert_allclose(sketches.slants[a], covariance, atol=1e-12)
            assert distance(sigmoid(sketches.points())[a], sigmoid(logits[own])) < 0.005  # 64 points
            assert sketches.masses[a].sum() == pytest.approx(own.size)


@pytest.mark.parametrize(("kind", "left"), [("along theta", 0.1), ("any", 0.5)])
def test_sketches_follow_theta_as_the_rows_do(kind, left):
    """Steps that shift and stretch logits are followed closely; of others the mean is, and new rows say the rest."""
    X, groups = rows()
    first = theta = np.array([1.0, -0.5, 0.3, 0.2])
    sketches, rng = sketched(X, groups, theta), np.random.default_rng(1)
    for _ in range(20):
        step = rng.normal(0.02, 0.05, 4) if kind == "any" else 0.02 * theta + [0.0, 0.0, 0.0, 0.05]
        sketches, theta = sketches.moved(step[None]), theta + step
    again, stale = sketched(X, groups, theta), sketched(X, groups, first)
    for a, own in enumerate(groups.rows):
        true = sigmoid(X[own] @ theta[:-1] + theta[-1])
        far = distance(sigmoid(stale.points())[a], true)
        assert far > 0.05
        assert distance(sigmoid(sketches.points())[a], true) < left * far
    np.testing.assert_allclose(sketches.centers, again.centers)


def test_gradients_are_those_of_the_rows():
    """E[push(l) x] for a push that depends on the logit only, where E[x | l] is linear."""
    X, groups = rows(40_000)
    theta = np.array([1.0, -0.5, 0.3, 0.2])
    sketches = sketched(X, groups, theta)
    points = sketches.points()
    assert points.shape == (2, POINTS)
    gradients = sketches.mean_gradients(points, np.tanh(points))
    for a, own in enumerate(groups.rows):
        push = np.tanh(X[own] @ theta[:-1] + theta[-1])
        exact = np.append(X[own].T @ push, push.sum()) / own.size
        np.testing.assert_allclose(gradients[a], exact, atol=0.02)


def test_a_change_of_the_world_ends_the_memory_and_chance_does_not():
    rng, theta = np.random.default_rng(0), np.array([1.0, 0.0, 0.0, 0.0])
    X, groups = rng.normal(size=(3000, 3)), make_groups(np.repeat(["a", "b"], 1500))
    sketches = sketched(X, groups, theta).shortened(1000.0)
    start = sketches.masses.sum(axis=1)
    dropped = 0
    for _ in range(200):  # nothing changes
        X, groups = rng.normal(size=(10, 3)), make_groups(["a"] * 5 + ["b"] * 5)
        before = sketches.masses.sum(axis=1)
        sketches = sketches.seen(X, X @ theta[:-1], groups.rows, np.ones(10), 1000.0, loss=LOGISTIC)
        dropped += np.count_nonzero(sketches.masses.sum(axis=1) < 0.8 * before)
    assert dropped <= 2
    for _ in range(15):  # group a does
        X, groups = rng.normal(size=(10, 3)) + np.repeat([[1.5], [0.0]], 5, axis=0), make_groups(["a"] * 5 + ["b"] * 5)
        sketches = sketches.seen(X, X @ theta[:-1], groups.rows, np.ones(10), 1000.0, loss=LOGISTIC)
    weight = sketches.masses.sum(axis=1)
    assert weight[0] < 0.2 * start[0]
    assert weight[1] > 0.5 * start[1]
