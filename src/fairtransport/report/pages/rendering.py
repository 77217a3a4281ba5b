"""Render the page of one or two audits into one file: template, style sheet, script and data."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

from fairtransport._extras import load_extra
from fairtransport._text import percent
from fairtransport.auditing.tables import EMPTY
from fairtransport.report.style.web_pages import base_style, join_scripts, template_environment
from fairtransport.storage import write_atomically

# Safe embedding of data in a page: JSON that cannot end its element, and a policy that allows only its own script.

# Characters that could end a script element, open a comment in it, or break a line in old versions of JavaScript.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def embedded_json(value: Any) -> str:
    """Return JSON for a ``<script type="application/json">`` element, whatever texts it contains."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def content_policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that fetches nothing and allows only this style sheet and this script."""
    rules = {
        "default-src": "'none'",
        "img-src": "data:",  # the empty icon, so that browsers do not request one
        "style-src": _hash(style),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {value}" for rule, value in rules.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_PACKAGE = "fairtransport.report.pages"
_SCRIPTS = ("data", "what_if", "formats", "chart", "live", "errors", "controls", "csv", "main")
_MAX_ROWS = 15  # rows of a table that are shown until the reader asks for all


def check_destination(path: Any) -> None:
    """Raise if no file can be written to the path, before anything is computed."""
    if path is None:
        return
    destination = Path(path)
    if destination.is_dir():
        raise IsADirectoryError(f"{destination} is a folder; name a file in it, such as {destination / 'report.html'}.")
    if not destination.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {destination.parent} does not exist; create it first, or choose another path."
        )


def write_page(page: str, path: Any) -> Path | str:
    """Write the page and return its path; without a path return the page."""
    return page if path is None else write_atomically(path, page.encode())


def _percent(share: float) -> str:
    """Return a share as a percentage, or a dash where it is withheld."""
    return EMPTY if math.isnan(share) else percent(share)


def render_audit_page(common: dict[str, Any], **sections: Any) -> str:
    """Fill the template; nothing but the style sheet and the script of the page may run."""
    environment, markup = template_environment(), load_extra("markupsafe")
    environment.filters |= {"isolate": lambda text: _isolate(text, markup), "percent": _percent}
    style = base_style() + environment.get_template("audit/page.css").render(max_rows=_MAX_ROWS)
    script = join_scripts([_template(f"{name}.js") for name in _SCRIPTS])
    page: str = environment.get_template("audit/page.html").render(
        **{**common, **sections, "data": markup.Markup(embedded_json(common["data"]))},
        max_rows=_MAX_ROWS,
        style=markup.Markup(style),
        script=markup.Markup(script),
        policy=markup.Markup(content_policy(style, script)),
    )
    return page


def _template(name: str) -> str:
    return (resources.files(_PACKAGE) / "templates" / "audit" / name).read_text(encoding="utf-8")


def _isolate(text: str, markup: Any) -> Any:
    """Put names between U+2068 and U+2069 into ``<bdi>`` elements; everything is escaped."""
    parts = re.split("\u2068([^\u2069]*)\u2069", text)
    shown = (markup.Markup("<bdi>{}</bdi>").format(part) if index % 2 else part for index, part in enumerate(parts))
    return markup.Markup("").join(shown)
