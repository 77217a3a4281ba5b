"""A formula gives the same numbers for arrays and tensors."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from fairtransport.transport._namespace import namespace, take_along
from fairtransport.transport.dual import DualProblem, DualState, evaluate
from fairtransport.transport.fourier import FourierFeatures, draw_features
from fairtransport.transport.regularizers import ENTROPY, L2
from fairtransport.transport.targets import pointwise_mean, pointwise_median

RNG = np.random.default_rng(0)


def both(function, *arrays, **options):
    """Call a function with arrays and with tensors, and see that it gives the same."""
    plain = function(*arrays, **options)
    other = function(*map(torch.tensor, arrays), **options)
    assert isinstance(other, torch.Tensor)
    np.testing.assert_allclose(other.numpy(), plain, rtol=1e-12, atol=1e-14)
    return plain


def test_namespace_follows_what_is_given():
    assert namespace(np.zeros(1), 2.0) is np
    assert namespace(1.0, torch.zeros(1)) is torch
    assert namespace(torch.nn.Parameter(torch.zeros(1))) is torch


def test_torch_is_not_loaded_for_arrays():
    code = "import sys, fairtransport.transport, fairtransport.criteria.penalty; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_take_along():
    values, index = RNG.random((3, 4)), np.array([[0, 3], [1, 1], [2, 0]])
    assert both(take_along, values, index).tolist() == [[values[i, j] for j in row] for i, row in enumerate(index)]


@pytest.mark.parametrize("regularizer", [L2, ENTROPY], ids=lambda r: r.name)
def test_slopes_are_what_torch_makes_of_the_value(regularizer):
    drawn = draw_features(6, 0.1, np.random.default_rng(2))
    features = FourierFeatures(torch.tensor(drawn.frequency), torch.tensor(drawn.phase))
    problem = DualProblem(features, regularizer, 0.2, opposite=False, pairs="all")
    x, y = (torch.tensor(RNG.random((2, 7)), requires_grad=True) for _ in range(2))
    f, h = (torch.tensor(RNG.normal(0, 0.2, (2, 6)), requires_grad=True) for _ in range(2))
    terms = evaluate(problem, DualState(f, h), x, y)
    by_torch = torch.autograd.grad(terms.value.sum(), (x, f, h))
    for ours, theirs in zip((terms.point_gradient, terms.x_gradient, terms.y_gradient), by_torch, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=1e-9, atol=1e-11)


def test_pointwise_targets():
    quantiles, shares = RNG.random((5, 4)), np.array([0.1, 0.4, 0.2, 0.3])
    both(pointwise_mean, quantiles, shares)
    both(pointwise_median, quantiles, shares)
    halves = both(pointwise_median, quantiles, np.full(4, 0.25))
    np.testing.assert_allclose(halves, np.sort(quantiles, axis=1)[:, 1:3].mean(axis=1))
    third = torch.full((6,), 1 / 6, dtype=torch.float32)  # thirds of a half do not add up exactly
    values = torch.rand(9, 6)
    torch.testing.assert_close(pointwise_median(values, third), values.sort(dim=1).values[:, 2:4].mean(dim=1))
