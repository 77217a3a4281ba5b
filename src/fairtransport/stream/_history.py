"""The course of a stream in at most 2,000 points, however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_POINTS", "History"]

MOST_POINTS = 2000
_NAMES = ("batch", "rows", "disparity", "noise_floor", "alarm", "updates", "moved", "agreement")


class History:
    """Points of a course. When there are too many, neighbours become one; alarms are never lost.

    Examples
    --------
    >>> history = History()
    >>> for batch in range(5000):
    ...     history.add(batch=batch, rows=batch, disparity=0.1, noise_floor=0.0, alarm=batch == 70, updates=1,
    ...                 moved=0.0, agreement=1.0)
    >>> len(history) <= 2000, sum(point["alarm"] for point in history.points()), history.points()[-1]["batch"]
    (True, 1, 4999)
    """

    def __init__(self, held: NDArray[np.float64] | None = None, stride: int = 1, waiting: int = 0) -> None:
        self._rows = [] if held is None else [list(row) for row in held.tolist()]
        self.stride = stride  # batches that a point stands for
        self.waiting = waiting  # batches in the last point, when it is not full
        self.times: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, *, time: str | None = None, **values: float) -> None:
        """Add a batch."""
        row = [float(values[name]) for name in _NAMES]
        if self.waiting:
            row = _merged(self._rows.pop(), row)
        self._rows.append(row)
        self.waiting = (self.waiting + 1) % self.stride
        if time is not None:
            self.times[int(row[0])] = time
        if len(self._rows) > MOST_POINTS and not self.waiting:
            pairs = zip(self._rows[0::2], self._rows[1::2], strict=False)
            last = self._rows[-1:] if len(self._rows) % 2 else []
            self._rows = [*(_merged(*pair) for pair in pairs), *last]
            self.waiting = self.stride if last else 0
            self.stride *= 2
        if len(self.times) > 2 * MOST_POINTS:
            self.times = self.known_times()

    def known_times(self) -> dict[int, str]:
        """Return the times of the points, by batch."""
        return {int(row[0]): self.times[int(row[0])] for row in self._rows if int(row[0]) in self.times}

    def array(self) -> NDArray[np.float64]:
        """Return all points as an array."""
        return np.array(self._rows).reshape(-1, len(_NAMES))

    def points(self) -> list[dict[str, Any]]:
        """Return all points as dicts; ``time`` is None where it is not known."""
        made = []
        for row in self._rows:
            point: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
            for name in ("batch", "rows", "updates"):
                point[name] = int(point[name])
            made.append({**point, "alarm": bool(point["alarm"]), "time": self.times.get(point["batch"])})
        return made


def _merged(one: list[float], other: list[float]) -> list[float]:
    alarm, updates = _NAMES.index("alarm"), _NAMES.index("updates")
    row = list(other)
    row[alarm], row[updates] = max(one[alarm], other[alarm]), one[updates] + other[updates]
    return row
