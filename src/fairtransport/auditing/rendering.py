"""How pictures come to an audit: the room that draws hands them down; this room knows its name, and imports nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RENDERERS", "register_renderer", "render"]

#: What an audit, or two of them, can be turned into.
RENDERERS = ("plot", "to_html", "repr_html", "compare_to_html")

_RENDERERS: dict[str, Callable[..., Any]] = {}
_DRAWN_BY = (
    "fairtransport.report.audits"  # loaded when first asked for: an audit that nobody draws does not wait for it
)


def register_renderer(name: str, function: Callable[..., Any]) -> None:
    """Make ``Audit.plot``, ``Audit.to_html`` and their like call ``function(audit, ...)``.

    Parameters
    ----------
    name : {"plot", "to_html", "repr_html", "compare_to_html"}
    function : callable
        Takes the audit (the comparison for the last), and the options as keywords.
    """
    if name not in RENDERERS:
        raise ValueError(f"name must be one of {', '.join(map(repr, RENDERERS))}; got {name!r}.")
    _RENDERERS[name] = function


def render(name: str, audit: Any, **options: Any) -> Any:
    """Call the renderer of that name."""
    if name not in _RENDERERS:
        importlib.import_module(_DRAWN_BY)
    if name not in _RENDERERS:
        raise RuntimeError(f"Nothing is registered that draws audits for {name!r}; see register_renderer.")
    return _RENDERERS[name](audit, **options)
