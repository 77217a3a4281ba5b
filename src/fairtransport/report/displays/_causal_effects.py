"""Display of a causal graph with the effects of its paths on a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from fairtransport.report.displays._axes import THEME
from fairtransport.report.displays._base import Display

if TYPE_CHECKING:
    from fairtransport.causal import CounterfactualAudit, GroupEffects

__all__ = ["CausalEffectsDisplay"]

_SCORE = "score"
_MOST_WIDTH = 7.0  # points, of the edge with the largest effect


class CausalEffectsDisplay(Display):
    """A causal graph, with the mean effect on the score of the paths that begin with each edge of the sensitive column.

    Use `from_effects` to create a display.

    Parameters
    ----------
    effects : CounterfactualAudit
        Result of `fairtransport.causal.audit_counterfactual`.
    group : group
        Whose effects are drawn.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the display.
    figure_ : matplotlib.figure.Figure
        Figure that contains the axes.
    positions_ : dict of str to (float, float)
        Where each node is drawn.

    See Also
    --------
    fairtransport.causal.CounterfactualAudit.plot : Draws this display.

    Notes
    -----
    Edges from the sensitive column are as wide as their effects are large, with the share of the difference between
    the groups' mean scores in parentheses; the dashed one is the direct effect. Thin edges pass effects on. Columns
    that the sensitive one does not affect are not drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> group = np.arange(200) % 2
    >>> table = {"group": group, "hours": 35 + 4 * group + np.sin(np.arange(200))}
    >>> transport = ft.causal.CounterfactualTransport({"group": ["hours"]}, sensitive="group")
    >>> effects = ft.audit_counterfactual(lambda rows: rows["hours"], table, transport, n_bootstrap=0)
    >>> sorted(ft.report.CausalEffectsDisplay.from_effects(effects).positions_)
    ['group', 'hours', 'score']
    """

    positions_: dict[str, tuple[float, float]]

    def __init__(self, effects: CounterfactualAudit, *, group: Any = None) -> None:
        self.effects = effects
        self.group = group

    @classmethod
    def from_effects(cls, effects: CounterfactualAudit, *, group: Any = None, ax: Any = None) -> Self:
        """Draw the effects of an audit along paths.

        Parameters
        ----------
        effects : CounterfactualAudit
            Result of `fairtransport.causal.audit_counterfactual`.
        group : group, optional
            The largest one by default.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; if None, a new figure is created.

        Returns
        -------
        CausalEffectsDisplay
        """
        return cls(effects, group=group).plot(ax)

    def _check_and_size(self) -> tuple[float, float]:
        self._of_group()
        n_mediators = len(self._of_group().paths)
        return (7.6, 1.9 + 0.62 * max(n_mediators, 2))

    def _of_group(self) -> GroupEffects:
        if self.group is None:
            return max(self.effects.groups, key=lambda one: one.rows)
        found = [one for one in self.effects.groups if one.group == self.group]
        if not found:
            raise ValueError("group must be one of the groups of the audit, other than the one that people move to.")
        return found[0]

    def _draw(self, *, new_figure: bool) -> None:  # noqa: ARG002 - of the base class
        ax, audit, effects = self.ax_, self.effects, self._of_group()
        ax.set_axis_off()
        through = {one.name.removeprefix("through "): one.mean for one in effects.paths if one.name != "direct"}
        direct = effects.effects["direct"].mean
        mediators = [node for node in audit.graph.nodes if node in through]
        self.positions_ = {audit.sensitive: (0.0, 0.0), _SCORE: (2.0, 0.0)}
        middle = (len(mediators) - 1) / 2
        self.positions_ |= {node: (1.0, middle - index) for index, node in enumerate(mediators)}
        unit = max(abs(direct), *map(abs, through.values())) or 1.0
        for one, other in audit.graph.edges:  # what passes effects on
            if one in through and other in through:
                self._arrow(one, other, bend=0.55)
        for node, mean in through.items():
            self._arrow(node, _SCORE)
            self._arrow(audit.sensitive, node, mean=mean, unit=unit)
        top = middle + 1.15
        self._direct(top, direct, unit)
        for node, (x, y) in self.positions_.items():
            strong = node in {audit.sensitive, _SCORE}
            ax.text(
                x, y, node, ha="center", va="center", fontweight="bold" if strong else "normal", zorder=4,
                bbox={
                    "boxstyle": "round,pad=0.4", "facecolor": THEME.paper,
                    "edgecolor": THEME.ink if strong else THEME.quiet,
                },
            )  # fmt: skip
        ax.set(xlim=(-0.3, 2.3), ylim=(-middle - 0.8, top + 0.35))
        ax.set_title(
            f"If {effects.group} were {audit.to}: mean score {effects.effects['total'].mean:+.3f}, under this graph",
            loc="left",
            fontsize="medium",
        )

    def _arrow(self, one: str, other: str, *, mean: float | None = None, unit: float = 1.0, bend: float = 0.0) -> None:
        (x0, y0), (x1, y1) = self.positions_[one], self.positions_[other]
        width = 0.8 if mean is None else 0.8 + (_MOST_WIDTH - 0.8) * abs(mean) / unit
        self.ax_.annotate(
            "", xy=(x1 - 0.24 * (x1 > x0), y1), xytext=(x0 + (0.24 if x0 else 0.14) * (x1 > x0), y0),
            zorder=2 if mean is None else 3, arrowprops=_arrow_style(width, effect=mean is not None, bend=bend),
        )  # fmt: skip
        if mean is not None:
            share = 0.62
            x, y = x0 + 0.14 + share * (x1 - 0.24 - x0 - 0.14), y0 + share * (y1 - y0)
            self._label(x, y, mean)

    def _direct(self, top: float, mean: float, unit: float) -> None:
        """Draw the direct effect, over the mediators."""
        width = 0.8 + (_MOST_WIDTH - 0.8) * abs(mean) / unit
        line = {"color": THEME.ink, "linewidth": width, "linestyle": "--", "zorder": 3}
        self.ax_.plot([0.0, 0.0, 2.0, 2.0], [0.35, top, top, 0.7], **line)
        self.ax_.annotate("", xy=(2.0, 0.3), xytext=(2.0, 0.7), arrowprops=_arrow_style(width, effect=True))
        self._label(1.0, top, mean, "directly ")

    def _label(self, x: float, y: float, mean: float, before: str = "") -> None:
        self.ax_.text(
            x, y, f"{before}{mean:+.3f}{self._share(mean)}", ha="center", va="center", zorder=5, fontsize="small",
            bbox={"boxstyle": "round,pad=0.15", "facecolor": THEME.paper, "edgecolor": "none"},
        )  # fmt: skip

    def _share(self, mean: float) -> str:
        """Return the share of the difference between the groups' means, where there is one to speak of."""
        gap = self._of_group().gap
        return f" ({mean / gap:.0%})".replace("-0%", "0%") if abs(gap) >= 0.001 * max(1.0, abs(mean)) else ""


def _arrow_style(width: float, *, effect: bool, bend: float = 0.0) -> dict[str, Any]:
    return {
        "arrowstyle": "-|>", "color": THEME.ink if effect else THEME.quiet, "alpha": 1.0 if effect else 0.45,
        "linewidth": width, "shrinkA": 0 if not bend else 8, "shrinkB": 0 if not bend else 8,
        "mutation_scale": 9 + 1.5 * width, "connectionstyle": f"arc3,rad={bend}",
    }  # fmt: skip
