"""Words beside points, none over another, over a point or over a line."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["label_points"]

_CLEARLY = 1.4  # times as far
_DIRECTIONS = ((1, 1), (-1, -1), (1, 0), (0, 1), (-1, 0), (0, -1), (-1, 1), (1, -1))


def label_points(
    ax: Any,
    points: Sequence[tuple[float, float, str]],
    *,
    colours: Sequence[str],
    size: float,
    lines: Sequence[NDArray[np.float64]] = (),
) -> list[Any]:
    """Write a word beside each point that has room for one.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        With everything else drawn, and its limits set.
    points : sequence of (x, y, word)
        Those that come first get their place first.
    colours : sequence of str
        One for each point.
    size : float
        Of the letters, in points.
    lines : sequence of arrays of shape (n, 2)
        Polygons that words keep clear of.

    Returns
    -------
    list of matplotlib.text.Annotation
        Points without room have none.
    """
    figure = ax.figure
    for _ in range(2):  # a layout that makes room for a legend comes to rest at the second
        figure.draw_without_rendering()
    scale = figure.dpi / 72.0
    spots = [ax.transData.transform((x, y)) for x, y, _ in points]
    taken = [np.array([*(spot - 2.5 * scale), *(spot + 2.5 * scale)]) for spot in spots]
    edges = [ax.transData.transform(line) for line in lines]
    room = ax.get_window_extent()
    labels = []
    for (x, y, word), spot, colour in zip(points, spots, colours, strict=True):
        label = ax.annotate(
            word, (x, y), xytext=(0, 0), textcoords="offset points", ha="center", va="center", fontsize=size,
            color=colour, zorder=6,
        )  # fmt: skip
        half = label.get_window_extent().size / 2.0
        for across, up in _DIRECTIONS:
            shift = np.array([across, up]) * (half + 3.0 * scale / (math.sqrt(2.0) if across and up else 1.0))
            box = np.array([*(spot + shift - half), *(spot + shift + half)])
            inside = box[0] >= room.x0 and box[1] >= room.y0 and box[2] <= room.x1 and box[3] <= room.y1
            free = not any(_overlap(box, other) for other in taken) and not _crossed(box, edges)
            if inside and free and _is_nearest(box, spot, spots):
                label.set_position(tuple(shift / scale))
                labels.append(label)
                taken.append(box)
                break
        else:
            label.remove()
    return labels


def _overlap(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all())


def _is_nearest(box: NDArray[np.float64], own: NDArray[np.float64], spots: Sequence[NDArray[np.float64]]) -> bool:
    """Whether a reader takes the word to be this point's: all others are clearly farther from it."""
    gaps = [np.hypot(*np.maximum(0.0, np.maximum(box[:2] - spot, spot - box[2:]))) for spot in spots]
    near = np.hypot(*np.maximum(0.0, np.maximum(box[:2] - own, own - box[2:])))
    return bool(sum(gap < _CLEARLY * near for gap in gaps) <= sum(np.array_equal(spot, own) for spot in spots))


def _crossed(box: NDArray[np.float64], lines: Sequence[NDArray[np.float64]]) -> bool:
    """Whether a line passes through the box, seen at points closer than it is wide."""
    step = max(1.0, float(min(box[2:] - box[:2])) / 4.0)
    for line in lines:
        for begin, end in pairwise(line):
            n_steps = max(2, int(np.hypot(*(end - begin)) / step) + 1)
            way = begin + np.linspace(0.0, 1.0, n_steps)[:, None] * (end - begin)
            if ((way > box[:2]) & (way < box[2:])).all(axis=1).any():
                return True
    return False
