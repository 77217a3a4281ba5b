"""Labels beside points, none of which covers another label, a point or a line."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["label_points"]

_CLEARLY_FARTHER = 1.4  # ratio of distances
_DIRECTIONS = ((1, 1), (-1, -1), (1, 0), (0, 1), (-1, 0), (0, -1), (-1, 1), (1, -1))


def label_points(
    ax: Any,
    points: Sequence[tuple[float, float, str]],
    *,
    colours: Sequence[str],
    size: float,
    lines: Sequence[NDArray[np.float64]] = (),
) -> list[Any]:
    """Label the points that have room for a label.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Axes with everything else drawn, and with its limits set.
    points : sequence of (x, y, label)
        Points in order of priority.
    colours : sequence of str
        One for each point.
    size : float
        Font size, in points.
    lines : sequence of arrays of shape (n, 2)
        Polygonal lines that labels keep clear of.

    Returns
    -------
    list of matplotlib.text.Annotation
        Points without room have none.
    """
    figure = ax.figure
    for _ in range(2):  # a layout that makes room for a legend settles in the second pass
        figure.draw_without_rendering()
    scale = figure.dpi / 72.0
    centres = [ax.transData.transform((x, y)) for x, y, _ in points]
    taken = [np.array([*(centre - 2.5 * scale), *(centre + 2.5 * scale)]) for centre in centres]
    edges = [ax.transData.transform(line) for line in lines]
    window = ax.get_window_extent()
    labels = []
    for (x, y, label), centre, colour in zip(points, centres, colours, strict=True):
        text = ax.annotate(
            label, (x, y), xytext=(0, 0), textcoords="offset points", ha="center", va="center", fontsize=size,
            color=colour, zorder=6,
        )  # fmt: skip
        half = text.get_window_extent().size / 2.0
        for across, up in _DIRECTIONS:
            shift = np.array([across, up]) * (half + 3.0 * scale / (math.sqrt(2.0) if across and up else 1.0))
            box = np.array([*(centre + shift - half), *(centre + shift + half)])
            inside = box[0] >= window.x0 and box[1] >= window.y0 and box[2] <= window.x1 and box[3] <= window.y1
            free = not any(_overlap(box, other) for other in taken) and not _is_crossed(box, edges)
            if inside and free and _is_nearest(box, centre, centres):
                text.set_position(tuple(shift / scale))
                labels.append(text)
                taken.append(box)
                break
        else:
            text.remove()
    return labels


def _overlap(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all())


def _gap(box: NDArray[np.float64], point: NDArray[np.float64]) -> float:
    """Return the distance between a box and a point outside it."""
    return float(np.hypot(*np.maximum(0.0, np.maximum(box[:2] - point, point - box[2:]))))


def _is_nearest(box: NDArray[np.float64], centre: NDArray[np.float64], centres: Sequence[NDArray[np.float64]]) -> bool:
    """Return whether all points at other positions are clearly farther from the box than its own point."""
    limit = _CLEARLY_FARTHER * _gap(box, centre)
    near = sum(_gap(box, other) < limit for other in centres)
    return near <= sum(np.array_equal(other, centre) for other in centres)


def _is_crossed(box: NDArray[np.float64], lines: Sequence[NDArray[np.float64]]) -> bool:
    """Return whether a line passes through the box, tested at points closer than the box is wide."""
    step = max(1.0, float(min(box[2:] - box[:2])) / 4.0)
    for line in lines:
        for begin, end in pairwise(line):
            n_steps = max(2, int(np.hypot(*(end - begin)) / step) + 1)
            points = begin + np.linspace(0.0, 1.0, n_steps)[:, None] * (end - begin)
            if ((points > box[:2]) & (points < box[2:])).all(axis=1).any():
                return True
    return False
