"""Penalties: value and gradient, on rows, slice means and histograms, against formulas and other libraries."""

import itertools

import numpy as np
import ot
import pytest
from scipy.stats import wasserstein_distance

from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import quadrature_features
from fairtransport.transport.kernels.binned import slices_and_levels
from fairtransport.transport.regularizers import get_regularizer

SCALES = ["standardized", "score"]
KINDS = ["discrete", *itertools.product(["l2", "entropy"], [True, False])]


def problem(regularizer="l2", opposite=True, *, strength=0.1):
    return DualProblem(quadrature_features(50, 0.1), get_regularizer(regularizer), strength, opposite, "all")


def make_penalty(kind, **options):
    return DiscretePenalty(**options) if kind == "discrete" else ContinuousPenalty(problem(*kind), **options)


def exact(**options):
    return DiscretePenalty(huber_width=0.0, scale="score", **options)


def sampled(seed=0, sizes=(23, 31, 17)):
    """Scores of three samples that differ, and all pairs of them."""
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.beta(2 + k, 5 - k, size) for k, size in enumerate(sizes)])
    ends = np.cumsum([0, *sizes])
    cells = [np.arange(start, stop) for start, stop in itertools.pairwise(ends)]
    return scores, Comparisons.of_cells(scores.size, cells, list(itertools.combinations(range(len(sizes)), 2)))


def comparisons_of(case):
    scores, plain = sampled()
    rng = np.random.default_rng(5)
    cells, pairs = list(plain.cells), plain.pairs
    options = {"weights": [1.0, 0.3, 2.0]}
    if case == "weighted rows":
        options["row_weights"] = rng.uniform(0.2, 3.0, scores.size)
    elif case == "overlapping cells":
        cells = [np.arange(0, 40), np.arange(25, 71), np.arange(10, 60, 3)]
    elif case == "targets":
        pairs, options["targets"] = [(0, 3), (1, 4), (2, 3)], [rng.beta(3, 3, 40), rng.beta(1, 2, 55)]
    return scores, Comparisons.of_cells(scores.size, cells, pairs, **options)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_slices", [None, 16])
@pytest.mark.parametrize("case", ["plain", "weighted rows", "overlapping cells", "targets"])
def test_gradient_agrees_with_finite_differences(kind, scale, n_slices, case):
    scores, comparisons = comparisons_of(case)
    penalty = make_penalty(kind, scale=scale, n_slices=n_slices)
    terms = penalty.value_and_gradient(scores, comparisons)
    assert terms.value == pytest.approx(comparisons.weights @ terms.distances)
    picked = np.arange(0, scores.size, 9)
    value = lambda s: penalty.value(s, comparisons)  # noqa: E731
    step = 1e-6
    numeric = [
        (value(scores + step * (np.arange(scores.size) == k)) - value(scores - step * (np.arange(scores.size) == k)))
        / (2 * step)
        for k in picked
    ]
    np.testing.assert_allclose(terms.gradient[picked], numeric, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("n_slices", [None, 16])
def test_equal_samples_are_at_no_distance(kind, n_slices):
    scores = np.tile(np.random.default_rng(0).random(40), 2)
    comparisons = Comparisons.of_cells(80, [np.arange(40), np.arange(40, 80)], [(0, 1)])
    terms = make_penalty(kind, n_slices=n_slices).value_and_gradient(scores, comparisons)
    assert terms.value == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(terms.gradient, 0.0, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_exact_distance_is_that_of_scipy_and_pot(weighted):
    rng = np.random.default_rng(1)
    scores, comparisons = sampled()
    weights = rng.uniform(0.1, 2.0, scores.size) if weighted else np.ones(scores.size)
    comparisons = Comparisons.of_cells(
        scores.size, comparisons.cells, comparisons.pairs, row_weights=weights if weighted else None
    )
    distances = exact(n_slices=None).value_and_gradient(scores, comparisons).distances
    for (a, b), distance in zip(comparisons.pairs, distances, strict=True):
        x, y = (scores[comparisons.cells[cell]] for cell in (a, b))
        p, q = (weights[comparisons.cells[cell]] for cell in (a, b))
        assert distance == pytest.approx(wasserstein_distance(x, y, p, q), abs=1e-12)
        assert distance == pytest.approx(ot.wasserstein_1d(x, y, p / p.sum(), q / q.sum(), p=1), abs=1e-12)


def test_the_continuous_distance_nears_the_exact_one_as_it_is_regularized_less():
    rng = np.random.default_rng(0)
    scores = np.r_[rng.beta(2, 6, 300), rng.beta(6, 2, 300)]
    comparisons = Comparisons.of_cells(600, [np.arange(300), np.arange(300, 600)], [(0, 1)])
    wanted = exact().value_and_gradient(scores, comparisons).value
    errors = []
    for strength in (0.3, 0.1, 0.02):
        penalty = ContinuousPenalty(problem(strength=strength), scale="score", ridge=1e-4)
        errors.append(abs(penalty.value_and_gradient(scores, comparisons).value - wanted))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_slices_near_rows_as_they_become_finer(kind, scale):
    _, comparisons = sampled(sizes=(90, 120, 60))
    rng = np.random.default_rng(0)  # distribution functions that cross: otherwise slices are exact
    scores = np.r_[rng.beta(0.5, 0.5, 90), rng.beta(4, 4, 120), rng.beta(1, 2, 60)]
    rows = make_penalty(kind, scale=scale, n_slices=None).value_and_gradient(scores, comparisons)
    errors, slopes = [], []
    for n_slices in (6, 30, 120):
        terms = make_penalty(kind, scale=scale, n_slices=n_slices).value_and_gradient(scores, comparisons)
        errors.append(np.abs(terms.distances - rows.distances).max())
        slopes.append(np.abs(terms.gradient - rows.gradient).sum())
    assert errors[0] > 3 * errors[2]
    assert errors[2] < 2e-3
    assert slopes[0] > slopes[2]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_histograms_agree_with_rows(kind, scale):
    scores, comparisons = sampled(sizes=(400, 600, 500))
    rows = make_penalty(kind, scale=scale, n_slices=100).value_and_gradient(scores, comparisons)
    errors = []
    for n_bins in (8, 512):
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        masses = np.array([np.histogram(scores[cell], edges)[0] for cell in comparisons.cells], dtype=float)
        slices, levels = np.zeros((len(masses), 100)), np.zeros((len(masses), n_bins + 1))
        slices_and_levels(masses, edges, slices, levels)
        terms = make_penalty(kind, scale=scale).slice_terms(slices, masses.sum(axis=1), comparisons)
        errors.append(np.abs(terms.distances - rows.distances).max())
    assert errors[1] < min(0.002, errors[0])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_slices", [None, 16])
def test_weights_of_rows_are_copies(kind, scale, n_slices):
    scores, comparisons = sampled()
    times = np.random.default_rng(4).integers(0, 4, scores.size)
    copies = np.repeat(np.arange(scores.size), times)
    cell_of_row = np.repeat(np.arange(3), [rows.size for rows in comparisons.cells])
    repeated = Comparisons.of_cells(
        copies.size, [np.flatnonzero(cell_of_row[copies] == k) for k in range(3)], comparisons.pairs
    )
    weighted = Comparisons.of_cells(scores.size, comparisons.cells, comparisons.pairs, row_weights=times.astype(float))
    np.testing.assert_array_equal(weighted.sizes, repeated.sizes)
    one = make_penalty(kind, n_slices=n_slices, scale=scale).value_and_gradient(scores, weighted)
    other = make_penalty(kind, n_slices=n_slices, scale=scale).value_and_gradient(scores[copies], repeated)
    close = 1e-12 if kind == "discrete" else 1e-7  # solved duals end within a tolerance
    assert one.value == pytest.approx(other.value, abs=close)
    np.testing.assert_allclose(one.gradient, np.bincount(copies, other.gradient, scores.size), atol=close)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("n_slices", [None, 16])
def test_shrinking_or_moving_all_scores_gains_nothing(kind, n_slices):
    scores, comparisons = sampled()
    terms = make_penalty(kind, n_slices=n_slices).value_and_gradient(scores, comparisons)
    for shift, factor in ((0.0, 0.01), (0.4, 1.0), (-3.0, 50.0)):
        moved = make_penalty(kind, n_slices=n_slices).value_and_gradient(shift + factor * scores, comparisons)
        assert moved.value == pytest.approx(terms.value, rel=1e-9)
        np.testing.assert_allclose(factor * moved.gradient, terms.gradient, atol=1e-8)
    # The gradient has no part along either direction.
    assert terms.gradient.sum() == pytest.approx(0.0, abs=1e-10)
    assert terms.gradient @ scores == pytest.approx(0.0, abs=1e-10)


def test_standardized_scores_have_the_spread_of_typical_probabilities():
    """A quarter: widths and strengths mean the same on both scales."""
    scores, comparisons = sampled()
    quarter = (scores - scores.mean()) / (4.0 * scores.std())
    by_hand = DiscretePenalty(scale="score").value_and_gradient(quarter, comparisons)
    assert DiscretePenalty().value_and_gradient(scores, comparisons).value == pytest.approx(by_hand.value, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_constant_scores_are_no_division_by_zero(kind):
    _, comparisons = sampled()
    terms = make_penalty(kind).value_and_gradient(np.full(71, 0.3), comparisons)
    assert terms.value == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(terms.gradient).all()


def test_pairs_of_weight_zero_are_passed_over():
    scores, comparisons = sampled()
    for kind in KINDS:
        terms = make_penalty(kind).value_and_gradient(scores, comparisons.reweighted([1.0, 0.0, 0.0]))
        assert terms.distances[0] > 0.0
        np.testing.assert_array_equal(terms.distances[1:], 0.0)
        nothing = make_penalty(kind).value_and_gradient(scores, comparisons.reweighted(np.zeros(3)))
        assert nothing.value == 0.0
        np.testing.assert_array_equal(nothing.gradient, 0.0)


def test_the_potentials_of_a_pair_are_opposite_or_free():
    scores, comparisons = sampled()
    for opposite in (True, False):
        penalty = ContinuousPenalty(problem("l2", opposite))
        empty = penalty.dual_coefficients()
        assert empty[0].shape == (0, 50)
        penalty.value_and_gradient(scores, comparisons)
        f, h = penalty.dual_coefficients()
        assert f.shape == h.shape == (3, 50)
        assert np.array_equal(f, -h) == opposite


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pairs": [(0, 2)]}, "pairs must be indices from 0 to 1: 2 cells"),
        ({"pairs": [(-1, 0)]}, "pairs must be indices"),
        ({"weights": [1.0, 2.0]}, "weights must be 1 numbers"),
        ({"weights": [-1.0]}, "zero or more"),
        ({"weights": [np.nan]}, "zero or more"),
        ({"cells": [np.arange(3), np.arange(0)]}, "1 of 2 cells have no rows"),
    ],
)
def test_comparisons_validate_their_arguments(arguments, words):
    given = {"cells": [np.arange(3), np.arange(3, 6)], "pairs": [(0, 1)], **arguments}
    with pytest.raises(ValueError, match=words):
        Comparisons.of_cells(6, given.pop("cells"), given.pop("pairs"), **given)


def test_bad_input():
    scores, comparisons = sampled()
    with pytest.raises(ValueError, match="70 scores for comparisons of 71 rows"):
        DiscretePenalty().value_and_gradient(scores[1:], comparisons)
    with pytest.raises(ValueError, match="NaN or infinite"):
        DiscretePenalty().value_and_gradient(np.where(scores > 0.5, np.nan, scores), comparisons)
    with pytest.raises(ValueError, match="scale must be one of"):
        DiscretePenalty(scale="rank")
    with pytest.raises(ValueError, match="n_slices"):
        DiscretePenalty(n_slices=0)
    with pytest.raises(ValueError, match="huber_width"):
        DiscretePenalty(huber_width=-1.0)


# What preconditions the solver.


@pytest.mark.parametrize("scale", ["score", "standardized"])
def test_the_curvature_bounds_the_discrete_penalty_of_linear_scores_from_above(scale):
    rng = np.random.default_rng(3)
    cells = np.split(np.arange(352), [96, 192])  # three samples of 96, 96 and 160 rows: whole rows in each of 32 slices
    pairs = Comparisons.of_cells(352, cells, [(0, 1), (0, 2), (1, 2)], weights=[1.0, 0.5, 2.0])
    X, theta = rng.normal(size=(352, 4)) + np.repeat([0.0, 0.3, -0.5], [96, 96, 160])[:, None], rng.normal(size=4)
    penalty = DiscretePenalty(n_slices=32, scale=scale)

    def jacobian(rows, shares, sums, n_sums):
        totals = np.zeros((n_sums, 4))
        np.add.at(totals, sums, shares[:, None] * X[rows])
        return totals

    root = penalty.curvature(X @ theta, pairs, jacobian)
    terms = penalty.value_and_gradient(X @ theta, pairs)
    for size in (1e-3, 0.1, 1.0) if scale == "score" else (1e-3,):
        for step in size * rng.normal(size=(20, 4)):
            bound = terms.value + (X.T @ terms.gradient) @ step + 0.5 * np.sum((root @ step) ** 2)
            slack = 1e-9 if scale == "score" else 0.05 * np.sum((root @ step) ** 2)  # the scale is not linear
            assert penalty.value_and_gradient(X @ (theta + step), pairs).value <= bound + slack


def test_the_curvature_takes_tiny_and_empty_cells_and_targets():
    scores, cells = np.random.default_rng(0).random(110), np.split(np.arange(110), [5, 105])
    pairs = Comparisons.of_cells(110, cells, [(0, 1), (1, 2), (1, 3)], targets=(np.linspace(0.0, 1.0, 64),))
    pairs = pairs.restricted(np.arange(105), None)  # the third cell is empty: two pairs are left
    root = DiscretePenalty(n_slices=32).curvature(scores[:105], pairs, lambda *parts: np.ones((parts[-1], 1)))
    assert root.shape == (64, 1)
    assert np.isfinite(root).all()
