"""One file that has everything: template, style sheet, script and data; and its place on the disk."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

from fairtransport._extras import load_extra
from fairtransport.report.pages._embedding import content_policy, embedded_json
from fairtransport.report.style.colors import THEMES
from fairtransport.storage import write_atomically

__all__ = ["check_goal", "render_audit", "write_page"]

_SCRIPTS = ("data", "what_if", "svg", "chart", "live", "controls", "csv", "main")
_MOST_ROWS = 15  # of a table that are shown before somebody asks for all


def check_goal(path: Any) -> None:
    """Refuse a path that no file can have, before anything is computed."""
    if path is None:
        return
    goal = Path(path)
    if goal.is_dir():
        raise IsADirectoryError(f"{goal} is a folder; name a file in it, such as {goal / 'report.html'}.")
    if not goal.parent.is_dir():
        raise FileNotFoundError(f"The folder {goal.parent} does not exist; make it first, or choose another path.")


def write_page(page: str, path: Any) -> Path | str:
    """Write the page, all at once, and return its path; without a path return the page."""
    return page if path is None else write_atomically(path, page.encode())


def render_audit(context: dict[str, Any]) -> str:
    """Fill the template: style sheet, script and data inside, and a policy that lets nothing else run.

    Parameters
    ----------
    context : dict
        What the template names; ``data`` is what the script works on.

    Returns
    -------
    str
    """
    jinja2, markup = load_extra("jinja2"), load_extra("markupsafe")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairtransport.report.pages"),
        autoescape=True,  # names come from the user's data
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["isolate"] = lambda text: _isolate(text, markup)
    style = environment.get_template("audit/page.css").render(themes=THEMES, most_rows=_MOST_ROWS)
    script = _script()
    page: str = environment.get_template("audit/page.html").render(
        **{**context, "data": markup.Markup(embedded_json(context["data"]))},
        most_rows=_MOST_ROWS,
        style=markup.Markup(style),
        script=markup.Markup(script),
        policy=markup.Markup(content_policy(style, script)),
    )
    return page


def _script() -> str:
    """Return the page's script: our files one after the other, in a function of their own."""
    home = resources.files("fairtransport.report.pages") / "templates" / "audit"
    parts = [(home / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _isolate(text: str, markup: Any) -> Any:
    """Turn the signs around names into elements; everything is escaped."""
    parts = re.split("\u2068([^\u2069]*)\u2069", text)
    told = (markup.Markup("<bdi>{}</bdi>").format(part) if place % 2 else part for place, part in enumerate(parts))
    return markup.Markup("").join(told)
