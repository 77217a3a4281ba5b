"""What the live page shows, as JSON: the snapshot, cleaned, with each group's colour; made at most twice a second."""

from __future__ import annotations

import json
import math
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._text import one_line
from fairtransport.groups import make_groups
from fairtransport.report.style.colors import group_styles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["MOST_POINTS", "Board"]

MOST_POINTS = 2000
"""Batches of the history that a page is sent; the latest."""

_KEPT = 0.5  # seconds for which one look serves all viewers


class Board:
    """Turns snapshots into text for the page.

    Parameters
    ----------
    snapshot : callable
        Returns a dict. When it raises, the page is told that there is nothing, and not why: the error may hold data.
    """

    def __init__(self, snapshot: Callable[[], Mapping[str, Any]]) -> None:
        self._snapshot = snapshot
        self._lock = threading.Lock()
        self._text = self.words()
        self._until = -math.inf
        self._styles: tuple[Any, list[dict[str, Any]]] = (None, [])

    def look(self, *, fresh: bool = False) -> str:
        """Return the snapshot as JSON, in one line.

        Parameters
        ----------
        fresh : bool, default False
            Whether a snapshot of the last half second will not do.

        Returns
        -------
        str
            With ``"failed": true`` where there is none.
        """
        with self._lock:
            if fresh or time.monotonic() >= self._until:
                try:
                    self._text = _json(self._shown(self._snapshot()))
                except Exception:  # noqa: BLE001  # whatever it is, the stream goes on and the page says so
                    self._text = _json({"failed": True})
                self._until = time.monotonic() + _KEPT
            return self._text

    def words(self, told: str = "") -> str:
        """Return a text for the reader as JSON."""
        return _json({"told": told})

    def _shown(self, snapshot: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the page needs: names in one line, times as seconds, lists by place."""
        names = [one_line(name) for name in snapshot.get("groups", ())]
        histograms = snapshot.get("histograms") or {}
        rows = int(snapshot.get("rows", 0))
        history = _columns(snapshot.get("history", ()))
        shown: dict[str, Any] = _plain(
            {
                **{
                    key: snapshot.get(key) for key in ("rows", "batches", "rejected", "version", "frozen", "alarm_rate")
                },
                "title": one_line(snapshot.get("title") or "Stream"),
                # Of the latest batch: a snapshot's own time says nothing about rows that do not come.
                "updated": history["time"][-1] if history["time"] else _seconds(snapshot.get("updated")),
                "groups": names,
                "sizes": snapshot.get("sizes", [0] * len(names)),
                "styles": self._styles_of(names, snapshot.get("sizes", ()), rows),
                "edges": snapshot.get("edges", ()),
                "histograms": [histograms.get(name) for name in snapshot.get("groups", ())],
                "target": snapshot.get("target"),
                "duals": _duals(snapshot.get("duals")),
                "spent": dict(snapshot.get("spent") or {}),
            }
        )
        return {**shown, "history": history}

    def _styles_of(self, names: list[str], sizes: Sequence[float], rows: int) -> list[dict[str, Any]]:
        """Give groups their colours. Which are the largest is looked at again when the rows have doubled."""
        key = (tuple(names), rows.bit_length())
        if self._styles[0] != key and names:
            counts = np.asarray(sizes, dtype=np.float64) if len(sizes) == len(names) else np.ones(len(names))
            styles = group_styles(make_groups(list(range(len(names)))), counts)
            shown = [{"colour": one.colour, "dashes": one.dash_array, "named": one.named} for one in styles]
            self._styles = (key, shown)
        return self._styles[1] if names else []


_FIGURES = ("batch", "rows", "disparity", "noise_floor", "updates", "moved", "agreement")  # of a point of the history


def _columns(history: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn the history around: one list for each entry."""
    latest = list(history)[-MOST_POINTS:]
    found: dict[str, list[Any]] = {key: _rounded([point.get(key) for point in latest]) for key in _FIGURES}
    found["time"] = [_seconds(point.get("time")) for point in latest]
    found["alarm"] = [int(bool(point.get("alarm"))) for point in latest]
    return found


def _rounded(values: list[Any]) -> list[Any]:
    """Return numbers with six decimals, all at once because there are thousands; None where there is no number."""
    column = np.array(values, dtype=np.float64).round(6)
    return [value if math.isfinite(value) else None for value in column.tolist()]


def _duals(duals: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not duals:
        return None
    return {"grid": duals["grid"], "names": [one_line(name) for name in duals["names"]], "values": duals["values"]}


def _seconds(value: Any) -> float | None:
    """Return a time, an ISO text or seconds since 1970, as seconds since 1970; a time without a zone is UTC."""
    if isinstance(value, str):
        value = _read_time(value)
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return round(float(value), 3) if isinstance(value, int | float) and math.isfinite(value) else None


@lru_cache(maxsize=2 * MOST_POINTS)
def _read_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    """Return lists, dicts, texts and finite numbers of six digits; what is not finite becomes None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return _six_digits(value)
    return value


def _six_digits(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return value if abs(value) >= 1e6 else float(f"{value:.6g}")


def _json(value: Any) -> str:
    """Return JSON of one line in ASCII, which no reader can take for several."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
