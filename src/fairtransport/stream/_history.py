"""History of a stream in at most 2,000 points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MAX_POINTS", "History"]

MAX_POINTS = 2000
_NAMES = ("batch", "rows", "disparity", "noise_floor", "alarm", "updates", "moved", "agreement")


class History:
    """History of a stream of any length in at most 2,000 points.

    Beyond that, neighbouring points are merged; an alarm of either is kept.

    Attributes
    ----------
    stride : int
        Batches per point.
    waiting : int
        Batches in the last point, if it is not complete; otherwise 0.
    times : dict of int to str
        Time of each point, by batch, as far as it is known.

    Examples
    --------
    >>> history = History()
    >>> for batch in range(5000):
    ...     history.add(batch=batch, rows=batch, disparity=0.1, noise_floor=0.0, alarm=batch == 70, updates=1,
    ...                 moved=0.0, agreement=1.0)
    >>> len(history) <= 2000, sum(point["alarm"] for point in history.points()), history.points()[-1]["batch"]
    (True, 1, 4999)
    """

    def __init__(self) -> None:
        self._rows: list[list[float]] = []
        self.stride, self.waiting = 1, 0
        self.times: dict[int, str] = {}

    @classmethod
    def from_array(cls, array: NDArray[np.float64], stride: int, waiting: int) -> History:
        """Return the history of a checkpoint, from what `array` returned and its attributes."""
        if array.shape[1:] != (len(_NAMES),) or len(array) > 2 * MAX_POINTS:
            raise ValueError(f"A history has at most {2 * MAX_POINTS} points of {len(_NAMES)} numbers.")
        history = cls()
        history._rows = array.astype(np.float64).tolist()
        history.stride, history.waiting = (
            check_count(stride, name="stride"),
            check_count(waiting, name="waiting", least=0),
        )
        return history

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
        if len(self._rows) > MAX_POINTS and not self.waiting:
            pairs = zip(self._rows[0::2], self._rows[1::2], strict=False)
            last = self._rows[-1:] if len(self._rows) % 2 else []
            self._rows = [*(_merged(*pair) for pair in pairs), *last]
            self.waiting = self.stride if last else 0
            self.stride *= 2
        if len(self.times) > 2 * MAX_POINTS:
            self.times = self.known_times()

    def known_times(self) -> dict[int, str]:
        """Return the times of the points, by batch."""
        return {int(row[0]): self.times[int(row[0])] for row in self._rows if int(row[0]) in self.times}

    def array(self) -> NDArray[np.float64]:
        """Return all points as an array of shape (n_points, 8)."""
        return np.array(self._rows).reshape(-1, len(_NAMES))

    def points(self) -> list[dict[str, Any]]:
        """Return all points as dicts; ``time`` is None where it is unknown."""
        points = []
        for row in self._rows:
            point: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
            for name in ("batch", "rows", "updates"):
                point[name] = int(point[name])
            points.append({**point, "alarm": bool(point["alarm"]), "time": self.times.get(point["batch"])})
        return points


def _merged(first: list[float], second: list[float]) -> list[float]:
    alarm, updates = _NAMES.index("alarm"), _NAMES.index("updates")
    row = list(second)
    row[alarm], row[updates] = max(first[alarm], second[alarm]), first[updates] + second[updates]
    return row
