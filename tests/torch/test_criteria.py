"""Equalized odds, equal opportunity and conditional parity of networks, against the penalties on rows."""

import numpy as np
import pytest
import torch

from fairtransport.criteria import DemographicParity
from fairtransport.criteria.criterion import as_criterion, resolve_criterion, weigh_by_reliability
from fairtransport.criteria.penalty import DiscretePenalty, information_of_features
from fairtransport.groups import make_groups
from fairtransport.strata import make_strata
from fairtransport.torch import TransportPenalty

from .test_penalty import double

CASES = [
    ("equalized_odds", 1, None),
    ("equalized_odds", 1, "share"),
    ("equal_opportunity", 1, None),
    ("demographic_parity", 3, None),
    ("demographic_parity", 3, "equal"),
    ("equalized_odds", 3, None),
    ("equalized_odds", 3, "equal"),
    ("equal_opportunity", 3, None),
]


def make_batch(n=600, seed=0):
    """Return scores that depend on group and label; the last stratum has a single group."""
    rng = np.random.default_rng(seed)
    codes, labels = rng.integers(3, size=n), (rng.random(n) < 0.3).astype(int)
    strata = np.where((codes == 0) & (rng.random(n) < 0.3), 2, rng.integers(2, size=n))
    return rng.beta(2 + codes + 2 * labels, 4), codes, labels, strata


def given(criterion, n_strata, labels, strata):
    options = {} if criterion == "demographic_parity" else {"labels": torch.tensor(labels)}
    return options | ({"strata": torch.tensor(strata)} if n_strata > 1 else {})


def weighted(criterion, stratum_weight):
    """Return a criterion with a weight of its labels and strata."""
    return type(as_criterion(criterion))(stratum_weight)


def resolved(criterion, n_strata, stratum_weight, batch):
    _, codes, labels, strata = batch
    layers = make_strata(strata) if n_strata > 1 else None
    rule = weighted(criterion, stratum_weight)
    return resolve_criterion(rule, make_groups(codes), labels=labels, strata=layers).comparisons()


def value_and_gradient(penalty, batch, options):
    scores = torch.tensor(batch[0], requires_grad=True)
    value = penalty(scores, torch.tensor(batch[1]), **options)
    value.backward()
    return float(value.detach()), scores.grad.numpy()


@pytest.mark.parametrize(("criterion", "n_strata", "stratum_weight"), CASES)
@pytest.mark.parametrize("memory_size", [0, 16])
def test_discrete_equals_the_penalty_on_rows(criterion, n_strata, stratum_weight, memory_size):
    """Cells of 256 quantiles approximate those of rows; the memory does not change the first batch."""
    batch = make_batch(20_000)
    penalty = double(
        3, criterion=weighted(criterion, stratum_weight), n_strata=n_strata, distance="discrete",
        memory_size=memory_size,
    )  # fmt: skip
    options = given(criterion, n_strata, batch[2], batch[3])
    value, gradient = value_and_gradient(penalty, batch, options)
    exact = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score")
    expected = exact.value_and_gradient(batch[0], resolved(criterion, n_strata, stratum_weight, batch))
    assert value == pytest.approx(expected.value, rel=0.01)
    assert np.abs(gradient - expected.gradient).sum() < 0.05 * np.abs(expected.gradient).sum()
    assert (gradient != 0).any()
    if criterion == "equal_opportunity":
        np.testing.assert_array_equal(gradient[batch[2] == 0], 0.0)
    evaluated, at_rest = value_and_gradient(penalty.eval(), batch, options)
    assert evaluated == pytest.approx(value)
    np.testing.assert_allclose(at_rest, gradient, atol=1e-12)


@pytest.mark.parametrize("criterion", ["equalized_odds", "equal_opportunity"])
def test_gradient_agrees_with_finite_differences(criterion):
    """Cells of 64 rows are their own quantiles, so that the gradient includes the motion of the other side."""
    rng = np.random.default_rng(0)
    scores, codes, labels = rng.random(256), np.repeat([0, 1, 0, 1], 64), torch.tensor(np.repeat([0, 1], 128))
    penalty = double(2, criterion=criterion, memory_size=0)
    for _ in range(5):
        penalty(torch.tensor(scores), torch.tensor(codes), labels=labels)
    penalty.transport.n_evaluation_steps = 0  # the partial derivative is that of the potentials as they are
    _, gradient = value_and_gradient(penalty.eval(), (scores, codes), {"labels": labels})
    for row in range(0, 256, 17):
        up, down = (
            float(penalty(torch.tensor(scores + step * (np.arange(256) == row)), torch.tensor(codes), labels=labels))
            for step in (1e-6, -1e-6)
        )
        assert gradient[row] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_labels_are_strata_of_equal_weight():
    batch = make_batch()
    scores, codes, labels, _ = (torch.tensor(column) for column in batch)
    odds = double(3, criterion="equalized_odds", distance="discrete").eval()
    as_strata = double(3, criterion=DemographicParity("equal"), n_strata=2, distance="discrete").eval()
    assert float(odds(scores, codes, labels=labels)) == pytest.approx(float(as_strata(scores, codes, labels)))
    for other in (labels.double(), labels.bool(), labels[:, None].float()):  # as losses take them
        assert float(odds(scores, codes, labels=other)) == float(odds(scores, codes, labels=labels))


@pytest.mark.models
@pytest.mark.parametrize("criterion", ["equalized_odds", "equal_opportunity"])
def test_batches_have_the_gradient_of_all_rows_on_average(criterion):
    """With a memory, batches that lack cells and differ in their number of positive rows."""
    scores, codes, labels, _ = make_batch(4000)
    options = {"criterion": criterion, "distance": "discrete"}
    whole = value_and_gradient(double(3, **options).eval(), (scores, codes), {"labels": torch.tensor(labels)})[1]
    penalty, total = double(3, memory_size=256, **options), np.zeros(4000)
    order = np.random.default_rng(1).permutation(4000)
    for epoch in range(2):
        for rows in np.array_split(order, 200):
            part = value_and_gradient(penalty, (scores[rows], codes[rows]), {"labels": torch.tensor(labels[rows])})[1]
            if epoch:
                total[rows] += part / 200
    cells = 3 * labels + codes
    for cell in np.unique(cells[whole != 0]):
        assert total[cells == cell].sum() == pytest.approx(whole[cells == cell].sum(), rel=0.15, abs=0.05)


def test_parity_unit_is_of_the_criterion():
    """The information of the initial model, times the reliable part of the disparity, over its square."""
    batch = make_batch(3000)
    scores, codes, labels, strata = batch
    for criterion, n_strata, stratum_weight in CASES:
        penalty = TransportPenalty(3, criterion=weighted(criterion, stratum_weight), n_strata=n_strata)
        unit = penalty.parity_unit(scores, labels, codes, strata if n_strata > 1 else None)
        pairs = resolved(criterion, n_strata, stratum_weight, batch)
        distances = DiscretePenalty(huber_width=0.0, scale="score").value_and_gradient(scores, pairs).distances
        reliable = weigh_by_reliability(pairs, scores).weights @ distances
        expected = information_of_features(labels, scores) * reliable / (pairs.weights @ distances) ** 2
        assert unit == pytest.approx(expected, rel=1e-6), criterion


def test_targets_are_fixed_within_labels():
    scores, codes, labels, _ = make_batch(2000)
    penalty = double(3, criterion="equalized_odds", target="barycenter", distance="discrete", memory_size=0)
    penalty.set_target(scores, codes, labels=labels)
    assert penalty.target.points.shape[0] == 2
    assert float(penalty.target.points[0].mean()) < float(penalty.target.points[1].mean())
    value, gradient = value_and_gradient(penalty, (scores, codes), {"labels": torch.tensor(labels)})
    assert value > 0
    assert (gradient != 0).any()


def test_invalid_labels():
    scores, codes = torch.tensor([0.1, 0.5, 0.9, 0.3]), torch.tensor([0, 1, 0, 1])
    penalty = TransportPenalty(2, criterion="equalized_odds")
    for labels, message in (
        (None, "'equalized_odds' compares people with the same label, so every batch needs"),
        (codes[:3], "labels has 3 rows"),
        (codes + 1, r"2 rows have .* labels are 0 or 1"),
        (torch.tensor([0.0, 1.0, float("nan"), 1.0]), r"1 rows have .* labels out of range"),
        ([0, 1, 0, 1], "labels must be a tensor of numbers"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            penalty(scores, codes, labels=labels)
    with pytest.raises(ValueError, match="does not use labels"):
        TransportPenalty(2)(scores, codes, labels=codes)
    with pytest.raises(ValueError, match="criterion must be one of"):
        TransportPenalty(2, criterion="odds")
    fixed = TransportPenalty(2, criterion="equal_opportunity", target="pooled")
    with pytest.raises(ValueError, match="needs labels"):
        fixed.set_target(scores, codes)
    with pytest.raises(ValueError, match="labels must be whole numbers from 0 to 1"):
        fixed.set_target(scores, codes, labels=codes + 0.25)
    penalty(scores, codes, labels=torch.tensor([0, 0, 1, 1]))
