"""Snapshot of a stream for the live page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.stream._monitor import MONITOR_BINS
from fairtransport.stream._state import utc_now

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.stream._state import StreamState

__all__ = ["PAGE_BINS", "make_snapshot"]

#: Bins of the histograms on the page.
PAGE_BINS = 50


def make_snapshot(state: StreamState, *, version: int, seconds: float) -> dict[str, Any]:
    """Return the snapshot that `ContinualAdjuster.snapshot` documents."""
    points, target = np.linspace(0.0, 1.0, PAGE_BINS + 1), state.target_cdf()
    names, shares = list(state.current.groups.names), state.monitor.shares(PAGE_BINS)
    duals = state.current.duals(points)
    return {
        "title": state.title,
        "updated": utc_now(),
        "rows": state.rows,
        "rows_without_group": state.rows_without_group,
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
        "spent": {"updates": state.updates, "seconds": round(seconds, 3), "batches_adjusted": state.adjusted_batches},
        "alarm_rate": float(state.options.alarm_rate),
    }


def _shares(cdf: NDArray[np.float64]) -> list[float]:
    """Return the share of a distribution in each of the page's bins; an atom at 0 is in the first bin."""
    at_edges = cdf[:: MONITOR_BINS // PAGE_BINS].copy()
    at_edges[0] = 0.0
    shares: list[float] = np.diff(at_edges).tolist()
    return shares
