"""Results of an audit along the paths of a causal graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtransport._extras import make_frame, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairtransport.causal._graph import CausalGraph

__all__ = ["CounterfactualAudit", "GroupEffects", "PathEffect"]


@dataclass(frozen=True)
class PathEffect:
    """How scores of a group would change along some paths.

    Attributes
    ----------
    name : str
        ``total``, ``direct``, ``through`` a mediator, ``unfair paths``, or a name of ``paths``.
    mean : float
        Mean change of the score.
    distance : float
        Wasserstein-1 distance between the group's scores as they are and as they would be.
    rank_distance : float
        The same of ranks among all people's scores.
    rate : float or None
        Change of the share of scores above the threshold.
    individual : float
        Mean absolute change of a person's score; changes in both directions do not cancel.
    intervals : mapping of str to (float, float)
        Of each figure; NaN without bootstrap samples.
    """

    name: str
    mean: float
    distance: float
    rank_distance: float
    rate: float | None
    individual: float
    intervals: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class GroupEffects:
    """The effects of the group on its scores.

    Attributes
    ----------
    group : group
    rows : int
    gap : float
        Mean score of the group that people are moved to, minus that of this group.
    gap_interval : (float, float)
    effects : mapping of str to PathEffect
    support : float
        Share of rows whose counterfactual lies within what was seen.
    """

    group: Any
    rows: int
    gap: float
    gap_interval: tuple[float, float]
    effects: Mapping[str, PathEffect]
    support: float

    @property
    def interaction(self) -> float:
        """The part of the total effect that is not the sum of the effects of single paths; 0 for linear models."""
        return self.effects["total"].mean - sum(effect.mean for effect in self.paths)

    @property
    def not_caused(self) -> float:
        """The part of the gap that is no effect of the group under this graph."""
        return self.gap - self.effects["total"].mean

    @property
    def paths(self) -> list[PathEffect]:
        """The direct effect, and those through each mediator."""
        return [one for name, one in self.effects.items() if name == "direct" or name.startswith("through ")]


@dataclass(frozen=True)
class CounterfactualAudit:
    """The difference of scores between groups, split into effects of paths; everything holds under the graph.

    Attributes
    ----------
    graph : CausalGraph
    sensitive : str
    to : group
        The group that everyone was moved to.
    groups : tuple of GroupEffects
        Of each other group.
    rows : int
    threshold : float or None
    confidence : float
    n_bootstrap : int
    """

    graph: CausalGraph
    sensitive: str
    to: Any
    groups: tuple[GroupEffects, ...]
    rows: int
    threshold: float | None
    confidence: float
    n_bootstrap: int

    def to_frame(self, library: str | None = None) -> Any:
        """Return all figures as a data frame of pandas (or of ``library``), one row each, with their intervals."""
        rows = []
        for one in self.groups:
            for effect in one.effects.values():
                for figure in ("mean", "distance", "rank_distance", "rate", "individual"):
                    value = getattr(effect, figure)
                    if value is not None:
                        low, high = effect.intervals[figure]
                        ends = {"low": low, "high": high}
                        row = {"group": one.group, "to": self.to, "effect": effect.name, "figure": figure}
                        rows.append({**row, "value": value, **ends})
        return make_frame(rows, library)

    def plot(self, *, group: Any = None, ax: Any = None) -> Any:
        """Draw the graph with the effect of each path, for one group (the largest by default)."""
        return render("plot_effects", self, group=group, ax=ax)

    def __str__(self) -> str:
        lines = [f"Effects of {self.sensitive} on the score, under this graph, if everyone were {self.to}"]
        for one in self.groups:
            lines += ["", f"{one.group}: {one.rows:,} rows, mean score {_signed(one.gap)} in {self.to}"]
            width = max(len(name) for name in [*one.effects, "no effect of the group"])
            for name, effect in one.effects.items():
                lines.append(f"  {name:<{width}}  {_signed(effect.mean)}{_interval(effect.intervals['mean'])}")
            if len(one.paths) > 1:
                lines.append(f"  {'interaction of paths':<{width}}  {_signed(one.interaction)}")
            lines.append(f"  {'no effect of the group':<{width}}  {_signed(one.not_caused)}")
            if one.support < 0.99:
                lines.append(f"  {1 - one.support:.0%} of these rows have counterfactuals outside what was seen.")
        return "\n".join(lines)


def _signed(value: float) -> str:
    return f"{value:+.4f}"


def _interval(ends: tuple[float, float]) -> str:
    return "" if ends[0] != ends[0] else f"  ({ends[0]:+.4f} to {ends[1]:+.4f})"
