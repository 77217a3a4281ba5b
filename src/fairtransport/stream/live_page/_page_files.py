"""The files of the live page: read once, put together, no template language needed."""

from __future__ import annotations

from importlib import resources

from fairtransport.report.style.colors import THEMES, Theme

__all__ = ["page_files"]

_SCRIPTS = ("tools", "lines", "status", "tables", "main")
_ACCENTS = {
    "light": {"accent": "#0b5cad", "tint": "#f5f7f9", "good": "#0a7a4b", "warm": "#9a5b00", "bad": "#b3261e"},
    "dark": {"accent": "#6cb3f5", "tint": "#1b2128", "good": "#5cc795", "warm": "#e0a95a", "bad": "#ff8a80"},
}


def page_files() -> dict[str, tuple[str, bytes]]:
    """Return the page's files: path to media type and contents.

    Returns
    -------
    dict of str to (str, bytes)

    Examples
    --------
    >>> sorted(page_files())
    ['/', '/page.css', '/page.js']
    """
    script = '(() => {\n"use strict";\n' + "\n".join(_read(f"{name}.js") for name in _SCRIPTS) + "})();\n"
    return {
        "/": ("text/html; charset=utf-8", _read("page.html").encode()),
        "/page.css": ("text/css; charset=utf-8", (_colours() + _read("page.css")).encode()),
        "/page.js": ("text/javascript; charset=utf-8", script.encode()),
    }


def _read(name: str) -> str:
    return (resources.files("fairtransport.stream.live_page") / "templates" / name).read_text(encoding="utf-8")


def _colours() -> str:
    """Return the colours of the other pages, by day and by night."""
    light, dark = (_properties(THEMES[name], _ACCENTS[name]) for name in ("light", "dark"))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _properties(theme: Theme, accents: dict[str, str]) -> str:
    named = {"paper": theme.paper, "ink": theme.ink, "quiet": theme.quiet, "line": theme.line, "target": theme.target}
    return " ".join(f"--{name}: {value};" for name, value in {**named, **accents}.items())
