"""``AdjustmentDisplay``: disparity along a stream, with what chance alone would show, and alarms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from fairtransport._validation import check_choice
from fairtransport.report.displays._axes import THEME, dress, get_axes, is_narrow, legend_above

__all__ = ["AdjustmentDisplay"]

_LINE, _ALARM = "#0072b2", "#d55e00"  # told apart with every common kind of colour blindness, and by their shapes
_X = {"batch": "Batch", "rows": "Rows"}
_Y = {
    "disparity": "Disparity",
    "agreement": "Agreement with the original",
    "moved": "Distance travelled",
    "updates": "Updates spent",
}


class AdjustmentDisplay:
    """Disparity along a stream: the line, its noise floor and alarms.

    Use `from_history` or `from_adjuster` to make one; ``plot`` draws it again, on other axes.

    Parameters
    ----------
    history : list of dict
        One for each batch, in order, with ``batch`` and what is drawn: ``disparity``, ``noise_floor`` and ``alarm``,
        or ``agreement``, ``moved`` or ``updates``. A value that is missing, None or NaN leaves a gap.
    x : {"batch", "rows"}, default "batch"
        What runs along the stream.
    y : {"disparity", "agreement", "moved", "updates"}, default "disparity"
        What is drawn.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    line_ : matplotlib.lines.Line2D
    floor_ : object or None
        The shaded part that chance alone would show; only of the disparity.
    alarms_ : matplotlib.lines.Line2D or None
        Triangles at the batches that raised an alarm.

    See Also
    --------
    GroupDistributionDisplay : The distributions that the disparity is of.

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

    ax_: Any
    figure_: Any
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
        """Draw what was measured batch by batch.

        Parameters
        ----------
        history : list of dict
            As for the class.
        x : {"batch", "rows"}, default "batch"
            What runs along the stream.
        y : {"disparity", "agreement", "moved", "updates"}, default "disparity"
            What is drawn.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        AdjustmentDisplay
        """
        if isinstance(history, str | Mapping) or not isinstance(history, Sequence):
            raise TypeError(f"history must be a list of dicts, one for each batch; got {type(history).__name__}.")
        if not all(isinstance(point, Mapping) for point in history):
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
            With a ``history``, or with a method ``snapshot`` whose result has one.
        x, y, ax
            As for `from_history`.

        Returns
        -------
        AdjustmentDisplay
        """
        history = getattr(adjuster, "history", None)
        if history is None and callable(getattr(adjuster, "snapshot", None)):
            history = adjuster.snapshot().get("history")
        if history is None:
            raise TypeError(
                f"{type(adjuster).__name__} has no history: give a ContinualAdjuster, or use from_history with a list."
            )
        return cls.from_history(list(history), x=x, y=y, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the line.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        AdjustmentDisplay
            Itself.
        """
        check_choice(self.x, tuple(_X), name="x")
        check_choice(self.y, tuple(_Y), name="y")
        at, values = self._column(self.x), self._column(self.y)
        if not np.isfinite(at).any() or not np.isfinite(values).any():
            raise ValueError(f"No entry of the history has numbers for both {self.x!r} and {self.y!r}.")
        grow, ax = ax is None, get_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        small = is_narrow(ax)
        alone = np.count_nonzero(np.isfinite(values)) == 1
        (self.line_,) = ax.plot(
            at, values, color=_LINE, linewidth=1.0 if small else 1.5, marker="o" if alone else "", zorder=4
        )
        self.floor_ = self._draw_floor(at)
        self._frame(at, values)
        self.alarms_ = self._draw_alarms(at)
        legend_above(ax, self._entries, grow=grow)
        return self

    # ---------------------------------------------------------------- parts of the picture

    def _column(self, key: str) -> Any:
        values = [point.get(key) for point in self.history]
        return np.array([np.nan if value is None else float(value) for value in values])

    def _draw_floor(self, at: Any) -> Any:
        floor = self._column("noise_floor")
        if self.y != "disparity" or not np.isfinite(floor).any():
            return None
        return self.ax_.fill_between(at, 0.0, floor, color=THEME.target, linewidth=0, zorder=1)

    def _draw_alarms(self, at: Any) -> Any:
        """Put a triangle on the upper edge, where no line runs, and a thin line below it."""
        found = at[[bool(point.get("alarm")) for point in self.history]]
        found = found[np.isfinite(found)]
        if not found.size:
            return None
        upright = self.ax_.get_xaxis_transform()
        self.ax_.vlines(
            found, 0, 1, transform=upright, colors=_ALARM, linewidth=0.7, linestyles=(0, (2.0, 2.0)), zorder=3
        )
        (signs,) = self.ax_.plot(
            found,
            np.full(found.size, 0.97),  # below the legend
            transform=upright,
            color=_ALARM,
            linestyle="none",
            marker="v",
            markersize=4.0 if is_narrow(self.ax_) else 6.0,
            clip_on=False,
            zorder=5,
        )
        return signs

    def _frame(self, at: Any, values: Any) -> None:
        ax = self.ax_
        dress(ax, xlabel=_X[self.x], ylabel=_Y[self.y])
        ax.locator_params(axis="x", nbins=4 if is_narrow(ax) else 7, integer=True)
        ax.locator_params(axis="y", nbins=5)
        first, last = np.nanmin(at), np.nanmax(at)
        if last > first:
            ax.set_xlim(first, last)
        ax.margins(y=0.08)
        if self.y == "agreement":
            ax.set_ylim(top=1.0 + 0.02 * (1.0 - min(1.0, float(np.nanmin(values)))))
            ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        elif np.nanmin(values) >= 0:
            ax.set_ylim(bottom=0.0)
        if self.x == "rows":
            ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")

    def _entries(self, longest: int) -> list[tuple[Any, str]]:
        """Return what the legend says."""
        words = ("Noise floor: chance alone", "Noise floor")
        entries = [(self.line_, _Y[self.y])]
        if self.floor_ is not None:
            entries.append((self.floor_, words[0] if longest >= len(words[0]) else words[1]))
        if self.alarms_ is not None:
            entries.append((self.alarms_, "Alarm"))
        return entries
