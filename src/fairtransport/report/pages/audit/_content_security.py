"""Safe embedding of data in a page: JSON that cannot end its element, and a policy that allows only its own script."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

__all__ = ["content_policy", "embedded_json"]

# Characters that could end a script element, open a comment in it, or break a line in old versions of JavaScript.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def embedded_json(value: Any) -> str:
    r"""Return JSON for a ``<script type="application/json">`` element, whatever texts it contains.

    Parameters
    ----------
    value : dict, list, str, number, bool or None
        All numbers are finite.

    Returns
    -------
    str
        The same value for a reader of JSON; no ``<``, ``>``, ``&``, U+2028 or U+2029.

    Examples
    --------
    >>> embedded_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def content_policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that fetches nothing and allows only this style sheet and this script.

    Parameters
    ----------
    style, script : str
        The exact text between the tags.

    Returns
    -------
    str
        For a ``<meta http-equiv>`` element.
    """
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
