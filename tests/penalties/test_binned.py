import numpy as np
import pytest

from fairtransport.groups import make_groups
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.penalties import DiscretePenalty
from fairtransport.penalties.binned import BinnedPenalty, ContinuousBinnedPenalty, DiscreteBinnedPenalty
from fairtransport.transport.binned import count_masses, quantiles
from fairtransport.transport.dual import DualProblem, DualState, evaluate
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.regularizers import get_regularizer

CELLS = 256
MANY = 1e12  # rows of a group, as the softness sees it: none


def scored(n=600, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_groups, size=n).astype(np.uint8)
    return rng.beta(2 + codes, 5 - codes), codes


def masses_of(scores, codes, n_groups=3):
    masses = np.zeros((n_groups, CELLS + 1))
    count_masses(scores, codes, np.zeros(0), masses)
    return masses


def problem(regularizer="l2", *, opposite=True):
    return DualProblem(
        draw_features(20, 0.1, np.random.default_rng(0)), get_regularizer(regularizer), 0.2, opposite, "all"
    )


def continuous(sizes, fixed=None, **how):
    own = problem(**how)
    return ContinuousBinnedPenalty(sizes, CELLS, fixed, problem=own, dual_step=own.default_step)


def slope_of_rows(tables, scores, codes):
    cell = np.minimum((scores * CELLS).astype(int), CELLS - 1)
    return tables.slopes[codes, cell] / np.bincount(codes)[codes]


def test_discrete_value_is_the_pairwise_disparity():
    scores, codes = scored()
    value = DiscreteBinnedPenalty([MANY] * 3, CELLS).read(masses_of(scores, codes)).value
    assert value == pytest.approx(strong_pairwise_disparity(scores, sensitive_features=codes), abs=1 / CELLS)


def test_discrete_to_a_fixed_target_is_the_discrete_penalty():
    scores, codes = scored()
    target = np.random.default_rng(1).beta(3, 3, 400)
    fixed = masses_of(target, np.zeros(400, np.uint8), 1)[0]
    tables = DiscreteBinnedPenalty([MANY] * 3, CELLS, fixed).read(masses_of(scores, codes))
    exact = DiscretePenalty(target).value_and_gradient(scores, make_groups(codes))
    assert tables.value == pytest.approx(exact.value, abs=3 / CELLS)
    # Rows pull the same way but where a distribution function crosses the target's.
    same = np.isclose(slope_of_rows(tables, scores, codes), exact.gradient, atol=1e-9)
    assert same.mean() > 0.9


@pytest.mark.parametrize("kind", ["discrete", "soft", "fixed", "l2", "entropy", "free", "continuous, fixed"])
def test_slopes_are_the_derivative_of_the_value(kind):
    scores, codes = scored()
    fixed = masses_of(np.full(10, 0.4), np.zeros(10, np.uint8), 1)[0]
    masses = masses_of(scores, codes)
    penalty = {
        "discrete": lambda: DiscreteBinnedPenalty([MANY] * 3, CELLS),
        "soft": lambda: DiscreteBinnedPenalty([50.0, 20.0, 10.0], CELLS),
        "fixed": lambda: DiscreteBinnedPenalty([50.0, 20.0, 10.0], CELLS, fixed),
        "l2": lambda: continuous([MANY] * 3),
        "entropy": lambda: continuous([MANY] * 3, regularizer="entropy"),
        "free": lambda: continuous([MANY] * 3, opposite=False),
        "continuous, fixed": lambda: continuous([MANY] * 3, fixed),
    }[kind]()
    for _ in range(5):
        penalty.look(masses)
    tables = penalty.read(masses)
    step, rows = 1e-7, np.arange(0, 600, 13)
    inside = np.abs((scores * CELLS) % 1.0 - 0.5) < 0.49  # a step must not cross an edge
    for row in rows[inside[rows]]:
        moved = [scores + sign * step * (np.arange(600) == row) for sign in (1, -1)]
        up, down = (penalty.read(masses_of(s, codes)).value for s in moved)
        assert slope_of_rows(tables, scores, codes)[row] == pytest.approx((up - down) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
@pytest.mark.parametrize("opposite", [True, False])
def test_continuous_slopes_are_those_of_the_dual_objective(regularizer, opposite):
    """At the duals it climbed to, on the pictures it climbed on, less a group's slope to itself, and 2 at most."""
    scores, codes = scored()
    masses = masses_of(scores, codes)
    penalty = continuous([MANY] * 3, regularizer=regularizer, opposite=opposite)
    penalty.look(masses)
    duals, own = penalty.pulls, problem(regularizer, opposite=opposite)
    pictures = [quantiles(m, (np.arange(64) + 0.5) / 64) for m in masses]
    middles = (np.arange(CELLS) + 0.5) / CELLS
    expected = np.zeros((3, CELLS))

    def slope(x_dual, y_dual, other):
        return CELLS * evaluate(own, DualState(x_dual, y_dual), middles, pictures[other]).point_gradient

    for (a, b), f, h in zip(duals.problems, duals.f, duals.h, strict=True):
        expected[a] += np.clip(slope(f, h, b) - slope(duals.selves[a], duals.selves[a], a), -2, 2)
        expected[b] += np.clip(slope(h, f, a) - slope(duals.selves[b], duals.selves[b], b), -2, 2)
    np.testing.assert_allclose(penalty.read(masses).slopes, expected, atol=1e-9)


def test_the_bend_is_that_of_a_parabola_above_the_distance():
    """All of one group at 0.3, all of the other at 0.6: moved by d, their distance is |0.3 - d|."""
    at = {a: np.round(place * CELLS) / CELLS for a, place in enumerate((0.3, 0.6))}
    scores, codes = np.r_[np.full(50, at[0]), np.full(50, at[1])], np.repeat([0, 1], 50).astype(np.uint8)
    tables = DiscreteBinnedPenalty([MANY] * 2, CELLS).read(masses_of(scores, codes, 2))
    cell = int(at[0] * CELLS)
    value, slope, bend = tables.value, tables.slopes[0, cell], tables.bends[0, cell]
    moves = np.linspace(-0.2, 0.35, 50)
    distance = np.abs(at[1] - at[0] - moves)
    parabola = value + slope * moves + 0.5 * bend * moves**2
    assert (parabola >= distance - 2 / CELLS).all()
    assert bend == pytest.approx(1 / 0.3, rel=0.02)


def test_a_base_has_no_value():
    with pytest.raises(NotImplementedError):
        BinnedPenalty([1.0, 1.0], CELLS).read(np.ones((2, CELLS + 1)))
