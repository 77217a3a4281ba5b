"""What was fitted, below scikit-learn's diagram of an estimator in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["ShowsFit"]


class ShowsFit:
    """Adds one line to the diagram: the groups, and what ``_told`` says. Stands before ``BaseEstimator``."""

    def _told(self) -> list[str]:
        """Say what was fitted, in a few words each; called on fitted estimators only."""
        return []

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._fit_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._fit_html()
        return bundle

    def _fit_html(self) -> str:
        groups = vars(self).get("groups_", getattr(vars(self).get("repair_"), "groups_", None))
        if groups is None:
            return ""
        columns = ", ".join(groups.columns)
        told = [f"Fitted to {len(groups)} groups of {columns}", *self._told()]
        return f'<p style="font-size:.9em;margin:.3em 0">{escape("; ".join(told))}.</p>'
