"""Figures as image files: the same bytes for the same figure, whatever style the caller has set."""

from __future__ import annotations

import base64
import io
import warnings
from typing import Any

from fairtransport._extras import load_extra

__all__ = ["RC_PARAMS", "figure_bytes", "image_address"]

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
    """Return a figure as the contents of an image file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure to save.
    kind : {"png", "svg"}
        Format of the file.
    dpi : int, default=160
        Dots per inch of a PNG.

    Returns
    -------
    bytes
        The same for equal figures: no date is stored.
    """
    metadata = {"Software": "fairtransport"} if kind == "png" else {"Date": None, "Creator": "fairtransport"}
    file = io.BytesIO()
    with load_extra("matplotlib").rc_context(RC_PARAMS), warnings.catch_warnings():
        # A character of a group's name that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
    return file.getvalue()


def image_address(content: bytes, kind: str) -> str:
    """Return an image file as a ``data:`` address, for a page without neighbours.

    Parameters
    ----------
    content : bytes
        Contents of the file.
    kind : {"png", "svg"}
        Format of the file.

    Returns
    -------
    str

    Examples
    --------
    >>> image_address(b"<svg/>", "svg")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:{_MEDIA_TYPES[kind]};base64,{base64.b64encode(content).decode()}"
