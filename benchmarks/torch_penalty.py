"""The torch penalty: time of forward and backward, and how often the host waits for the device.

Without a CUDA device it times the CPU; the required times are for an H200.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch

from benchmarks import _report
from fairtransport.torch import TransportPenalty

CLAIM = "Forward and backward take at most 3 ms on an H200 (compiled), and the host waits for it at most once."
BATCH, GROUPS = 8192, 8
MOST_SECONDS, MOST_WAITS = 3e-3, 1


def rows(batch, device, seed=0):
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(GROUPS, (batch,), generator=generator)
    scores = torch.rand(batch, generator=generator) ** (1.0 + codes / GROUPS)
    return scores.to(device).requires_grad_(), codes.to(device)


def make_penalty(kind, device):
    return TransportPenalty(GROUPS, distance=kind).to(device)


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
    report.name = "torch_penalty-cuda" if on_cuda else report.name  # results of CPU and CUDA are kept side by side
    report.settings.update(device=name, torch=torch.__version__, batch=BATCH, groups=GROUPS, target="each_other")
    rounds = 2 if report.quick else 200 if on_cuda else 20
    for kind in ("continuous", "discrete"):
        scores, codes = rows(BATCH, device)
        losses = {"eager": make_penalty(kind, device)}
        if on_cuda:
            losses["compiled"] = torch.compile(make_penalty(kind, device))
            losses["reduce-overhead"] = torch.compile(make_penalty(kind, device), mode="reduce-overhead")
        for how, loss in losses.items():
            call = both_ways(loss, scores, codes)
            seconds = float(np.median(times_of(call, rounds)))
            text = f"{name}: {kind}, {how}: {_report.seconds(seconds)} forward and backward"
            if on_cuda:
                waits = count_waits(call)
                text += f", the host waits {waits} times"
                if "H200" in name and how == "compiled":  # the host limits eager mode
                    text += f": {_report.met(seconds <= MOST_SECONDS and waits <= MOST_WAITS)}"
            report.note(text)
