"""The torch penalty: time of forward and backward, and how often the host waits for the device.

Without a CUDA device it times the CPU; the required times are for an H200.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch

from benchmarks import _timing
from fairtransport.torch import TransportPenalty

CLAIM = "Forward and backward take at most 3 ms on an H200 (compiled), and the host waits for it at most once."
BATCH, GROUPS = 8192, 8
MOST_SECONDS, MOST_WAITS = 3e-3, 1


def rows(batch, device, seed=0):
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(GROUPS, (batch,), generator=generator)
    scores = torch.rand(batch, generator=generator) ** (1.0 + codes / GROUPS)
    return scores.to(device).requires_grad_(), codes.to(device)


# ------------------------------------------------------------------------------ a plain version, group by group


def by_group(penalty, scores, codes):
    """Return each group's scores, and its quantiles without a gradient."""
    groups = [scores[codes == group] for group in range(GROUPS)]
    ranks = [(penalty.odd * len(s) - 1) // (2 * len(penalty.odd)) for s in groups]
    return groups, [s.detach().sort().values[rank] for s, rank in zip(groups, ranks, strict=True)]


def plain_continuous(penalty, scores, codes):
    """Return twice the value at the current dual potentials, for automatic differentiation."""
    duals, total = penalty.transport, 0.0
    groups, quantiles = by_group(penalty, scores, codes)

    def psi(points):
        return (2 / len(duals.phase)) ** 0.5 * torch.cos(points[:, None] * duals.frequency + duals.phase)

    for number, (a, b) in enumerate(combinations(range(GROUPS), 2)):
        for first, second, x, y in ((a, b, duals.x, duals.y), (b, a, duals.y, duals.x)):
            s, t = groups[first], quantiles[second]
            f, h = psi(s) @ x[number], psi(t) @ y[number]
            v = (f[:, None] + h - (s[:, None] - t).abs()) / duals.strength
            total = total + f.mean() + h.mean() - duals.strength * (0.25 * v.clamp(min=0) ** 2).mean()
    return total


def plain_discrete(penalty, scores, codes):
    """Return twice the value: each score is compared with the other group's quantile at its level."""
    groups, quantiles = by_group(penalty, scores, codes)
    total = 0.0
    for a in range(GROUPS):
        ascending = groups[a].sort().values
        levels = (torch.arange(len(ascending), device=scores.device) + 0.5) / len(ascending)
        for b in range(GROUPS):
            if a != b:
                total = total + (ascending - quantiles[b][(levels * len(penalty.odd)).long()]).abs().mean()
    return total


PLAIN = {"continuous": plain_continuous, "discrete": plain_discrete}


# ------------------------------------------------------------------------------------------------------- checks


def check_plain(kind, device):
    """Check the gradient against automatic differentiation of the plain version."""
    penalty = TransportPenalty(GROUPS, kind=kind).to(device)
    s, c = rows(BATCH, device)
    for _ in range(20):
        penalty(s.detach(), c)
    penalty.eval()
    (ours,) = torch.autograd.grad(penalty(s, c), s)
    (theirs,) = torch.autograd.grad(PLAIN[kind](penalty, s, c), s)
    off = float((ours - theirs).abs().sum() / theirs.abs().sum())
    assert off < (1e-3 if kind == "continuous" else 0.02), off  # a level may straddle two quantiles


def check_devices(device):
    """Check that CPU and device agree on potentials, memory and gradients, also when moved during training."""
    here, there = TransportPenalty(GROUPS), TransportPenalty(GROUPS)
    for seed in range(4):
        there = there.to(device) if seed == 2 else there  # after use
        (s, c), (t, d) = rows(256, "cpu", seed), rows(256, device if seed >= 2 else "cpu", seed)
        here(s, c).backward()
        there(t, d).backward()
        torch.testing.assert_close(t.grad.cpu(), s.grad, rtol=1e-3, atol=1e-5)
    for name, value in here.state_dict().items():
        torch.testing.assert_close(there.state_dict()[name].cpu(), value, rtol=1e-3, atol=1e-5)


def check_invalid_rows(device):
    """Check that a code out of range raises within a few calls, without a synchronisation."""
    penalty = TransportPenalty(GROUPS).to(device)
    s, c = rows(64, device)
    penalty(s, c + 1)
    try:
        for _ in range(50):
            penalty(s, c)
            torch.cuda.synchronize()
    except ValueError as error:
        return "out of range" in str(error)
    return False


# ------------------------------------------------------------------------------------------------------- timing


def both_ways(loss, scores, codes):
    def call():
        scores.grad = None
        loss(scores, codes).backward()

    return call


def times_of(call, rounds):
    """Return the seconds of each call, including the work of the device."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    seconds = []
    for number in range(rounds + 10):
        wait()
        began = time.perf_counter()
        call()
        wait()
        seconds += [time.perf_counter() - began] if number >= 10 else []
    return seconds


def count_waits(call):
    """Return how often the host waits for the device in one call."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(one.message) for one in caught)


def run(report):
    on_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if on_cuda else "cpu")
    name = torch.cuda.get_device_name() if on_cuda else "CPU, one thread"
    report.settings.update(device=name, torch=torch.__version__, batch=BATCH, groups=GROUPS, target="each_other")
    report.name = "torch_penalty-cuda" if on_cuda else report.name  # results of CPU and CUDA are kept side by side
    rounds = 5 if report.quick else 200 if on_cuda else 20
    for kind, plain in PLAIN.items():
        check_plain(kind, device)
        s, c = rows(BATCH, device)
        penalty = TransportPenalty(GROUPS, kind=kind).to(device)
        calls = {"eager": both_ways(penalty, s, c)}
        if on_cuda:
            calls["compiled"] = both_ways(torch.compile(TransportPenalty(GROUPS, kind=kind).to(device)), s, c)
        theirs = times_of(both_ways(lambda s, c, p=penalty, f=plain: f(p, s, c), s, c), rounds)
        for how, call in calls.items():
            ours, bar, met = times_of(call, rounds), "", None
            if on_cuda:
                waits = count_waits(call)
                bar = f"at most {1e3 * MOST_SECONDS:g} ms and {MOST_WAITS} wait, compiled, H200; waits {waits} times"
                judged = "H200" in name and how == "compiled"  # the host limits eager mode
                met = bool(np.median(ours) <= MOST_SECONDS and waits <= MOST_WAITS) if judged else None
            row = _timing.compare(f"{kind}, {how}", ours, "group by group, no duals moved", theirs)
            report.add(replace(row, bar=bar, met=met))
    if on_cuda:
        check_devices(device)
        assert check_invalid_rows(device)
        report.note(
            "CPU and device agree, also when moved during training; invalid rows raise without a synchronisation."
        )


if __name__ == "__main__":
    _timing.main("torch_penalty", CLAIM, run)
