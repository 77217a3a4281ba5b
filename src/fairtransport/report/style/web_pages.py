"""Parts that all HTML pages share: colour scheme, style sheet, script, templates, and what they say of the software."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from typing import Any

from fairtransport import __version__
from fairtransport._extras import load_extra
from fairtransport._text import one_line
from fairtransport.report.style.figures import THEMES

_PAGES = "fairtransport.report.pages"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def color_scheme() -> str:
    """Return a style sheet with the colours of a page: light or dark as the reader prefers, light on paper."""
    light, dark = (
        " ".join(f"--{name}: {value};" for name, value in asdict(THEMES[scheme]).items())
        for scheme in ("light", "dark")
    )
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ :root {{ {light} }} }}\n"
    )


def base_style() -> str:
    """Return the style sheet of pages with a script: colours, fonts, and text for screen readers only."""
    return color_scheme() + _asset("base.css")


def join_scripts(parts: Sequence[str]) -> str:
    """Join scripts into one whose names stay its own, after the functions that add elements."""
    return '(() => {\n"use strict";\n' + "\n".join([_asset("elements.js"), *parts]) + "})();\n"


def template_environment(package: str = _PAGES) -> Any:
    """Return a Jinja environment that cleans and escapes all texts and refuses names that are not defined.

    Templates of other packages may extend those of the report's pages. All know the colours, the date and the software.
    """
    environment = _make_environment(load_extra("jinja2"), package)
    environment.globals["written"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M %Z")
    return environment


@cache  # with the templates that it has compiled
def _make_environment(jinja2: Any, package: str) -> Any:
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in dict.fromkeys((package, _PAGES))]),
        autoescape=True,  # names come from the user's data
        finalize=lambda value: value if hasattr(value, "__html__") else one_line(value),  # our own markup stays
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    versions = {"Python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}
    environment.globals |= {
        "colours": load_extra("markupsafe").Markup(color_scheme()),
        "software": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "version": __version__,
    }
    return environment


def render_template(name: str, *, package: str = _PAGES, **context: Any) -> str:
    """Return a page without a script."""
    page: str = template_environment(package).get_template(name).render(context)
    return page


def _asset(name: str) -> str:
    return (resources.files("fairtransport.report.style") / "assets" / name).read_text(encoding="utf-8")
