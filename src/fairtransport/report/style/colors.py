"""Colours: the same group looks the same in every picture and table.

The eight colours are told apart with the common kinds of colour blindness (after Okabe and Ito, without the
yellow that vanishes on white), and every line has a dash pattern too, so that a grey print still tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fairtransport.groups import Groups

__all__ = ["MOST_NAMED", "THEMES", "GroupStyle", "Theme", "group_styles"]

_COLOURS = ("#0072b2", "#e08a00", "#009e73", "#cc5c9c", "#56b4e9", "#d55e00", "#8a6fd1", "#8c8c8c")
_DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 1.6), (5.0, 1.4, 1.2, 1.4), (1.4, 1.3))
_OTHERS = "#9aa0a6"

#: Lines that an eye can follow.
MOST_NAMED = 12


@dataclass(frozen=True)
class GroupStyle:
    """How a group is drawn.

    Attributes
    ----------
    colour : str
        ``"#rrggbb"``.
    dashes : tuple of float
        Lengths of strokes and gaps in line widths; empty for a full line.
    named : bool
        Whether the group has a place of its own in the legend.
    """

    colour: str
    dashes: tuple[float, ...] = ()
    named: bool = True


@dataclass(frozen=True)
class Theme:
    """Colours of everything that is not a group.

    Attributes
    ----------
    paper, ink, quiet, line, target : str
        Background, text, secondary text, axes and grid, and the area of the target.
    """

    paper: str
    ink: str
    quiet: str
    line: str
    target: str


THEMES = {
    "light": Theme(paper="#ffffff", ink="#1b1f24", quiet="#59636e", line="#d5dae0", target="#d5dbe2"),
    "dark": Theme(paper="#14181d", ink="#e8ecf0", quiet="#a3adb8", line="#39424c", target="#2f3842"),
}
"""The page's two faces; its style sheet names the same colours."""


def group_styles(groups: Groups, counts: ArrayLike | None = None) -> tuple[GroupStyle, ...]:
    """Give each group its colour and dashes.

    Parameters
    ----------
    groups : Groups
    counts : array-like of shape (n_groups,), optional
        Rows of each group, where ``groups`` has none of its own, as those of an audit.

    Returns
    -------
    tuple of GroupStyle
        In the groups' order. With more than twelve groups the largest twelve have styles of their own and
        the others share a grey line.

    Examples
    --------
    >>> from fairtransport import make_groups
    >>> [style.colour for style in group_styles(make_groups(["a", "b"]))]
    ['#0072b2', '#e08a00']
    """
    sizes = groups.counts if counts is None else np.asarray(counts)
    largest = set(np.argsort(-sizes, kind="stable")[:MOST_NAMED].tolist())
    styles: list[GroupStyle] = []
    used = 0
    for place in range(len(groups)):
        if place not in largest:
            styles.append(GroupStyle(_OTHERS, named=False))
            continue
        # After eight groups the colours come round again, with the next dash pattern.
        turn = used % len(_COLOURS) + used // len(_COLOURS)
        styles.append(GroupStyle(_COLOURS[used % len(_COLOURS)], _DASHES[turn % len(_DASHES)]))
        used += 1
    return tuple(styles)
