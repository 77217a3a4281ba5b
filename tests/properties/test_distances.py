"""W1 is a metric, the barycenter of equals is itself, and the metrics see distributions, not rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtransport import metrics
from fairtransport.transport import Sample, w1_barycenter, w2_barycenter, wasserstein

from .drawn import brief, samples, scored

METRICS = ["strong_demographic_disparity", "strong_pairwise_disparity", "wasserstein_disparity"]
every = pytest.mark.parametrize("name", METRICS)


@brief
@given(samples(), samples(), samples())
def test_w1_is_a_metric(x, y, z):
    assert wasserstein(x, x) == 0
    assert wasserstein(x, y) == wasserstein(y, x)
    assert wasserstein(x, z) <= wasserstein(x, y) + wasserstein(y, z) + 1e-9
    same = x.size == y.size and np.array_equal(np.sort(x), np.sort(y))
    if wasserstein(x, y) == 0 and x.size == y.size:
        np.testing.assert_allclose(np.sort(x), np.sort(y), atol=1e-12)
    if same:
        assert wasserstein(x, y) == 0


@brief
@given(samples(), samples(), st.floats(0.1, 10), st.floats(-10, 10))
def test_w1_follows_the_line(x, y, scale, shift):
    """Affine equivariance: scaled with the scale, and blind to shifts of both and to turning the line round."""
    np.testing.assert_allclose(wasserstein(scale * x + shift, scale * y + shift), scale * wasserstein(x, y), atol=1e-9)
    np.testing.assert_allclose(wasserstein(-x, -y), wasserstein(x, y), atol=1e-9)
    np.testing.assert_allclose(wasserstein(x + shift, x), abs(shift), atol=1e-9)


@brief
@given(samples(), st.integers(1, 5), st.integers(1, 3), st.sampled_from([w1_barycenter, w2_barycenter]))
def test_the_barycenter_of_equal_distributions_is_that_distribution(x, many, times, barycenter):
    """Also where one is there in copies: a distribution is no list of rows."""
    same = [Sample.from_values(np.tile(x, times if place % 2 else 1)) for place in range(many)]
    assert wasserstein(barycenter(same), Sample.from_values(x)) <= 1e-12


@brief
@given(samples(), samples(), st.floats(-3, 3), st.sampled_from([w1_barycenter, w2_barycenter]))
def test_barycenters_follow_shifts(x, y, shift, barycenter):
    plain = barycenter([Sample.from_values(x), Sample.from_values(y)])
    moved = barycenter([Sample.from_values(x + shift), Sample.from_values(y + shift)])
    np.testing.assert_allclose(wasserstein(plain, moved), abs(shift), atol=1e-9)


@every
@brief
@given(one=scored(), random=st.randoms(use_true_random=False), times=st.integers(2, 5), data=st.data())
def test_order_names_and_copies_do_not_matter(name, one, random, times, data):
    """Weights equal repetition, and doubling all rows changes nothing."""
    metric, n = getattr(metrics, name), one.scores.size
    order = random.sample(range(n), n)
    names = np.array(random.sample(["x", "a", "", "Ω", "1", "z z", "<b>"], 4), dtype=object)
    for scores, group in (
        (one.scores[order], one.group[order]),
        (one.scores, names[one.group]),
        (np.tile(one.scores, times), np.tile(one.group, times)),
    ):
        expected = metric(one.scores, sensitive_features=one.group)
        assert metric(scores, sensitive_features=group) == pytest.approx(expected, abs=1e-12)
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    copies = np.repeat(np.arange(n), weights)
    assert metric(one.scores, sensitive_features=one.group, sample_weight=weights) == pytest.approx(
        metric(one.scores[copies], sensitive_features=one.group[copies]), abs=1e-9
    )
