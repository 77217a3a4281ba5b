import numpy as np
import pytest
import torch

from fairtransport.torch._cells import Rows, arrival_ranks, odd_numbers, shelf_numbers
from fairtransport.torch._sample_memory import Memory
from fairtransport.transport.line import Sample


def made(seed, n=50, n_cells=3):
    """Rows of three cells and of none."""
    rng = np.random.default_rng(seed)
    return np.round(rng.random(n), 2), rng.integers(n_cells + 1, size=n)


@pytest.mark.parametrize("seed", range(3))
def test_ranks_and_pictures_against_plain_loops(seed):
    scores, cells = made(seed)
    # Cell 3 is a cell here, and nothing is in none.
    rows = Rows.of(torch.tensor(scores), torch.tensor(cells), shelf_numbers(4))
    assert rows.counts.tolist() == [*np.bincount(cells, minlength=4), 0]
    pictures, ranks = rows.pictures(odd_numbers(8)).numpy(), rows.ranks().numpy()
    for cell in range(4):
        own = np.sort(scores[cells == cell])
        np.testing.assert_array_equal(pictures[cell], Sample.from_values(own).equal_mass(8))
        assert sorted(ranks[cells == cell]) == list(range(len(own)))
        np.testing.assert_array_equal(own[ranks[cells == cell]], scores[cells == cell])


def test_cells_without_rows():
    rows = Rows.of(torch.tensor([0.5, 0.7]), torch.tensor([2, 2]), shelf_numbers(2))  # both are in none
    assert torch.isfinite(rows.pictures(odd_numbers(4))).all()
    assert rows.counts.tolist() == [0, 0, 2]
    nothing = Rows.of(torch.zeros(0), torch.zeros(0, dtype=torch.int64), shelf_numbers(2))
    assert nothing.pictures(odd_numbers(4)).shape == (2, 4)


def test_arrival_ranks():
    ranks, counts = arrival_ranks(torch.tensor([1, 0, 1, 2, 1]), torch.arange(3))
    assert ranks.tolist() == [0, 0, 1, 0, 2]
    assert counts.tolist() == [1, 3, 1]


@pytest.mark.parametrize("n", [4, 30])
def test_memory_holds_the_newest_rows(n):
    # Its plain twin: a list for each cell, newest last, cut to size. Batches larger and smaller than the memory.
    memory, twin, size = Memory(3, 5), {cell: [] for cell in range(3)}, 5
    for seed in range(12):
        scores, cells = made(seed, n)
        points, homes = memory.join(torch.tensor(scores, dtype=torch.float32), torch.tensor(cells))
        np.testing.assert_array_equal(homes[:n], cells)
        for cell in range(3):
            own = scores[cells == cell].tolist()
            older = twin[cell][len(own) - size :] if len(own) < size else []
            expected = sorted(own + older)
            np.testing.assert_allclose(sorted(points[homes == cell].tolist()), expected, rtol=1e-6)
            twin[cell] = (twin[cell] + own)[-size:]
    share = memory.seen[:-1] / memory.seen[:-1].sum()
    np.testing.assert_allclose(share, 1 / 3, atol=0.15)
    memory.forget()
    assert memory.seen[:-1].sum() == memory.scores.sum() == 0
