"""Style of figures: colours of groups and themes, grid, and image files that are always the same bytes."""

from __future__ import annotations

import base64
import io
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._extras import load_extra
from fairtransport.groups import Groups

RC_PARAMS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a group may be called "$5,000 to $9,000"
    "svg.fonttype": "path",
    "svg.hashsalt": "fairtransport",
}
"""Settings of matplotlib that make image files reproducible."""

_MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


def figure_bytes(figure: Any, kind: str, *, dpi: int = 160) -> bytes:
    """Return a figure as the contents of an image file."""
    metadata = {"Software": "fairtransport"} if kind == "png" else {"Date": None, "Creator": "fairtransport"}
    file = io.BytesIO()
    with load_extra("matplotlib").rc_context(RC_PARAMS), warnings.catch_warnings():
        # A character of a group's name that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
    return file.getvalue()


def image_address(content: bytes, kind: str) -> str:
    """Return an image file as a ``data:`` address, for a page without neighbours."""
    return f"data:{_MEDIA_TYPES[kind]};base64,{base64.b64encode(content).decode()}"


# Axes with a light grid and without a box: the same in displays, panels and the paper's figures.


def add_grid(ax: Any, theme: Theme, *, width: float, visible: bool = True) -> None:
    """Draw a light grid behind the data and remove the upper and right spines."""
    if visible:
        ax.grid(visible=True, color=theme.line, linewidth=width, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


# Colours and dash patterns: a group looks the same in every figure and table.

_COLOURS = ("#0072b2", "#e08a00", "#009e73", "#cc5c9c", "#56b4e9", "#d55e00", "#8a6fd1", "#8c8c8c")
_DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 1.6), (5.0, 1.4, 1.2, 1.4), (1.4, 1.3))
_OTHERS = "#9aa0a6"

MOST_NAMED = 12
"""Largest number of groups with a line style and a legend entry of their own."""


@dataclass(frozen=True)
class GroupStyle:
    """Line style of a group."""

    colour: str
    dashes: tuple[float, ...] = ()
    named: bool = True

    @property
    def line_style(self) -> Any:
        """The dashes as matplotlib's ``linestyle``."""
        return (0, self.dashes) if self.dashes else "solid"

    @property
    def dash_array(self) -> str:
        """The dashes as the value of SVG's ``stroke-dasharray``."""
        return " ".join(f"{2 * length:g}" for length in self.dashes) or "none"


@dataclass(frozen=True)
class Theme:
    """Colours of everything that is not a group."""

    paper: str
    ink: str
    quiet: str
    line: str
    target: str
    accent: str  # from here on of pages only
    shade: str
    tint: str
    good: str
    warm: str
    bad: str


THEMES = {
    "light": Theme(
        paper="#ffffff", ink="#1b1f24", quiet="#59636e", line="#d5dae0", target="#d5dbe2", accent="#0b5cad",
        shade="11, 92, 173", tint="#f5f7f9", good="#0a7a4b", warm="#9a5b00", bad="#b3261e",
    ),
    "dark": Theme(
        paper="#14181d", ink="#e8ecf0", quiet="#a3adb8", line="#39424c", target="#2f3842", accent="#6cb3f5",
        shade="108, 179, 245", tint="#1b2128", good="#5cc795", warm="#e0a95a", bad="#ff8a80",
    ),
}  # fmt: skip
"""Colour schemes of figures and pages, by name."""


def group_styles(groups: Groups, counts: ArrayLike | None = None) -> tuple[GroupStyle, ...]:
    """Assign a colour and a dash pattern to each group."""
    sizes = groups.counts if counts is None else np.asarray(counts)
    largest = set(np.argsort(-sizes, kind="stable")[:MOST_NAMED].tolist())
    styles: list[GroupStyle] = []
    used = 0
    for index in range(len(groups)):
        if index not in largest:
            styles.append(GroupStyle(_OTHERS, named=False))
            continue
        # After eight groups the colours repeat, each with the next dash pattern.
        pattern = used % len(_COLOURS) + used // len(_COLOURS)
        styles.append(GroupStyle(_COLOURS[used % len(_COLOURS)], _DASHES[pattern % len(_DASHES)]))
        used += 1
    return tuple(styles)
