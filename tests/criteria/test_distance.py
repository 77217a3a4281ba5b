"""The two distances as parameters: names, instances, wrong settings."""

import pytest

from fairtransport import ContinuousDistance, DiscreteDistance
from fairtransport.criteria.distance import as_distance


def test_names_are_short_for_the_default_distances():
    assert as_distance("continuous") == ContinuousDistance()
    assert as_distance("discrete") == as_distance(DiscreteDistance()) == DiscreteDistance()


def test_a_learner_has_its_own_strength_unless_the_user_chose_one():
    assert ContinuousDistance(strength=0.5).with_defaults(3.2, 0.02) == ContinuousDistance(
        strength=0.5, kernel_variance=0.02
    )
    assert ContinuousDistance().dual_problem().strength == 0.1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("regularizer", value) for value in ("l3", 2, None)),
        *(("strength", value) for value in (0.0, -1.0, "x")),
        *(("opposite_duals", value) for value in ("yes", 1, None)),
        *(("n_fourier_features", value) for value in (0, 2.5, "50")),
        *(("kernel_variance", value) for value in (0.0, -1.0, "x")),
    ],
)
def test_wrong_settings_are_refused(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        ContinuousDistance(**{name: value})


@pytest.mark.parametrize("value", ["exact", None, 1, ContinuousDistance])
def test_another_distance_is_refused(value):
    with pytest.raises(ValueError, match="distance must be 'continuous', 'discrete'"):
        as_distance(value)
