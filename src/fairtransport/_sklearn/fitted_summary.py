"""A line about the fitted model, below scikit-learn's HTML diagram of an estimator."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairtransport.groups import Groups

__all__ = ["fitted_summary_html"]


def fitted_summary_html(groups: Groups | None, describe: Callable[[], Sequence[str]]) -> str:
    """Return an HTML paragraph that summarises a fitted estimator.

    Estimators append it to the diagram in ``_html_repr``, which scikit-learn's ``ReprHTMLMixin`` displays.

    Parameters
    ----------
    groups : Groups or None
        The groups that the estimator was fitted to; None before ``fit``.
    describe : callable
        Returns further statements about the fit; called on fitted estimators only.

    Returns
    -------
    str
        Empty before ``fit``.
    """
    if groups is None:
        return ""
    statements = [f"Fitted to {len(groups)} groups of {', '.join(groups.columns)}", *describe()]
    return f'<p style="font-size:.9em;margin:.3em 0">{escape("; ".join(statements))}.</p>'
