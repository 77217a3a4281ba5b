"""Display of the history of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from fairtransport._validation import check_choice
from fairtransport.report.displays._axes import THEME, is_narrow, label_axes, legend_above
from fairtransport.report.displays._base import Display

__all__ = ["AdjustmentDisplay"]

_LINE, _ALARM = "#0072b2", "#d55e00"  # distinguishable with the common kinds of colour blindness
_X_LABELS = {"batch": "Batch", "rows": "Rows"}
_Y_LABELS = {
    "disparity": "Disparity",
    "agreement": "Agreement with the original",
    "moved": "Distance travelled",
    "updates": "Updates spent",
}


class AdjustmentDisplay(Display):
    """Disparity along a stream, with its noise floor and alarms.

    Use `from_history` or `from_adjuster` to create a display.

    Parameters
    ----------
    history : list of dict
        One dict for each batch, in order, with ``batch`` and what is drawn: ``disparity``, ``noise_floor`` and
        ``alarm``, or ``agreement``, ``moved`` or ``updates``. A value that is missing, None or NaN leaves a gap.
    x : {"batch", "rows"}, default="batch"
        Quantity on the horizontal axis.
    y : {"disparity", "agreement", "moved", "updates"}, default="disparity"
        Quantity on the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    line_ : matplotlib.lines.Line2D
        The quantity along the stream.
    floor_ : matplotlib.collections.PolyCollection or None
        Shaded area below the noise floor of the disparity.
    alarms_ : matplotlib.lines.Line2D or None
        Triangles at the batches that raised an alarm.

    See Also
    --------
    fairtransport.stream.ContinualAdjuster : Adjusts a model along a stream.
    GroupDistributionDisplay : Distributions whose distance is the disparity.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairtransport.report import AdjustmentDisplay
    >>> history = [
    ...     {"batch": k, "disparity": 0.2 / k, "noise_floor": 0.03, "alarm": k == 1} for k in range(1, 9)
    ... ]
    >>> display = AdjustmentDisplay.from_history(history)
    >>> display.ax_.get_ylabel(), display.alarms_.get_xdata().tolist()
    ('Disparity', [1.0])
    """

    line_: Any
    floor_: Any
    alarms_: Any

    def __init__(self, history: Sequence[Mapping[str, Any]], *, x: str = "batch", y: str = "disparity") -> None:
        self.history = history
        self.x = x
        self.y = y

    @classmethod
    def from_history(
        cls, history: Sequence[Mapping[str, Any]], *, x: str = "batch", y: str = "disparity", ax: Any = None
    ) -> Self:
        """Draw measurements of batches.

        Parameters
        ----------
        history : list of dict
            One dict for each batch, as for the class.
        x : {"batch", "rows"}, default="batch"
            Quantity on the horizontal axis.
        y : {"disparity", "agreement", "moved", "updates"}, default="disparity"
            Quantity on the vertical axis.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        Display
        """
        if isinstance(history, str | Mapping) or not isinstance(history, Sequence):
            raise TypeError(f"history must be a list of dicts, one for each batch; got {type(history).__name__}.")
        if not all(isinstance(batch, Mapping) for batch in history):
            raise TypeError("history must be a list of dicts, one for each batch; some entries are not dicts.")
        if not history:
            raise ValueError("There is nothing to draw: the history is empty. Adjust a batch first.")
        return cls(list(history), x=x, y=y).plot(ax)

    @classmethod
    def from_adjuster(cls, adjuster: Any, *, x: str = "batch", y: str = "disparity", ax: Any = None) -> Self:
        """Draw the history of a `fairtransport.stream.ContinualAdjuster`.

        Parameters
        ----------
        adjuster : object
            With a ``history``, or with a method ``snapshot`` that returns one.
        x, y, ax
            As in `from_history`.

        Returns
        -------
        Display
        """
        history = getattr(adjuster, "history", None)
        if history is None and callable(getattr(adjuster, "snapshot", None)):
            history = adjuster.snapshot().get("history")
        if history is None:
            raise TypeError(
                f"{type(adjuster).__name__} has no history: pass a ContinualAdjuster, or a list to from_history."
            )
        return cls.from_history(list(history), x=x, y=y, ax=ax)

    def _check_and_size(self) -> tuple[float, float]:
        check_choice(self.x, tuple(_X_LABELS), name="x")
        check_choice(self.y, tuple(_Y_LABELS), name="y")
        if not np.isfinite(self._column(self.x)).any() or not np.isfinite(self._column(self.y)).any():
            raise ValueError(f"No entry of the history has numbers for both {self.x!r} and {self.y!r}.")
        return super()._check_and_size()

    def _draw(self, *, new_figure: bool) -> None:
        x, y = self._column(self.x), self._column(self.y)
        width = 1.0 if is_narrow(self.ax_) else 1.5
        marker = "o" if np.count_nonzero(np.isfinite(y)) == 1 else ""
        (self.line_,) = self.ax_.plot(x, y, color=_LINE, linewidth=width, marker=marker, zorder=4)
        self.floor_ = self._draw_floor(x)
        self._set_limits(x, y)
        self.alarms_ = self._draw_alarms(x)
        legend_above(self.ax_, self._entries, grow=new_figure)

    def _column(self, key: str) -> Any:
        values = [batch.get(key) for batch in self.history]
        return np.array([np.nan if value is None else float(value) for value in values])

    def _draw_floor(self, x: Any) -> Any:
        floor = self._column("noise_floor")
        if self.y != "disparity" or not np.isfinite(floor).any():
            return None
        return self.ax_.fill_between(x, 0.0, floor, color=THEME.target, linewidth=0, zorder=1)

    def _draw_alarms(self, x: Any) -> Any:
        """Draw a triangle at the upper edge, where no line runs, and a thin line below it."""
        alarms = x[[bool(batch.get("alarm")) for batch in self.history]]
        alarms = alarms[np.isfinite(alarms)]
        if not alarms.size:
            return None
        transform = self.ax_.get_xaxis_transform()
        self.ax_.vlines(
            alarms, 0, 1, transform=transform, colors=_ALARM, linewidth=0.7, linestyles=(0, (2.0, 2.0)), zorder=3
        )
        (markers,) = self.ax_.plot(
            alarms,
            np.full(alarms.size, 0.97),  # below the legend
            transform=transform,
            color=_ALARM,
            linestyle="none",
            marker="v",
            markersize=4.0 if is_narrow(self.ax_) else 6.0,
            clip_on=False,
            zorder=5,
        )
        return markers

    def _set_limits(self, x: Any, y: Any) -> None:
        ax = self.ax_
        label_axes(ax, xlabel=_X_LABELS[self.x], ylabel=_Y_LABELS[self.y])
        ax.locator_params(axis="x", nbins=4 if is_narrow(ax) else 7, integer=True)
        ax.locator_params(axis="y", nbins=5)
        first, last = np.nanmin(x), np.nanmax(x)
        if last > first:
            ax.set_xlim(first, last)
        ax.margins(y=0.08)
        if self.y == "agreement":
            ax.set_ylim(top=1.0 + 0.02 * (1.0 - min(1.0, float(np.nanmin(y)))))
            ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        elif np.nanmin(y) >= 0:
            ax.set_ylim(bottom=0.0)
        if self.x == "rows":
            ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")

    def _entries(self, max_chars: int) -> list[tuple[Any, str]]:
        """Return the entries of the legend."""
        long, short = "Noise floor: chance alone", "Noise floor"
        entries = [(self.line_, _Y_LABELS[self.y])]
        if self.floor_ is not None:
            entries.append((self.floor_, long if max_chars >= len(long) else short))
        if self.alarms_ is not None:
            entries.append((self.alarms_, "Alarm"))
        return entries
