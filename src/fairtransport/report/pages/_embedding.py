"""Text from outside inside a page: JSON that cannot end its element, and a policy that lets only our own script run."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

__all__ = ["content_policy", "embedded_json"]

# Signs that could end a script element, open a comment in it, or break a line of an old JavaScript.
_SIGNS = {sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def embedded_json(value: Any) -> str:
    r"""Return JSON for a ``<script type="application/json">`` element, whatever texts it holds.

    Parameters
    ----------
    value : dict, list, str, number, bool or None
        Without numbers that are not finite.

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
    return "".join(_SIGNS.get(sign, sign) for sign in text) if any(sign in text for sign in _SIGNS) else text


def content_policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy: nothing is fetched, and only this very style sheet and script count.

    Parameters
    ----------
    style, script : str
        What stands between the tags, to the letter.

    Returns
    -------
    str
        For a ``<meta http-equiv>`` element.
    """
    rules = {
        "default-src": "'none'",
        "img-src": "data:",  # the empty icon, so that no browser asks a server for one
        "style-src": _hash(style),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {value}" for rule, value in rules.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
