"""The state of the penalty: its memory of rows, when it changes, and how it is saved and restored."""

import io

import numpy as np
import pytest
import torch

from fairtransport import ContinuousDistance
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.torch import TransportPenalty
from fairtransport.torch._penalty import SampleMemory
from fairtransport.torch._transport import SortedRows, cell_offsets
from fairtransport.transport.line import Sample

SETTINGS = [{}, {"distance": "discrete"}, {"target": "barycenter", "target_update_interval": 2}, {"memory_size": 0}]


def batch(seed, n=40, n_groups=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, generator=generator), torch.randint(n_groups, (n,), generator=generator)


def state(penalty):
    return {name: value.clone() for name, value in penalty.state_dict().items()}


@pytest.mark.parametrize("settings", SETTINGS)
def test_training_moves_the_state_and_evaluation_does_not(settings):
    penalty = TransportPenalty(3, **settings)
    before = state(penalty)
    penalty(*batch(0))
    after = state(penalty)
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert ("transport.x" in changed) == (penalty.distance == ContinuousDistance())
    assert ("memory.scores" in changed) == (penalty.memory is not None)
    penalty.eval()
    values = [float(penalty(*batch(1))) for _ in range(2)]
    assert values[0] == values[1]
    torch.testing.assert_close(state(penalty), after, rtol=0, atol=0)


@pytest.mark.parametrize("settings", SETTINGS)
def test_training_resumes_from_the_state_dict(settings):
    first = TransportPenalty(3, **settings)
    for seed in range(3):
        first(*batch(seed))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = TransportPenalty(3, **settings, **({"random_state": 7} if first.distance == ContinuousDistance() else {}))
    second.load_state_dict(torch.load(file, weights_only=True))
    for seed in range(3, 6):
        torch.testing.assert_close(first(*batch(seed)), second(*batch(seed)), rtol=0, atol=0)
    torch.testing.assert_close(state(first), state(second), rtol=0, atol=0)


def test_a_state_dict_of_other_settings_raises():
    old = TransportPenalty(3).state_dict()
    with pytest.raises(
        RuntimeError,
        match=r"not of this TransportPenalty: 0 of its .* have another shape; penalty.memory.scores: \(4, ",
    ):
        torch.nn.ModuleDict({"penalty": TransportPenalty(4)}).load_state_dict(
            {f"penalty.{name}": value for name, value in old.items()}
        )
    del old["memory.seen"]
    with pytest.raises(RuntimeError, match="1 of its 7 entries are missing"):
        TransportPenalty(3).load_state_dict(old)
    with pytest.raises(RuntimeError, match="Missing key"):
        TransportPenalty(3).load_state_dict({})
    TransportPenalty(3).load_state_dict({}, strict=False)


def test_half_precision_networks_do_not_change_the_penalty():
    network = torch.nn.ModuleDict({"layer": torch.nn.Linear(2, 1), "penalty": TransportPenalty(3)}).bfloat16()
    assert network["layer"].weight.dtype == torch.bfloat16
    assert network["penalty"].transport.x.dtype == network["penalty"].memory.scores.dtype == torch.float32
    assert network.double()["penalty"].transport.x.dtype == torch.float64


def test_autocast_hardly_changes_the_penalty():
    torch.manual_seed(0)
    network, X = torch.nn.Linear(5, 1), torch.randn(60, 5)
    codes, results = batch(0, 60)[1], []
    for enabled in (False, True):
        penalty = TransportPenalty(3)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            for _ in range(20):
                value = penalty(torch.sigmoid(network(X)), codes)
        assert value.dtype == torch.float32
        network.zero_grad()
        value.backward()
        results.append((value.detach(), network.weight.grad.clone()))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=0.03, atol=1e-3)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0.1, atol=5e-3)


@pytest.mark.parametrize("settings", SETTINGS)
def test_batches_that_lack_groups(settings):
    penalty = TransportPenalty(3, **settings)
    scores, codes = batch(0)
    for lacking in range(3):
        rows = codes != lacking
        s = scores[rows].requires_grad_()
        value = penalty(s, codes[rows])
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(s.grad).all()
    penalty(scores[:1], codes[:1])
    assert torch.isfinite(penalty(scores[:0], codes[:0]))


def test_absent_groups_do_not_bias_the_gradient():
    # The mean gradient of small batches, some of which lack the small group, is the gradient of all rows.
    rng = np.random.default_rng(0)
    codes = (np.arange(4000) % 20 == 0).astype(int)
    scores = rng.beta(2 + 3 * codes, 4)
    penalty = TransportPenalty(2, memory_size=64)
    order = rng.permutation(4000)
    gradients = []
    for start in range(0, 4000, 10):
        rows = order[start : start + 10]
        s = torch.tensor(scores[rows], requires_grad=True, dtype=torch.float32)
        penalty(s, torch.tensor(codes[rows])).backward()
        if start >= 1000:
            gradients.append([s.grad[codes[rows] == group].sum().item() for group in range(2)])
    whole = torch.tensor(scores, requires_grad=True, dtype=torch.float32)
    penalty.eval()(whole, torch.tensor(codes)).backward()
    expected = [whole.grad[codes == group].sum().item() for group in range(2)]
    assert expected[1] > 0.5
    np.testing.assert_allclose(np.mean(gradients, axis=0), expected, rtol=0.15)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"distance": "discrete"},
        {"distance": ContinuousDistance(regularizer="entropy")},
        {"target": "pooled", "target_update_interval": 1},
    ],
)
def test_training_reduces_the_disparity(settings):
    torch.manual_seed(0)
    codes = (torch.rand(3000) < 0.1).long()
    X = torch.randn(3000, 4) + 1.5 * codes[:, None] * torch.tensor([1.0, 1.0, 0.0, 0.0])
    y = (X.sum(dim=1) + torch.randn(3000) > 1).float()
    network, penalty = torch.nn.Linear(4, 1), TransportPenalty(2, **settings)

    def disparity():
        with torch.no_grad():
            scores = torch.sigmoid(network(X))[:, 0].numpy().astype(float)
        return strong_pairwise_disparity(scores, sensitive_features=codes.numpy())

    for weight in (0.0, 1.0):
        optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=180)
        for _ in range(3):
            for rows in torch.randperm(3000).split(50):
                logits = network(X[rows])[:, 0]
                loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y[rows])
                loss = loss + weight * penalty(torch.sigmoid(logits), codes[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        if weight == 0:
            before = disparity()
    assert before > 0.3
    assert disparity() < 0.3 * before


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
