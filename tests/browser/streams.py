"""Snapshots like those of `ContinualAdjuster.snapshot`, after any number of batches."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import numpy as np

NAMES = ("Black, Female", "Black, Male", "White, Female", "White, Male")
BINS = 32


def history(batches, *, jump=None, gap=1.0, end=None):
    """Disparity near its floor, with a jump and what follows it."""
    rng = np.random.default_rng(0)
    end = time.time() if end is None else end
    noise = rng.normal(size=batches)
    points = []
    for k in range(batches):
        since = np.inf if jump is None or k < jump else k - jump
        points.append(
            {
                "batch": k + 1,
                "rows": 100 * (k + 1),
                "time": datetime.fromtimestamp(end - gap * (batches - 1 - k), UTC).isoformat(),
                "disparity": 0.02 + 0.004 * noise[k] + 0.13 * np.exp(-since / 25),
                "noise_floor": 0.035 + 0.02 / (1 + k / 20),
                "alarm": since in (0, 4),
                "updates": 200 if since < 60 else (10 if k % 17 == 0 else 0),
                "moved": 0.05 + 0.4 * (0 if np.isinf(since) else 1 - np.exp(-since / 25)),
                "agreement": 0.985 - 0.03 * (0 if np.isinf(since) else 1 - np.exp(-since / 25)),
            }
        )
    return points


def shares(apart):
    edges = np.linspace(0, 1, BINS + 1)
    at = (edges[1:] + edges[:-1]) / 2
    density = at**1.2 * (1 - at) ** (3.5 - apart)
    return density / density.sum()


def snapshot(batches=400, *, names=NAMES, jump=250, duals=True, target=True, **changes):
    spread = np.linspace(-1, 1, len(names))
    grid = np.linspace(0, 1, 51)
    points = history(batches, jump=jump, **{key: changes.pop(key) for key in ("gap", "end") if key in changes})
    return {
        "title": "Adult income, race and sex",
        "updated": points[-1]["time"] if points else datetime.now(UTC).isoformat(),
        "rows": 100 * batches,
        "batches": batches,
        "rejected": 3,
        "rows_without_group": 0,
        "version": 1 + batches // 50,
        "frozen": False,
        "groups": list(names),
        "sizes": np.linspace(300, 2000, len(names)),
        "edges": np.linspace(0, 1, BINS + 1),
        "histograms": {name: shares(one) for name, one in zip(names, spread, strict=True)},
        "target": shares(0.0) if target else None,
        "history": points,
        "duals": {
            "grid": grid,
            "names": list(names),
            "values": [0.1 * one * np.sin(3 * grid) for one in spread],
        }
        if duals
        else None,
        "spent": {"updates": 12345, "seconds": 4.2, "batches_adjusted": 81},
        "alarm_rate": 1e-4,
        **changes,
    }
