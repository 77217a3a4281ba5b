import numpy as np
import pytest
import torch

from fairtransport.transport.dual import area_below, coupled_distance, coupled_gradient, level_index, running_area
from fairtransport.transport.line import coupling


def both(function, *arrays):
    """Call a function with arrays and with tensors, and see that it gives the same."""
    plain = function(*arrays)
    tensors = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]
    np.testing.assert_allclose(function(*tensors).numpy(), plain, rtol=1e-12, atol=1e-14)
    return plain


@pytest.mark.parametrize("digits", [1, 6])
def test_coupled_points_against_the_coupling(digits):
    # What the closed forms say of each point, summed over the optimal coupling itself; with ties and without.
    rng = np.random.default_rng(digits)
    x, y = np.round(rng.random(11), digits), np.sort(np.round(rng.random(7), digits))
    plan = coupling(x, y)
    gap = x[plan.rows] - y[plan.columns]
    rank = np.empty(11)
    rank[np.argsort(x, kind="stable")] = np.arange(11)
    low, high = rank / 11, (rank + 1) / 11
    below, upto = (np.searchsorted(y, x, side=side) / 7 for side in ("left", "right"))
    slope = both(coupled_gradient, low, high, below, upto)
    np.testing.assert_allclose(slope, np.bincount(plan.rows, plan.mass * np.sign(gap), 11), atol=1e-15)
    running = both(running_area, y)
    levels = np.stack([low, high, np.clip(upto, low, high)])
    at = both(level_index, levels, 7)
    areas = both(lambda u, k, v, r: area_below(u, k, 7, values=v, running=r), levels, at, y[at], running[at])
    distance = both(coupled_distance, x, low, high, upto, areas)
    np.testing.assert_allclose(distance, np.bincount(plan.rows, plan.mass * np.abs(gap), 11), atol=1e-15)
