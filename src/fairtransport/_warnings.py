"""Warnings of the package."""

from __future__ import annotations

import inspect
import warnings


class FairnessWarning(UserWarning):
    """A model was fitted, and what became of it is not what its user is likely to want."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line, outside of this package, from which the package was called."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith("fairtransport."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
