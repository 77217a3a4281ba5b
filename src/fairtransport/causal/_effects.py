"""Results of an audit along the paths of a causal graph."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtransport._extras import make_frame, render
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from fairtransport.causal._graph import CausalGraph

__all__ = ["CounterfactualAudit", "GroupEffects", "PathEffect"]

_SMALLEST = 0.0005  # range of the total effect over orders of categories that is worth a line


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
    floors : mapping of str to float
        Noise floor of each figure: the mean of its absolute value in tables whose groups were shuffled, 0 for a direct
        effect; NaN without permutations.
    order_range : (float, float)
        Lowest and highest mean change with other orders of categories and other draws of the ranks of people with
        equal values, which the data do not determine; NaN where none were tried.
    """

    name: str
    mean: float
    distance: float
    rank_distance: float
    rate: float | None
    individual: float
    intervals: Mapping[str, tuple[float, float]]
    floors: Mapping[str, float]
    order_range: tuple[float, float]


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
    n_bootstrap, n_permutations, n_orders : int
        How often everything was estimated again: for intervals, noise floors, and orders of categories.
    """

    graph: CausalGraph
    sensitive: str
    to: Any
    groups: tuple[GroupEffects, ...]
    rows: int
    threshold: float | None
    confidence: float
    n_bootstrap: int
    n_permutations: int
    n_orders: int

    def to_frame(self, library: str | None = None) -> Any:
        """Return all figures as a data frame of pandas (or of ``library``), one row each, with their intervals."""
        rows = []
        for one in self.groups:
            for effect in one.effects.values():
                for figure in effect.intervals:
                    low, high = effect.intervals[figure]
                    row = {"group": one.group, "to": self.to, "effect": effect.name, "figure": figure}
                    ends = {"low": low, "high": high, "by_chance": effect.floors[figure]}
                    rows.append({**row, "value": getattr(effect, figure), **ends})
        return make_frame(rows, library)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values that JSON can represent; NaN is None."""
        shown = {
            name: getattr(self, name)
            for name in ("sensitive", "to", "rows", "threshold", "confidence", "n_bootstrap", "n_permutations")
        }
        return _plain(
            {
                "assumption": "under this graph",
                "graph": {"nodes": self.graph.nodes, "edges": self.graph.edges},
                **shown,
                "n_orders": self.n_orders,
                "groups": [
                    {**asdict(one), "interaction": one.interaction, "not_caused": one.not_caused} for one in self.groups
                ],
            }
        )

    def to_json(self, path: Any = None, *, indent: int | None = None) -> Any:
        """Write `to_dict` as JSON to a file, or return it as text.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced atomically.
        indent : int, optional
            As in `json.dumps`.

        Returns
        -------
        Path or str
        """
        text = json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)
        return text if path is None else write_atomically(Path(path), f"{text}\n".encode())

    def plot(self, *, group: Any = None, ax: Any = None) -> Any:
        """Draw the graph with the effect of each path, for one group (the largest by default)."""
        return render("plot_effects", self, group=group, ax=ax)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(audit: CounterfactualAudit) -> Iterator[str]:
    yield f"Effects of {audit.sensitive} on the score, under this graph, if everyone were {audit.to}"
    for one in audit.groups:
        yield ""
        yield f"{one.group}: {one.rows:,} rows, mean score {_signed(one.gap)} in {audit.to}"
        width = max(len(name) for name in [*one.effects, "no effect of the group"])
        columns = [(f"{audit.confidence:.0%} interval", audit.n_bootstrap > 1), ("by chance", audit.n_permutations > 0)]
        shown = [f"{name:>{size}}" for (name, present), size in zip(columns, (18, 9), strict=True) if present]
        if shown:
            yield "  ".join(["", " " * width, " effect", *shown])
        for name, effect in one.effects.items():
            cells = [f"{name:<{width}}", _signed(effect.mean)]
            if audit.n_bootstrap > 1:
                low, high = effect.intervals["mean"]
                cells.append(f"{_signed(low)} to {_signed(high)}")
            if audit.n_permutations:
                cells.append(f"{effect.floors['mean']:9.4f}")
            yield "  " + "  ".join(cells)
        if len(one.paths) > 1:
            yield f"  {'interaction of paths':<{width}}  {_signed(one.interaction)}"
        yield f"  {'no effect of the group':<{width}}  {_signed(one.not_caused)}"
        low, high = one.effects["total"].order_range
        if high - low >= _SMALLEST:
            yield f"  With categories in other orders the total is between {_signed(low)} and {_signed(high)}."
        if one.support < 0.99:
            yield f"  {1 - one.support:.0%} of these rows have counterfactuals outside what was seen."


def _signed(value: float) -> str:
    return f"{value:+.4f}"


def _plain(value: Any) -> Any:
    """Return a value that JSON can represent."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return None
    return plain if plain is None or isinstance(plain, (bool, int, float, str)) else str(plain)
