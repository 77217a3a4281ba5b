import numpy as np
import pytest

from fairtransport.penalties.pulls import Pulls, problems_of
from fairtransport.transport.dual import DualProblem, DualState, evaluate
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.regularizers import get_regularizer

NODES = np.linspace(0.05, 0.95, 40)


def problem(regularizer="l2", *, opposite=True):
    return DualProblem(
        draw_features(20, 0.1, np.random.default_rng(0)), get_regularizer(regularizer), 0.2, opposite, "all"
    )


def climbed(pulls, pictures, n_climbs=5, target=None):
    return pulls.climbed(pictures, target, dual=pulls.dual, step=0.2, n_climbs=n_climbs)


def pictures_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return [np.sort(rng.beta(2 + a, 4, 64)) for a in range(n)]


def test_problems_are_pairs_or_groups_and_the_target():
    assert problems_of(3, each_other=True) == [(0, 1), (0, 2), (1, 2)]
    assert problems_of(3, each_other=False) == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("each_other", [True, False])
@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
def test_slopes_are_those_of_the_dual_objective_at_the_nodes_that_were_named(regularizer, each_other):
    own, pictures = problem(regularizer, opposite=False), pictures_of(3)
    groups, target = (pictures, None) if each_other else (pictures[:2], pictures[2])
    pulls = Pulls(len(groups), own, each_other=each_other, nodes=NODES)
    slopes = climbed(pulls, groups, target=target)
    expected = np.zeros((len(groups), len(NODES)))

    def slope(x_dual, y_dual, other):
        return len(NODES) * evaluate(own, DualState(x_dual, y_dual), NODES, pictures[other]).point_gradient

    for (a, b), f, h in zip(pulls.problems, pulls.f, pulls.h, strict=True):
        for one, other, its, others in ((a, b, f, h), (b, a, h, f)):
            if one < len(groups):
                to_itself = slope(pulls.selves[one], pulls.selves[one], one)
                expected[one] += np.clip(slope(its, others, other) - to_itself, -2, 2)
    np.testing.assert_allclose(slopes, expected, atol=1e-9)


@pytest.mark.parametrize(("opposite", "most"), [(True, 1e-9), (False, 0.2)])  # free duals near their best slowly
def test_equal_groups_do_not_pull(opposite, most):
    picture = np.linspace(0.1, 0.9, 64)
    pulls = Pulls(2, problem(opposite=opposite), each_other=True, nodes=picture)
    assert np.abs(climbed(pulls, [picture, picture], 500)).max() < most
    assert np.abs(climbed(pulls, [picture, picture + 0.1])).max() > 2 * most


def test_couplings_pull_towards_the_others_quantile():
    low, high = np.linspace(0.1, 0.4, 64), np.linspace(0.6, 0.9, 64)
    slopes = Pulls(2, None, each_other=True, nodes=NODES).coupled([low, high], low)
    np.testing.assert_allclose(slopes, np.outer([-1.0, 1.0], np.ones(40)))


def test_sums_of_duals_are_by_group():
    pulls = Pulls(3, problem(opposite=False), each_other=True)
    climbed(pulls, pictures_of(3))
    np.testing.assert_array_equal(pulls.sum_of_duals(0)[1], pulls.h[0] + pulls.f[2])
    np.testing.assert_array_equal(pulls.sum_of_duals(1)[1], pulls.f[0] + pulls.h[2])
