"""Conversion of formulas in docstrings from numpydoc's notation to Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["FormulasInDocstrings", "to_markdown"]

_DIRECTIVE = re.compile(r"^([ \t]*)\.\. math::[ \t]*(.*(?:\n(?:[ \t]*\n)*\1[ \t]+\S.*)*)", re.MULTILINE)
_FORMULA = re.compile(r":math:`([^`]+)`", re.DOTALL)
_ROLE = re.compile(r":(?:attr|class|func|meth|mod|obj):`~?([^`]+)`")


def to_markdown(text: str) -> str:
    r"""Return a docstring with ``.. math::`` and ``:math:`` as ``$$`` and ``$``, and names as code.

    Examples
    --------
    >>> to_markdown("As :math:`x`:\n\n.. math:: a\n    b\n\nEnd.")
    'As $x$:\n\n$$\na b\n$$\n\nEnd.'
    >>> to_markdown("See :func:`~numpy.sum`.")
    'See `numpy.sum`.'
    """

    def block(match: re.Match[str]) -> str:
        indent, tex = match.groups()
        return f"{indent}$$\n{indent}{' '.join(tex.split())}\n{indent}$$"

    text = _FORMULA.sub(lambda match: f"${' '.join(match.group(1).split())}$", _DIRECTIVE.sub(block, text))
    return _ROLE.sub(r"`\1`", text)


class FormulasInDocstrings(griffe.Extension):
    """An extension of griffe that rewrites the docstring of each object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
