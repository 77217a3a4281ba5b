from itertools import pairwise

import numpy as np
import pytest
import torch

from fairtransport.torch import TransportPenalty
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target

CODES = np.repeat([0, 1, 2], [64, 128, 64])
SCORES = np.random.default_rng(0).beta(1 + CODES, 2)


def batch(rows=slice(None)):
    return torch.tensor(SCORES[rows]), torch.tensor(CODES[rows])


def exact(target):
    samples = [Sample.from_values(SCORES[group == CODES]) for group in range(3)]
    return resolve_target(target, samples, [64, 128, 64], labels=["a", "b", "c"]).equal_mass(64)


@pytest.mark.parametrize("target", ["barycenter", "barycenter_w2", "pooled", "b"])
def test_moving_and_fixed_targets_equal_the_exact_ones(target):
    fixed = TransportPenalty(["a", "b", "c"], target=target)
    fixed.set_target(*batch())
    np.testing.assert_allclose(fixed.target.points[0], exact(target), atol=1e-6)
    moving = TransportPenalty(["a", "b", "c"], target=target, target_update_interval=1)
    moving(*batch())
    near = 0.05 if target == "pooled" else 0.02  # computed from 64 quantiles of each group
    np.testing.assert_allclose(moving.target.points[0], exact(target), atol=near)


def test_target_is_updated_in_every_third_batch():
    penalty = TransportPenalty(3, target="barycenter", target_update_interval=3, memory_size=0)
    seen = []
    for shift in range(6):
        scores, codes = batch()
        penalty(scores * (1 - 0.1 * shift), codes)
        seen.append(penalty.target.points.clone())
    changed = [bool((a != b).any()) for a, b in pairwise(seen)]
    assert changed == [False, False, True, False, False]


def test_a_fixed_target_must_be_set():
    penalty = TransportPenalty(3, target="barycenter")
    with pytest.raises(RuntimeError, match="set_target"):
        penalty(*batch())
    with pytest.raises(ValueError, match="1 of 3 groups have no rows"):
        penalty.set_target(*batch(slice(0, 192)))
    penalty.set_target(*batch())
    penalty(*batch())
    again = TransportPenalty(3, target="barycenter")
    again.load_state_dict(penalty.state_dict())  # the loaded target is known
    torch.testing.assert_close(again.eval()(*batch()), penalty.eval()(*batch()))


def test_target_arrays_and_strata():
    scores = np.linspace(0, 1, 9)
    penalty = TransportPenalty(2, target=[scores, torch.tensor(scores) / 2], n_strata=2)
    np.testing.assert_allclose(penalty.target.points, [scores, scores / 2])
    assert TransportPenalty(2, target=np.linspace(0, 1, 5000)).target.points.shape == (1, 512)
    with pytest.raises(ValueError, match="fixed already"):
        TransportPenalty(3, target=scores).set_target(*batch())
    with pytest.raises(ValueError, match="no target"):
        TransportPenalty(2).set_target(*batch())


@pytest.mark.parametrize(
    ("target", "message"),
    [("mean", "'each_other', 'barycenter'"), (None, "NoneType given"), ([0.5, 1.5], "outside"), ([[0.5]], "1 strata")],
)
def test_invalid_targets(target, message):
    with pytest.raises(ValueError, match=message):
        TransportPenalty(2, target=target, n_strata=2 if message == "1 strata" else 1)
