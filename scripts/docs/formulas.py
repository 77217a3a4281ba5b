"""Conversion of TeX to MathML when the site is built, so that readers need no script and no font."""

from __future__ import annotations

import html
import logging
import re

from latex2mathml.converter import convert

__all__ = ["to_mathml"]

_LOG = logging.getLogger("mkdocs.hooks.formulas")
_FORMULA = re.compile(r'(<(span|div) class="arithmatex">)\\[(\[](.*?)\\[)\]](</\2>)', re.DOTALL)


def to_mathml(page: str) -> str:
    """Return the page with its formulas converted."""

    def formula(match: re.Match[str]) -> str:
        opening, kind, tex, closing = match.groups()
        display = "inline" if kind == "span" else "block"
        mathml = convert(html.unescape(tex).strip(), display=display)
        if "\\" in mathml:  # a command that the converter does not know; a warning ends the build
            _LOG.warning("The formula has an unknown command: %s", tex.strip())
        return opening + mathml + closing

    return _FORMULA.sub(formula, page)
