import numpy as np
import pytest
import torch

from fairtransport.torch._penalty import SampleMemory
from fairtransport.torch._transport import SortedRows, cell_offsets
from fairtransport.transport.line import Sample


def make_rows(seed, n=50, n_cells=3):
    """Return rows of three cells and of no cell."""
    rng = np.random.default_rng(seed)
    return np.round(rng.random(n), 2), rng.integers(n_cells + 1, size=n)


@pytest.mark.parametrize("seed", range(3))
def test_ranks_and_quantiles_against_plain_loops(seed):
    scores, cells = make_rows(seed)
    # With four cells every row is in a cell.
    rows = SortedRows.from_scores(torch.tensor(scores), torch.tensor(cells), cell_offsets(4))
    assert rows.counts.tolist() == [*np.bincount(cells, minlength=4), 0]
    quantiles, ranks = rows.quantiles(2 * torch.arange(8) + 1).numpy(), rows.ranks().numpy()
    for cell in range(4):
        expected = np.sort(scores[cells == cell])
        np.testing.assert_array_equal(quantiles[cell], Sample.from_values(expected).equal_mass(8))
        assert sorted(ranks[cells == cell]) == list(range(len(expected)))
        np.testing.assert_array_equal(expected[ranks[cells == cell]], scores[cells == cell])


@pytest.mark.parametrize("n", [4, 30])
def test_memory_holds_the_newest_rows(n):
    # Compared with a list for each cell, newest last, for batches larger and smaller than the memory.
    memory, reference, size = SampleMemory(3, 5), {cell: [] for cell in range(3)}, 5
    for seed in range(12):
        scores, cells = make_rows(seed, n)
        points, point_cells = memory.extend(torch.tensor(scores, dtype=torch.float32), torch.tensor(cells))
        np.testing.assert_array_equal(point_cells[:n], cells)
        for cell in range(3):
            new = scores[cells == cell].tolist()
            older = reference[cell][len(new) - size :] if len(new) < size else []
            expected = sorted(new + older)
            np.testing.assert_allclose(sorted(points[point_cells == cell].tolist()), expected, rtol=1e-6)
            reference[cell] = (reference[cell] + new)[-size:]
    share = memory.seen[:-1] / memory.seen[:-1].sum()
    np.testing.assert_allclose(share, 1 / 3, atol=0.15)
    memory.clear()
    assert memory.seen[:-1].sum() == memory.scores.sum() == 0
