"""Warnings of the package."""

from __future__ import annotations

__all__ = ["FairnessWarning"]


class FairnessWarning(UserWarning):
    """A model was fitted, and what became of it is not what its user is likely to want."""
