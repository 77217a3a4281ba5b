"""Formulas of docstrings, which are written for numpydoc, in the notation of the site's pages."""

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

    def block(found: re.Match[str]) -> str:
        indent, tex = found.groups()
        return f"{indent}$$\n{indent}{' '.join(tex.split())}\n{indent}$$"

    text = _FORMULA.sub(lambda found: f"${' '.join(found.group(1).split())}$", _DIRECTIVE.sub(block, text))
    return _ROLE.sub(r"`\1`", text)


class FormulasInDocstrings(griffe.Extension):
    """What griffe calls for each object that it has read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
