"""Data of the live page: snapshots as JSON, with a color for each group."""

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

__all__ = ["MAX_POINTS", "PageData", "to_json"]

#: Points of the history that are sent to the page, the latest ones.
MAX_POINTS = 2000

_CACHE_SECONDS = 0.5  # for which all viewers get the same snapshot


class PageData:
    """Snapshots of a stream as JSON for the page.

    Parameters
    ----------
    snapshot : callable
        Returns a dict, as `ContinualAdjuster.snapshot` does. If it raises, the page shows that there are no figures,
        but not the error, which may contain data.
    """

    def __init__(self, snapshot: Callable[[], Mapping[str, Any]]) -> None:
        self._snapshot = snapshot
        self._lock = threading.Lock()
        self._text = ""
        self._until = -math.inf
        self._styles: tuple[Any, list[dict[str, Any]]] = (None, [])

    def current(self, *, fresh: bool = False) -> str:
        """Return the current snapshot as JSON in one line.

        Parameters
        ----------
        fresh : bool, default=False
            Take a new snapshot even if the last one is less than half a second old.

        Returns
        -------
        str
            ``{"failed": true}`` if there is no snapshot.
        """
        with self._lock:
            if fresh or time.monotonic() >= self._until:
                try:
                    self._text = to_json(self._shown(self._snapshot()))
                except Exception:  # noqa: BLE001 - the stream must not fail because of the page
                    self._text = to_json({"failed": True})
                self._until = time.monotonic() + _CACHE_SECONDS
            return self._text

    def _shown(self, snapshot: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of the page: names without line breaks, times in seconds, lists in the order of groups."""
        names = [one_line(name) for name in snapshot.get("groups", ())]
        histograms = snapshot.get("histograms") or {}
        rows = int(snapshot.get("rows", 0))
        history = _columns(snapshot.get("history", ()))
        shown: dict[str, Any] = _plain(
            {
                **{key: snapshot.get(key) for key in _SHOWN},
                "title": one_line(snapshot.get("title") or "Stream"),
                # The time of the latest batch: the time of the snapshot does not show that rows stopped arriving.
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
        """Return the style of each group; the largest groups are determined again when the rows have doubled."""
        key = (tuple(names), rows.bit_length())
        if self._styles[0] != key and names:
            counts = np.asarray(sizes, dtype=np.float64) if len(sizes) == len(names) else np.ones(len(names))
            styles = group_styles(make_groups(list(range(len(names)))), counts)
            shown = [{"colour": one.colour, "dashes": one.dash_array, "named": one.named} for one in styles]
            self._styles = (key, shown)
        return self._styles[1] if names else []


_SHOWN = ("rows", "rows_without_group", "batches", "rejected", "version", "frozen", "alarm_rate")  # as they are
_NUMBERS = ("batch", "rows", "disparity", "noise_floor", "updates", "moved", "agreement")  # of a point of the history


def _columns(history: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the latest points of the history by column."""
    latest = list(history)[-MAX_POINTS:]
    columns: dict[str, list[Any]] = {key: _rounded([point.get(key) for point in latest]) for key in _NUMBERS}
    columns["time"] = [_seconds(point.get("time")) for point in latest]
    columns["alarm"] = [int(bool(point.get("alarm"))) for point in latest]
    return columns


def _rounded(values: list[Any]) -> list[Any]:
    """Return the numbers rounded to six decimals, and None for those that are missing or not finite."""
    column = np.array(values, dtype=np.float64).round(6)
    return [value if math.isfinite(value) else None for value in column.tolist()]


def _duals(duals: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not duals:
        return None
    return {"grid": duals["grid"], "names": [one_line(name) for name in duals["names"]], "values": duals["values"]}


def _seconds(value: Any) -> float | None:
    """Return a time, given in ISO format or in seconds since 1970, in seconds since 1970; the default zone is UTC."""
    if isinstance(value, str):
        value = _read_time(value)
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return round(float(value), 3) if isinstance(value, int | float) and math.isfinite(value) else None


@lru_cache(maxsize=2 * MAX_POINTS)
def _read_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    """Return the value as JSON can represent it, with numbers of six digits; None replaces what is not finite."""
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


def to_json(value: Any) -> str:
    """Return JSON in one line of ASCII, as server-sent events require."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
