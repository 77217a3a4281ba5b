"""Two processes compute what one computes with the whole batch."""

import os
import socket
from pathlib import Path

import pytest
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from fairtransport.torch import TransportPenalty

SETTINGS = {
    "continuous": {},
    "discrete": {"distance": "discrete"},
    "barycenter": {"target": "barycenter", "target_update_interval": 2},
    "strata": {"n_strata": 2, "memory_size": 16},
}
SIZES = (13, 7)  # rows of each rank in a batch: not equal


def make_batches():
    torch.manual_seed(1)
    n, batches = sum(SIZES), []
    for _ in range(6):
        codes, strata = torch.randint(3, (n,)), torch.randint(2, (n,))
        batches.append((torch.randn(n, 4) + 2 * codes[:, None], codes, strata))
    return batches


def train(network, settings, batches):
    penalty = TransportPenalty(3, **settings)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    values = []
    for X, codes, strata in batches:
        loss = penalty(torch.sigmoid(network(X)), codes, strata if penalty.n_strata > 1 else None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(float(loss.detach()))
    return penalty, values


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def one_rank(rank, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    start = sum(SIZES[:rank])
    local = [tuple(part[start : start + SIZES[rank]] for part in batch) for batch in make_batches()]
    results = {}
    for name, settings in SETTINGS.items():
        wrapped = DistributedDataParallel(network())
        penalty, values = train(wrapped, settings, local)
        results[name] = (wrapped.module.state_dict(), penalty.state_dict(), values)
    torch.save(results, f"{folder}/{rank}.pt")
    distributed.barrier()
    os._exit(0)  # without teardown, which can deadlock in gloo


@pytest.mark.models
def test_two_ranks_equal_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])  # where the two processes find this module
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(one_rank, (port, str(tmp_path)), nprocs=2)
    ranks = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2)]
    for name, settings in SETTINGS.items():
        alone = network()
        penalty, values = train(alone, settings, make_batches())
        assert max(values) > 0.01
        for rank in ranks:
            torch.testing.assert_close(rank[name][0], dict(alone.state_dict()), rtol=1e-4, atol=1e-6)
            torch.testing.assert_close(rank[name][2], values, rtol=1e-4, atol=1e-6)
            assert rank[name][1].keys() == penalty.state_dict().keys()
            for key, expected in penalty.state_dict().items():
                torch.testing.assert_close(rank[name][1][key], expected, rtol=1e-4, atol=1e-6)
