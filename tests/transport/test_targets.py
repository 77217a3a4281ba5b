"""Barycenters and other targets: optimal against POT's linear programme, exact, and asked for by name."""

import re

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairtransport.transport import targets
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import pooled, resolve_target, w1_barycenter, w2_barycenter

CANARY = 0.123454321

scores = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0])


@st.composite
def several_samples(draw, max_samples=5):
    samples = []
    for _ in range(draw(st.integers(1, max_samples))):
        values = draw(arrays(np.float64, st.integers(1, 12), elements=scores))
        weights = draw(st.none() | arrays(np.float64, values.size, elements=st.floats(0.01, 10)))
        samples.append(Sample.from_values(values, weights))
    weights = draw(st.none() | arrays(np.float64, len(samples), elements=st.floats(0.01, 10)))
    return samples, weights


def random_samples(rng, n_groups, *, size=25, grid=None):
    samples = []
    for _ in range(n_groups):
        n = rng.integers(2, size)
        values = rng.beta(*rng.uniform(0.5, 5, 2), n) if grid is None else rng.choice(grid, n)
        samples.append(Sample.from_values(values, rng.random(n) if rng.random() < 0.5 else None))
    return samples


def total(samples, candidate, weights=None, p=1):
    weights = np.full(len(samples), 1 / len(samples)) if weights is None else weights
    return sum(w * wasserstein(sample, candidate, p=p) ** p for w, sample in zip(weights, samples, strict=True))


def lp_optimum(samples, grid, weights, p):
    """Cost of POT's barycenter with free mass on the grid."""
    mass = np.zeros((grid.size, len(samples)))
    for column, sample in enumerate(samples):
        np.add.at(mass[:, column], np.searchsorted(grid, sample.values), sample.weights)
    costs = np.abs(grid[:, None] - grid[None, :]) ** p
    best = ot.lp.barycenter(mass, costs, weights=weights)
    best = np.maximum(best, 0)
    candidate = Sample.from_values(grid, best / best.sum())
    return total(samples, candidate, weights, p)


@pytest.mark.parametrize("n_groups", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_w1_barycenter_costs_what_the_linear_programme_costs(n_groups, weighted):
    # A median of grid values lies on the grid, so the grid costs nothing.
    rng, grid = np.random.default_rng(10 + n_groups), np.linspace(0, 1, 12)
    for _ in range(3):
        samples = random_samples(rng, n_groups, grid=grid)
        weights = rng.dirichlet(np.ones(n_groups)) if weighted else np.full(n_groups, 1 / n_groups)
        ours = total(samples, w1_barycenter(samples, weights if weighted else None), weights)
        assert ours == pytest.approx(lp_optimum(samples, grid, weights, p=1), abs=1e-8)


def test_w2_barycenter_costs_what_the_linear_programme_costs():
    # Two groups on multiples of 1/10 with weights 1/2: means lie on multiples of 1/20.
    rng, grid = np.random.default_rng(3), np.linspace(0, 1, 21)
    for _ in range(3):
        samples = random_samples(rng, 2, grid=grid[::2])
        weights = np.array([0.5, 0.5])
        ours = total(samples, w2_barycenter(samples), weights, p=2)
        assert ours == pytest.approx(lp_optimum(samples, grid, weights, p=2), abs=1e-8)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_no_distribution_has_a_smaller_sum_of_squared_w2(n_groups):
    rng = np.random.default_rng(20 + n_groups)
    samples, weights = random_samples(rng, n_groups), rng.dirichlet(np.ones(n_groups))
    best = w2_barycenter(samples, weights)
    least = total(samples, best, weights, p=2)
    rivals = [*samples, *random_samples(rng, 10), pooled(samples, weights), w1_barycenter(samples, weights)]
    assert all(least < total(samples, rival, weights, p=2) for rival in rivals)


def test_equal_sizes_combine_rank_by_rank():
    rng = np.random.default_rng(0)
    table = np.sort(rng.random((30, 5)), axis=0)
    samples = [Sample.from_values(rng.permutation(column)) for column in table.T]
    assert np.array_equal(w1_barycenter(samples).values, np.median(table, axis=1))
    assert w2_barycenter(samples).values == pytest.approx(table.mean(axis=1), abs=1e-15)
    assert np.array_equal(w1_barycenter(samples[:4]).values, np.median(table[:, :4], axis=1))  # middle of the two
    assert np.array_equal(w1_barycenter(samples).levels, samples[0].levels)  # 30 levels, no slivers


def test_unequal_sizes_by_hand():
    samples = [Sample.from_values([0.0, 0.6]), Sample.from_values([0.3, 0.6, 0.9])]
    best = w2_barycenter(samples, [2, 1])
    # Levels 1/3, 1/2, 2/3, 1: (0, .3), (0, .6), (.6, .6), (.6, .9).
    assert best.levels == pytest.approx([1 / 3, 1 / 2, 2 / 3, 1], abs=1e-15)
    assert best.values == pytest.approx([0.1, 0.2, 0.6, 0.7], abs=1e-15)
    assert np.array_equal(w1_barycenter(samples, [2, 1]).quantile([0.2, 0.5, 0.6, 1.0]), [0, 0, 0.6, 0.6])


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1, 1, 1, 1], 0.3),
        ([5, 1, 1, 1], 0.0),
        ([3, 1, 1, 1], 0.1),  # the first alone hits one half: the middle of 0.0 and 0.2
        ([1, 1, 1, 4], 1.0),
        ([1, 0, 0, 1], 0.5),  # a group without weight is not a neighbour
        ([0, 3, 0, 0], 0.2),
        ([0.3, 0.2, 0.1, 0.4], 0.3),  # 0.3 + 0.2 in floating point
        ([0.1, 0.4, 0.2, 0.3], 0.3),
        ([0.5, 0.2, 0.2, 0.1], 0.1),  # their sum is 0.9999999999999999, so that the first passes one half
        ([0.7, 0.1, 0.1, 0.1], 0.0),
    ],
)
def test_weighted_medians_by_hand(weights, expected):
    samples = [Sample.from_values([value]) for value in (0.0, 0.2, 0.4, 1.0)]
    assert w1_barycenter(samples, weights).values.tolist() == pytest.approx([expected], abs=1e-15)
    turned = w1_barycenter(samples[::-1], weights[::-1])
    assert turned.values.tolist() == pytest.approx([expected], abs=1e-15)


def test_pooled_by_size_is_all_rows():
    rng = np.random.default_rng(1)
    parts = [rng.random(n) for n in (3, 10, 7)]
    mixture = pooled([Sample.from_values(part) for part in parts], [3, 10, 7])
    everyone = Sample.from_values(np.concatenate(parts))
    assert np.array_equal(mixture.values, everyone.values)
    assert mixture.weights == pytest.approx(everyone.weights, abs=1e-15)


@given(several_samples())
def test_means_and_ranges(drawn):
    samples, weights = drawn
    shares = np.ones(len(samples)) if weights is None else weights
    mean = np.average([sample.mean for sample in samples], weights=shares)
    lowest, highest = min(sample.values[0] for sample in samples), max(sample.values[-1] for sample in samples)
    assert w2_barycenter(samples, weights).mean == pytest.approx(mean, abs=1e-9)
    assert pooled(samples, weights).mean == pytest.approx(mean, abs=1e-9)
    for make in (w1_barycenter, w2_barycenter, pooled):
        target = make(samples, weights)
        assert target.values[0] >= lowest
        assert target.values[-1] <= highest
        assert len(target) <= sum(map(len, samples))


def test_thirds_that_do_not_add_up_leave_no_error():
    # Running sums of 1/3 and of 0.1 miss 1 and 1/2 by a rounding; the slivers may not carry a wrong value.
    tenths = Sample.from_values(np.arange(10) / 10, np.full(10, 0.1))
    thirds = Sample.from_values(np.array([0.2, 0.5, 0.8]), np.full(3, 1 / 3))
    for make in (w1_barycenter, w2_barycenter):
        assert wasserstein(make([tenths, tenths]), tenths) < 1e-15
        assert wasserstein(make([tenths, Sample.from_values(np.arange(10) / 10)]), tenths) < 1e-15
        assert wasserstein(make([thirds, Sample.from_values([0.2, 0.5, 0.8])]), thirds) < 1e-15


def test_rounding_neither_turns_the_order_nor_leaves_the_range():
    rng = np.random.default_rng(0)
    for _ in range(300):
        steps = np.minimum(rng.random((8, 1)) + rng.integers(0, 3, (8, 30)) * 1.2e-16, 1)  # neighbouring floats
        w2_barycenter([Sample.from_values(row) for row in steps], rng.random(8))  # Sample refuses what descends
    ones = [Sample.from_values([value]) for value in (0.2, 1.0, 1.0)]
    for shares in rng.random((3000, 2)):
        assert w2_barycenter(ones, [1e-90, *shares]).values[0] <= 1


def test_blocks_do_not_show(monkeypatch):
    samples = random_samples(np.random.default_rng(7), 4, size=200)
    whole = [make(samples) for make in (w1_barycenter, w2_barycenter)]
    monkeypatch.setattr(targets, "_BLOCK", 7)
    for make, one in zip((w1_barycenter, w2_barycenter), whole, strict=True):
        assert make(samples).values == pytest.approx(one.values, abs=1e-16)
        assert np.array_equal(make(samples).levels, one.levels)


@pytest.fixture
def three():
    return [Sample.from_values(values) for values in ([0.1, 0.2], [0.4, 0.6], [0.9])]


def same(first, second):
    return np.array_equal(first.values, second.values) and np.array_equal(first.levels, second.levels)


def test_words(three):
    sizes = [2, 2, 1]
    assert same(resolve_target("barycenter", three, sizes), w1_barycenter(three))
    assert same(resolve_target("barycenter_w2", three, sizes), w2_barycenter(three, sizes))
    assert not same(resolve_target("barycenter_w2", three, sizes), w2_barycenter(three))
    assert same(resolve_target("pooled", three, sizes), pooled(three, sizes))


@pytest.mark.parametrize(
    ("labels", "target"),
    [
        (("a", "b", "c"), "b"),
        ((0, 1, 2), 1),
        ((0, 1, 2), np.int64(1)),
        ((("x", 1), ("y", 1), ("y", 2)), ("y", 1)),
        (np.array(["a", "b", "c"]), "b"),
        ((0.5, (0.0, 1.0), None), (0.0, 1.0)),  # a label wins over an array of scores
        (("a", "pooled", "b"), "pooled by name"),
        ((True, None, "x"), None),
    ],
)
def test_labels_and_names(three, labels, target):
    names = ("first", "pooled by name", "third")
    assert resolve_target(target, three, [2, 2, 1], labels=labels, names=names) is three[1]


@pytest.mark.parametrize("kind", [list, tuple, np.asarray])
def test_scores_as_target(three, kind):
    given_scores = kind([0.7, 0.3, 0.3])
    assert same(
        resolve_target(given_scores, three, [2, 2, 1], labels=("a", "b", "c")), Sample.from_values([0.3, 0.3, 0.7])
    )


@pytest.mark.parametrize(
    "target", ["barycentre", 3, None, 0.5, ("y", "no such"), ["y", "z"], "secret-clinic"], ids=repr
)
def test_an_unknown_name_lists_the_words_and_repeats_nothing(three, target):
    with pytest.raises(ValueError, match="'barycenter', 'barycenter_w2', 'pooled'") as caught:
        resolve_target(target, three, [2, 2, 1], labels=("a", "b", "secret-c"))
    assert "one of the 3 groups" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: resolve_target([CANARY, 1.5], s, [2, 2, 1]), "target outside the score range: 1 of its 2"),
        (lambda s: resolve_target([-0.1], s, [2, 2, 1]), "target outside the score range: 1 of its 1"),
        (
            lambda s: resolve_target(Sample.from_values([2.0, CANARY]), s, [2, 2, 1]),
            "target outside the score range: 1 of its 2 values are not within [0, 1]",
        ),
        (lambda s: resolve_target([np.nan], s, [2, 2, 1]), "target has 1 NaN"),
        (lambda s: resolve_target([], s, [2, 2, 1]), "target is empty"),
        (lambda s: resolve_target([[CANARY], [1, 0]], s, [2, 2, 1]), "target must contain numbers"),
        (lambda _: w1_barycenter([]), "samples is empty"),
        (lambda s: w2_barycenter(s, [1, 2]), "weights has 2 values for 3 samples"),
        (lambda s: pooled(s, [1, -2, 1]), "weights has 1 negative values"),
        (lambda s: w1_barycenter(s, [0, 0, 0]), "weights sums to zero"),
    ],
)
def test_errors_say_what_is_wrong_and_show_no_value(three, call, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        call(three)
    assert str(CANARY) not in str(caught.value)
