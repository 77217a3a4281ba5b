"""Penalties as tables of cells and groups, against rows."""

import numpy as np
import pytest
from tests.worlds import demographic_parity

from fairtransport.criteria.binned import BinnedPenalty
from fairtransport.criteria.criterion import resolve_criterion, weigh_by_reliability
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty
from fairtransport.groups import make_groups
from fairtransport.strata import make_strata
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import quadrature_features
from fairtransport.transport.kernels.binned import count_masses
from fairtransport.transport.regularizers import get_regularizer

CELLS = 256


def scored(n=1500, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_groups, size=n).astype(np.uint8)
    lean = codes % 3
    return rng.beta(2 + lean, 5 - lean), codes


def masses_of(scores, codes, n_groups=3, n_cells=CELLS):
    masses = np.zeros((n_groups, n_cells + 1))
    count_masses(scores, codes, np.zeros(0), masses)
    return masses


def exact(**options):
    return DiscretePenalty(huber_width=0.0, scale="score", **options)


def continuous(regularizer="l2", *, opposite=True, **options):
    features = quadrature_features(50, 0.1)
    return ContinuousPenalty(DualProblem(features, get_regularizer(regularizer), 0.1, opposite, "all"), **options)


PENALTIES = {
    "exact": exact,
    "discrete": DiscretePenalty,
    "l2": continuous,
    "l2, scores": lambda: continuous(scale="score"),
    "entropy": lambda: continuous("entropy"),
    "free": lambda: continuous(opposite=False),
}


def slope_of_rows(tables, scores, codes):
    cell = np.minimum((scores * CELLS).astype(int), CELLS - 1)
    return tables.slopes[codes, cell] / np.bincount(codes)[codes]


@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("against", ["each other", "target", "everyone"])
def test_tables_agree_with_rows(kind, against):
    n_groups = 24 if against == "everyone" else 3
    scores, codes = scored(3000, n_groups)
    groups = make_groups(codes)
    target = np.random.default_rng(1).beta(3, 3, 400) if against == "target" else None
    pairs = weigh_by_reliability(demographic_parity(groups, target=target), scores)
    tables = BinnedPenalty(PENALTIES[kind](), pairs, n_groups, CELLS).read(masses_of(scores, codes, n_groups))
    rows = PENALTIES[kind]().value_and_gradient(scores, pairs)
    assert tables.value == pytest.approx(rows.value, rel=0.02, abs=3 / CELLS)
    slopes = slope_of_rows(tables, scores, codes)
    assert np.corrcoef(slopes, rows.gradient)[0, 1] > 0.98
    assert np.abs(slopes - rows.gradient).sum() < 0.1 * np.abs(rows.gradient).sum()


@pytest.mark.parametrize("n_groups", [2, 24], ids=["each other", "everyone"])
@pytest.mark.parametrize("kind", ["discrete", "l2, scores"])
def test_tables_of_strata_agree_with_rows(kind, n_groups):
    """Groups within labels, and rows that no stratum compares."""
    scores, codes = scored(4000, n_groups)
    labels = (np.random.default_rng(1).random(4000) < 0.3).astype(int)
    scores = 0.5 * (scores + 0.8 * labels)
    strata = make_strata(np.arange(4000) % 2)
    resolved = resolve_criterion("equalized_odds", make_groups(codes), labels=labels, strata=strata)
    pairs = weigh_by_reliability(resolved.comparisons(), scores)
    stratum = 2 * labels + strata.codes
    masses = masses_of(scores, (stratum * n_groups + codes).astype(np.uint8), 4 * n_groups)
    tables = BinnedPenalty(PENALTIES[kind](), pairs, n_groups, CELLS).read(masses)
    rows = PENALTIES[kind]().value_and_gradient(scores, pairs)
    assert tables.value == pytest.approx(rows.value, rel=0.02, abs=3 / CELLS)
    slopes = slope_of_rows(tables, scores, stratum * n_groups + codes)
    assert np.abs(slopes - rows.gradient).sum() < 0.1 * np.abs(rows.gradient).sum()


def test_weights_of_pairs_are_taken():
    scores, codes = scored()
    pairs, masses = demographic_parity(make_groups(codes)), masses_of(scores, codes)
    parts = [BinnedPenalty(DiscretePenalty(), pairs.reweighted(w), 3, CELLS).read(masses) for w in np.eye(3)]
    mixed = BinnedPenalty(DiscretePenalty(), pairs.reweighted([0.5, 2.0, 1.0]), 3, CELLS).read(masses)
    for name in ("value", "slopes", "curvatures"):
        one, two, three = (getattr(part, name) for part in parts)
        np.testing.assert_allclose(getattr(mixed, name), 0.5 * one + 2.0 * two + three, atol=1e-9)


def test_the_bend_is_that_of_a_parabola_above_the_distance():
    """All of one group at 0.3, all of the other at 0.6: moved by d, their distance is |0.3 - d|."""
    at = {a: np.round(score * CELLS) / CELLS for a, score in enumerate((0.3, 0.6))}
    scores, codes = np.r_[np.full(50, at[0]), np.full(50, at[1])], np.repeat([0, 1], 50).astype(np.uint8)
    tables = BinnedPenalty(exact(), demographic_parity(make_groups(codes)), 2, CELLS).read(masses_of(scores, codes, 2))
    cell = int(at[0] * CELLS)
    value, slope, curvature = tables.value, tables.slopes[0, cell], tables.curvatures[0, cell]
    moves = np.linspace(-0.2, 0.35, 50)
    distance = np.abs(at[1] - at[0] - moves)
    parabola = value + slope * moves + 0.5 * curvature * moves**2
    assert (parabola >= distance - 2 / CELLS).all()
    assert curvature == pytest.approx(1 / 0.3, rel=0.02)
