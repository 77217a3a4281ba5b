"""What the live page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.stream._monitor import MONITOR_BINS
from fairtransport.stream._state import now

if TYPE_CHECKING:
    from fairtransport.stream._state import StreamState

__all__ = ["PAGE_BINS", "snapshot_of"]

#: Bins of the histograms on the page.
PAGE_BINS = 50


def snapshot_of(state: StreamState, *, version: int, seconds: float) -> dict[str, Any]:
    """Return a dict that JSON can hold; see `ContinualAdjuster.snapshot`."""
    points, target = np.linspace(0.0, 1.0, PAGE_BINS + 1), state.target()
    names, shares = list(state.current.groups.names), state.monitor.shares(PAGE_BINS)
    duals = state.current.duals(points)
    return {
        "title": state.title,
        "updated": now(),
        "rows": state.rows,
        "batches": state.batches,
        "rejected": int(state.extra.get("rejected", 0)),
        "version": version,
        "frozen": state.frozen,
        "groups": names,
        "sizes": [round(float(size), 1) for size in state.monitor.sizes],
        "edges": state.current.grid.from_unit(points).tolist(),
        "histograms": {name: share.tolist() for name, share in zip(names, shares, strict=True)},
        "target": None if target is None else _shares(target),
        "history": state.history.points(),
        "duals": None if duals is None else {"grid": points.tolist(), "names": names, "values": duals.tolist()},
        "spent": {"updates": state.updates, "seconds": round(seconds, 3), "batches_adjusted": state.adjusted},
        "alarm_rate": float(state.options.alarm_rate),
    }


def _shares(target: Any) -> list[float]:
    """Shares of a distribution in the page's bins; what lies at 0 is in the first."""
    at_edges = target[:: MONITOR_BINS // PAGE_BINS].copy()
    at_edges[0] = 0.0
    shares: list[float] = np.diff(at_edges).tolist()
    return shares
