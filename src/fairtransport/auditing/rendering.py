"""How pictures come to an audit: the rooms above hand them down, this room imports nothing from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["can_render", "register_renderer", "render"]

_RENDERERS: dict[str, Callable[..., Any]] = {}


def register_renderer(name: str, function: Callable[..., Any]) -> None:
    """Make ``Audit.plot`` or ``Audit.to_html`` call ``function(audit, ...)``.

    Parameters
    ----------
    name : {"plot", "to_html"}
    function : callable
        Takes the audit, and the options as keywords.
    """
    if name not in {"plot", "to_html"}:
        raise ValueError(f"name must be 'plot' or 'to_html'; got {name!r}.")
    _RENDERERS[name] = function


def can_render(name: str) -> bool:
    """Return whether there is a renderer of that name."""
    return name in _RENDERERS


def render(name: str, audit: Any, **options: Any) -> Any:
    """Call the renderer of that name."""
    if name not in _RENDERERS:
        raise RuntimeError(f"Nothing draws audits yet; import fairtransport.report, which brings Audit.{name}.")
    return _RENDERERS[name](audit, **options)
