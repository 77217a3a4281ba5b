"""The map of blind repair against optimal transport and linear programmes, where probabilities are known."""

import numpy as np
import ot
import pytest
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from fairtransport.repair.blind import potentials
from fairtransport.repair.blind.potentials import Potentials, make_cells, score_nodes, solve_potentials


def two_groups(n, seed=0):
    """Known E[y | x] and P(group 1 | x) of normal features; neither is a function of the other."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    return x + 0.3 * z**2, 1 / (1 + np.exp(-(0.8 * x + 0.9 * z - 0.4)))


def contrasts_of(chance_of_one, seed=0):
    groups = (np.random.default_rng(seed).random(chance_of_one.size) < chance_of_one).astype(int)
    joint = np.column_stack((1 - chance_of_one, chance_of_one))[:, None]
    cells, _ = make_cells(joint, groups=groups, labels=None, compared=(0,))
    return cells, cells.contrasts(joint)


def transport_optimum(eta, delta):
    """Divol and Gaucher: the positive part of the contrast is transported onto its negative part."""
    one, other = delta > 0, delta < 0
    cost = (eta[one][:, None] - eta[other]) ** 2 / (delta[one][:, None] - delta[other])
    up, down = delta[one] / delta.size, -delta[other] / delta.size
    return ot.emd2(up, down * up.sum() / down.sum(), cost, numItermax=10**7)


def test_two_groups_reach_the_transport_optimum():
    eta, chance = two_groups(1500)
    p = chance.mean()
    delta = chance / p - (1 - chance) / (1 - p)
    cells, contrasts = contrasts_of(chance)
    nodes = score_nodes(eta, low=eta.min(), high=eta.max())
    options = {"slack": np.zeros(2), "centering": cells.centering, "max_iter": 1000}
    fair = solve_potentials(eta, contrasts, nodes, **options).move(eta, contrasts)
    best = transport_optimum(eta, delta)
    assert np.mean((fair - eta) ** 2) == pytest.approx(best, rel=0.02)
    ends = [wasserstein_distance(v, v, chance / p, (1 - chance) / (1 - p)) for v in (eta, fair)]
    assert ends[1] < 0.02 * ends[0]


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("slack", [0.0, 0.05])
def test_three_groups_reach_the_linear_programme(loss, slack):
    """Minimise the expected loss over random scores on the nodes, with shares above each node near a common one."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=120)
    logits = np.column_stack((0.5 * x, -0.7 * x, rng.normal(size=120)))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    eta = 1 / (1 + np.exp(-1.5 * x))
    groups = np.array([rng.choice(3, p=row) for row in chances])
    cells, _ = make_cells(chances[:, None], groups=groups, labels=None, compared=(0,))
    d = cells.contrasts(chances[:, None])
    nodes = np.linspace(0.03, 0.97, 15)
    s = nodes[None]
    cost = (
        (eta[:, None] - s) ** 2 if loss == "squared" else -eta[:, None] * np.log(s) - (1 - eta[:, None]) * np.log1p(-s)
    )
    n, m = cost.shape
    above = np.tril(np.ones((m, m)))[1:]  # node k and all after it
    apart = np.vstack([  # from the common share at each node, an unknown
        np.hstack((np.kron(d[:, c], np.fliplr(np.flipud(above))) / n, np.eye(m - 1))) for c in range(3)
    ])  # fmt: skip
    found = linprog(
        np.append(cost.ravel() / n, np.zeros(m - 1)), bounds=[(0, None)] * (n * m) + [(None, None)] * (m - 1),
        A_eq=np.hstack((np.kron(np.eye(n), np.ones(m)), np.zeros((n, m - 1)))), b_eq=np.ones(n),
        A_ub=np.vstack((apart, -apart)), b_ub=np.full(2 * len(apart), slack),
    )  # fmt: skip
    options = {"slack": np.full(3, slack), "centering": cells.centering, "loss": loss, "max_iter": 3000}
    potentials = solve_potentials(eta, d, nodes, **options)
    np.testing.assert_allclose(potentials.slopes.sum(axis=0), 0.0, atol=1e-12)
    value = (cost + d @ potentials.values).min(axis=1).mean()
    value -= slack * (np.abs(potentials.slopes) * np.diff(nodes)).sum()
    assert value <= found.fun + 1e-9  # a dual never exceeds its primal
    gain = found.fun - cost.min(axis=1).mean()
    assert value == pytest.approx(found.fun, abs=0.02 * gain)


@pytest.mark.parametrize("loss", ["squared", "log", "zero_one"])
def test_the_map_minimises_loss_and_potentials(loss):
    """Against a fine grid of scores."""
    rng = np.random.default_rng(3)
    nodes = np.array([0.0, 1.0]) if loss == "zero_one" else np.linspace(0.001, 0.999, 9)
    potentials = Potentials(nodes, rng.normal(size=(2, nodes.size - 1)), loss)
    eta, d = rng.uniform(0.01, 0.99, 50), rng.normal(size=(50, 2))
    fine = np.linspace(nodes[0], nodes[-1], 20_001)
    values = np.array([np.interp(fine, nodes, row) for row in potentials.values])

    def total(score, potential):
        if loss == "log":
            return -eta[:, None] * np.log(score) - (1 - eta[:, None]) * np.log1p(-score) + potential
        return (eta[:, None] - score) ** 2 + potential

    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.nanmin(total(fine[None], d @ values), axis=1)
    moved = potentials.move(eta, d)[:, None]
    reached = np.array([np.interp(moved[:, 0], nodes, row) for row in potentials.values])
    np.testing.assert_allclose(total(moved, (d * reached.T).sum(axis=1)[:, None])[:, 0], least, atol=1e-6)


@pytest.mark.parametrize("certain", [0.9999, 0.9])
def test_many_rows_are_merged_and_solved_in_single_precision(certain, monkeypatch):
    """Against double precision and all rows; of probabilities that nearly tell the groups, few differ."""
    rng = np.random.default_rng(4)
    eta = np.clip(rng.beta(2, 3, 6000), 0.01, 0.99)
    group = (rng.random(6000) < 0.3 + 0.4 * eta).astype(int)
    sure = certain if certain > 0.99 else rng.uniform(certain, 1.0, 6000)
    cells, contrasts = contrasts_of(np.where(group == 1, sure, 1.0 - sure))
    merged = potentials._merge_rows(eta, contrasts, np.full(6000, 1 / 6000))
    assert (merged[0].size < 2500) == (certain > 0.99)
    np.testing.assert_allclose(merged[2] @ merged[1], contrasts.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(merged[2] @ merged[0], eta.mean())
    options = {"slack": np.full(2, 0.002), "centering": cells.centering}
    nodes = score_nodes(eta, low=0.0, high=1.0)
    exact = solve_potentials(eta, contrasts, nodes, **options).move(eta, contrasts)
    monkeypatch.setattr(potentials, "_MANY_ROWS", 1000)
    quick = solve_potentials(eta, contrasts, nodes, **options).move(eta, contrasts)
    assert np.abs(quick - exact).mean() < 5e-4
    assert np.std(exact - eta) > 0.02  # and something was moved


def test_predictions_beyond_the_nodes_keep_their_distance():
    potentials = Potentials(np.array([0.0, 1.0]), np.zeros((1, 1)), "squared")
    eta = np.array([-2.0, 0.5, 3.0])
    np.testing.assert_array_equal(potentials.move(eta, np.ones((3, 1))), eta)
