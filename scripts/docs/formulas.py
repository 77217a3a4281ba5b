"""TeX in a page -> MathML, at build time: no script and no font has to be fetched by the reader."""

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

    def formula(found: re.Match[str]) -> str:
        opening, kind, tex, closing = found.groups()
        display = "inline" if kind == "span" else "block"
        found_math = convert(html.unescape(tex).strip(), display=display)
        if "\\" in found_math:  # a command that the converter does not know; a warning ends the build
            _LOG.warning("This formula has a command that is not known: %s", tex.strip())
        return opening + found_math + closing

    return _FORMULA.sub(formula, page)
