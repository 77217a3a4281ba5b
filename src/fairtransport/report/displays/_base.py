"""Base class of the displays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from fairtransport.report.displays._axes import get_axes

__all__ = ["Display"]


class Display(ABC):
    """Base class of the displays: ``plot`` finds the axes, a subclass draws on them.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    """

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
            The display itself, with ``ax_`` and ``figure_``.
        """
        size = self._check_and_size()
        self.ax_ = get_axes(ax, size)
        self.figure_ = self.ax_.figure
        self._draw(new_figure=ax is None)
        return self

    def _check_and_size(self) -> tuple[float, float]:
        """Check the parameters; return the width and height of a new figure, in inches."""
        return (5.6, 3.8)

    @abstractmethod
    def _draw(self, *, new_figure: bool) -> None:
        """Draw on ``ax_``; a new figure may grow with its legend."""
