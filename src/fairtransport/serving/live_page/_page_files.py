"""Files of the live page: HTML, style sheet and script."""

from __future__ import annotations

from importlib import resources

from fairtransport.report.style.web_pages import base_style, join_scripts

__all__ = ["page_files"]

_SCRIPTS = ("tools", "lines", "status", "tables", "main")


def page_files() -> dict[str, tuple[str, bytes]]:
    """Return the media type and the content of each file of the page, by path.

    Returns
    -------
    dict of str to (str, bytes)

    Examples
    --------
    >>> sorted(page_files())
    ['/', '/page.css', '/page.js']
    """
    script = join_scripts([_read(f"{name}.js") for name in _SCRIPTS])
    return {
        "/": ("text/html; charset=utf-8", _read("page.html").encode()),
        "/page.css": ("text/css; charset=utf-8", (base_style() + _read("page.css")).encode()),
        "/page.js": ("text/javascript; charset=utf-8", script.encode()),
    }


def _read(name: str) -> str:
    return (resources.files("fairtransport.serving.live_page") / "templates" / name).read_text(encoding="utf-8")
