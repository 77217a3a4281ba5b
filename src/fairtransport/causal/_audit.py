"""Audits along the paths of a causal graph: effects, their intervals, and their sensitivity to edges."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from fairtransport._arrays import Floats, Ints
from fairtransport._extras import make_frame, render
from fairtransport._progress import progress
from fairtransport._sklearn import model_scores, take_rows
from fairtransport._validation import check_count, check_real
from fairtransport.auditing.options import Inference, check_inference
from fairtransport.auditing.result import plain_values
from fairtransport.causal._graph import CausalGraph, Edge, as_graph
from fairtransport.causal.conditional_distributions import Table
from fairtransport.groups import MIN_SHOWN_ROWS
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from fairtransport.causal._transport import CounterfactualTransport

# Everything is estimated again for each replicate, so there are fewer than in an audit of scores.
_INFERENCE = Inference(n_bootstrap=50, n_permutations=20, random_state=0)

# Results of an audit along the paths of a causal graph.

_SMALLEST = 0.0005  # range of the total effect over orders of categories that is worth a line


@dataclass(frozen=True)
class PathEffect:
    """The change of a group's scores along some paths.

    Attributes
    ----------
    name : str
        ``total``, ``direct``, ``through`` a mediator, ``unfair paths``, or a name of ``paths``.
    mean, individual : float
        Mean change of the score, and mean absolute change, in which both directions do not cancel.
    distance, rank_distance : float
        Wasserstein-1 distance between the group's scores as they are and as they would be; also of their ranks among
        all people's scores.
    rate : float or None
        Change of the share of scores above the threshold.
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
    gap, gap_interval : float, (float, float)
        Mean score of the group that people are moved to, minus that of this group.
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
        Of each other group of at least 5 rows.
    rows, threshold, confidence : int, float or None, float
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
        content = {"assumption": "under this graph", **vars(self)}
        content["graph"] = {"nodes": self.graph.nodes, "edges": self.graph.edges}
        content["groups"] = [
            {**vars(one), "interaction": one.interaction, "not_caused": one.not_caused} for one in content.pop("groups")
        ]
        values: dict[str, Any] = json.loads(json.dumps(plain_values(content), default=str))
        return values

    def to_json(self, path: Any = None, *, indent: int | None = None) -> Any:
        """Return `to_dict` as JSON text, or write it to a file, which is replaced atomically, and return its path."""
        text = json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)
        return text if path is None else write_atomically(Path(path), f"{text}\n".encode())

    def plot(self, *, group: Any = None, ax: Any = None) -> Any:
        """Draw the graph with the effect of each path, for one group (the largest by default)."""
        return render("CausalEffectsDisplay.from_effects", self, group=group, ax=ax)

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


def audit_counterfactual(
    model: Any,
    table: Any,
    transport: CounterfactualTransport,
    *,
    to: Any = None,
    paths: Mapping[str, Iterable[Edge]] | None = None,
    threshold: float | None = 0.5,
    inference: Inference | None = None,
    n_orders: int = 5,
    verbose: bool = False,
) -> CounterfactualAudit:
    """Split the difference of scores between groups into the effects of paths, under a causal graph.

    Parameters
    ----------
    model : callable, classifier or regressor
        A function from a table to scores; or a model that takes the columns ``feature_names_in_`` of a data frame, or
        has ``score_rows``, as `fairtransport.tabular.TableModel` has.
    table : table
        Of the kind that the model takes, with the columns of the graph.
    transport : CounterfactualTransport
        If it is not fitted, it is fitted to ``table``. One that was fitted to other rows is used as it is: intervals
        are then about the rows of ``table`` only, and orders of categories are not tried.
    to : group, optional
        The group that everyone is moved to; the largest one by default.
    paths : mapping of str to edges, optional
        Further sets of edges to measure, by name.
    threshold : float or None, default=0.5
        Scores above it are positive decisions; None for no decisions.
    inference : fairtransport.auditing.Inference, optional
        By default ``Inference(n_bootstrap=50, n_permutations=20, random_state=0)``. For each of ``n_bootstrap`` samples
        of rows everything is estimated again, for intervals. In ``n_permutations`` tables the groups are shuffled, so
        that the group has no effect through any mediator: what they show is the noise floor of each figure.
    n_orders : int, default=5
        Random orders of the values of categories, and draws of the ranks of people with equal values, with each of
        which effects are estimated again: neither is known.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    CounterfactualAudit
        ``print`` shows it, ``to_frame`` returns it as a table, ``plot`` draws the graph with its effects.

    Notes
    -----
    For each group, the *total* effect is the mean of s(x*) - s(x), where x* is what x would be in the group ``to``. It
    is split by the first edge from the sensitive column: the *direct* effect moves only that column itself, the effect
    *through* a mediator moves it, and what follows from it, along the edge into it. For a linear score of a linear
    model these add up to the total; otherwise the rest is their interaction. What is left of the difference between
    the groups' means is not an effect of the group under this graph: people differ in causes that it does not affect.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.auditing import Inference
    >>> from fairtransport.causal import CounterfactualTransport, audit_counterfactual
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 2000)
    >>> table = {"sex": sex, "hours": rng.normal(35, 5, 2000) + 4 * (sex == "M")}
    >>> transport = CounterfactualTransport({"sex": ["hours"]}, sensitive="sex")
    >>> quick = Inference(n_bootstrap=0, n_permutations=0)
    >>> audit = audit_counterfactual(lambda rows: rows["hours"] / 100, table, transport, to="M", inference=quick)
    >>> round(audit.groups[0].effects["through hours"].mean, 2)
    0.04
    """
    limit = None if threshold is None else check_real(threshold, name="threshold", least=-np.inf)
    chosen = check_inference(inference, default=_INFERENCE)
    repeats = {
        "n_bootstrap": chosen.n_bootstrap,
        "n_permutations": chosen.n_permutations,
        "n_orders": check_count(n_orders, name="n_orders", least=0),
    }
    is_fitted = hasattr(transport, "distributions_")
    if not is_fitted:
        transport = clone(transport).fit(table)
    score = _score_function(model, transport.outcome)
    sets = _edge_sets(transport, paths)
    target = transport.groups_[np.bincount(_group_codes(transport, table)).argmax()] if to is None else to
    measure = partial(_measure, score, to=target, sets=sets, threshold=limit)
    found, n_rows, rng = measure(table, transport), Table(table).n_rows, np.random.default_rng(chosen.random_state)
    # Of samples of rows, of shuffled groups, and of other orders of categories.
    repeated: dict[str, list[dict[Any, _Measured]]] = {name: [] for name in repeats}
    with progress("Effects", sum(repeats.values()), show=verbose) as bar:
        for number, name in enumerate([name for name, count in repeats.items() for _ in range(count)], 1):
            if name == "n_bootstrap":
                rows = take_rows(table, np.sort(rng.integers(0, n_rows, n_rows)))
                measured = measure(rows, transport if is_fitted else clone(transport).fit(rows))
            elif name == "n_permutations":
                groups = np.asarray(Table(table)[transport.sensitive])[rng.permutation(n_rows)]
                rows = Table(table).replaced({transport.sensitive: groups})
                measured = measure(rows, clone(transport).fit(rows), direct=False)
            else:
                other = transport if is_fitted else _reordered(transport, table, rng)
                measured = measure(table, other, draw=len(repeated[name]) + 1)
            repeated[name].append(measured)
            bar.advance(number)
    return CounterfactualAudit(
        graph=transport.graph_,
        sensitive=transport.sensitive,
        to=target,
        groups=tuple(
            effects
            for group, one in found.items()
            if (effects := _effects_of(group, one, repeated, chosen.confidence)).rows >= MIN_SHOWN_ROWS
        ),
        rows=n_rows,
        threshold=limit,
        confidence=chosen.confidence,
        **repeats,
    )


def _reordered(transport: CounterfactualTransport, table: Any, rng: np.random.Generator) -> CounterfactualTransport:
    """Return the transport with another order of the values of categories; the same one where there are none."""
    moved = transport.graph_.descendants(transport.sensitive, except_for=transport.resolving)
    columns = [transport.columns_[node] for node in moved if node != transport.outcome]
    free = {one.name: one.levels for one in columns if one.levels is not None and not one.ordered}
    if not any(len(levels) > 2 for levels in free.values()):
        return transport
    orders = {name: [levels[index] for index in rng.permutation(len(levels))] for name, levels in free.items()}
    fitted: CounterfactualTransport = clone(transport).set_params(orders=orders).fit(table)
    return fitted


class _Measured(NamedTuple):
    """Figures of one group: of each set of edges, the observed gap, and the share of rows within support."""

    n_rows: int
    gap: float
    figures: dict[str, dict[str, float]]
    support: float


def _measure(
    score: Callable[[Any], Floats],
    table: Any,
    transport: CounterfactualTransport,
    *,
    to: Any,
    sets: dict[str, frozenset[Edge]],
    threshold: float | None,
    direct: bool = True,
    draw: int = 0,
) -> dict[Any, _Measured]:
    codes = _group_codes(transport, table)
    target = transport.groups_.index(to)
    before = score(table)
    inside = transport.support(table, to=to, edges=transport.graph_.edges)
    order = np.argsort(before, kind="stable")
    # Ranks among all people's scores, as they are; mid-ranks for ties.
    ranked: Any = partial(np.interp, xp=before[order], fp=pooled_ranks(before)[order])
    moved = {}
    for name, edges in sets.items():
        itself = (name in {"total", "direct"} or None) if direct else False
        moved[name] = score(transport.transform(table, to=to, edges=edges, direct=itself, draw=draw))
    measured = {}
    for code, group in enumerate(transport.groups_):
        rows = codes == code
        if code == target or not rows.any():
            continue
        figures = {name: _figures(before[rows], after[rows], ranked, threshold) for name, after in moved.items()}
        gap = float(before[codes == target].mean() - before[rows].mean())
        measured[group] = _Measured(int(rows.sum()), gap, figures, float(inside[rows].mean()))
    return measured


def _figures(
    before: Floats, after: Floats, ranked: Callable[[Floats], Floats], threshold: float | None
) -> dict[str, float]:
    figures = {
        "mean": float((after - before).mean()),
        "distance": float(np.abs(np.sort(after) - np.sort(before)).mean()),
        "rank_distance": float(np.abs(np.sort(ranked(after)) - np.sort(ranked(before))).mean()),
        "individual": float(np.abs(after - before).mean()),
    }
    if threshold is not None:
        figures["rate"] = float((after > threshold).mean() - (before > threshold).mean())
    return figures


def _effects_of(
    group: Any, found: _Measured, repeated: dict[str, list[dict[Any, _Measured]]], confidence: float
) -> GroupEffects:
    levels = ((1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0)

    def interval(values: list[float]) -> tuple[float, float]:
        low, high = np.quantile(values, levels) if len(values) > 1 else (np.nan, np.nan)
        return float(low), float(high)

    drawn, without, other = ([one[group] for one in many if group in one] for many in repeated.values())
    effects = {}
    for name, figures in found.figures.items():
        means = [figures["mean"], *(one.figures[name]["mean"] for one in other)]
        values: dict[str, Any] = {"rate": None, **figures}
        effects[name] = PathEffect(
            name,
            intervals={figure: interval([one.figures[name][figure] for one in drawn]) for figure in figures},
            floors={
                figure: float(np.mean([abs(one.figures[name][figure]) for one in without])) if without else np.nan
                for figure in figures
            },
            order_range=(min(means), max(means)) if other else (np.nan, np.nan),
            **values,
        )
    gap = interval([one.gap for one in drawn])
    return GroupEffects(group, found.n_rows, found.gap, gap, effects, found.support)


def _edge_sets(
    transport: CounterfactualTransport, paths: Mapping[str, Iterable[Edge]] | None
) -> dict[str, frozenset[Edge]]:
    """Return the edges that are moved for each effect, by name."""
    graph, sensitive, outcome = transport.graph_, transport.sensitive, transport.outcome
    later = frozenset(edge for edge in graph.edges if edge[0] != sensitive)
    sets = {"total": frozenset(graph.edges), "direct": frozenset()}
    for child in graph.children(sensitive):
        if child != outcome:
            sets[f"through {child}"] = later | {(sensitive, child)}
    if transport.unfair_edges is not None:
        sets["unfair paths"] = frozenset((one, other) for one, other in transport.unfair_edges)
    for name, edges in (paths or {}).items():
        chosen = frozenset((one, other) for one, other in edges)
        graph.check_edges(chosen, name=f"paths[{name!r}]")
        sets[name] = chosen
    return sets


def _group_codes(transport: CounterfactualTransport, table: Any) -> Ints:
    column = transport.columns_[transport.sensitive]
    return column.encode(Table(table)[transport.sensitive]).astype(np.int64)


def _score_function(model: Any, outcome: str | None) -> Callable[[Any], Floats]:
    by_name = hasattr(model, "score_rows") and hasattr(model, "feature_names_in_")
    predicts = hasattr(model, "predict_proba") or hasattr(model, "predict")
    if not (by_name or predicts or callable(model)):
        raise TypeError(f"model must be a model or a function from a table to scores; got {type(model).__name__}.")

    def score(rows: Any) -> Floats:
        if by_name:
            found = model.score_rows(rows).scores
        else:
            found = model_scores(model, _features(model, rows, outcome)) if predicts else model(rows)
        scores = np.asarray(found, dtype=np.float64)
        n_without = int(np.sum(~np.isfinite(scores)))
        if n_without:
            raise ValueError(f"The model has no score for {n_without} rows; leave them out first.")
        return scores

    return score


def _features(model: Any, rows: Any, outcome: str | None) -> Any:
    if isinstance(rows, Mapping):
        raise TypeError("A model of scikit-learn takes a data frame; give one, or a function from a table to scores.")
    known = getattr(model, "feature_names_in_", None)
    names = Table(rows).names if known is None else list(known)
    return rows[[name for name in names if name != outcome]]


# How effects change with one edge of the graph more or less.

_QUICK: dict[str, Any] = {"inference": Inference(n_bootstrap=0, n_permutations=0), "n_orders": 0}


@dataclass(frozen=True)
class GraphVariant:
    """The effects under a graph with one edge ``"added"`` or ``"removed"``; None where there is no answer."""

    edge: Edge
    change: str
    audit: CounterfactualAudit | None


@dataclass(frozen=True)
class EdgeSensitivity:
    """Effects under a graph as it is, ``audit``, and under all graphs that differ by one edge, ``variants``."""

    audit: CounterfactualAudit
    variants: tuple[GraphVariant, ...]

    def range(self, effect: str = "total", *, group: Any = None) -> tuple[float, float]:
        """Return the lowest and the highest mean effect, of the largest group by default."""
        means = [self._mean(one, effect, group) for one in (self.audit, *(one.audit for one in self.variants))]
        known = [mean for mean in means if mean is not None]
        return min(known), max(known)

    def to_frame(self, library: str | None = None) -> Any:
        """Return one row for each graph, group and effect, with the mean effect, as a data frame."""
        graphs = [("", "as it is", self.audit)]
        graphs += [(f"{one.edge[0]} -> {one.edge[1]}", one.change, one.audit) for one in self.variants if one.audit]
        rows = [
            {"edge": edge, "change": change, "group": group.group, "effect": name, "mean": effect.mean}
            for edge, change, audit in graphs
            for group in audit.groups
            for name, effect in group.effects.items()
        ]
        return make_frame(rows, library)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        base = self._mean(self.audit, "total", None) or 0.0
        yield f"Total effect of {self.audit.sensitive} if everyone were {self.audit.to}, by graph"
        yield f"  {'as it is':<44}  {base:+.4f}"
        known = [(one, self._mean(one.audit, "total", None)) for one in self.variants]
        for one, mean in sorted(known, key=lambda pair: -abs((base if pair[1] is None else pair[1]) - base)):
            name = f"{'with' if one.change == 'added' else 'without'} {one.edge[0]} -> {one.edge[1]}"
            yield f"  {name:<44}  {'no answer' if mean is None else f'{mean:+.4f}'}"

    def _mean(self, audit: CounterfactualAudit | None, effect: str, group: Any) -> float | None:
        if audit is None:
            return None
        largest = max(self.audit.groups, key=lambda one: one.rows).group
        own = next(one for one in audit.groups if one.group == (largest if group is None else group))
        return own.effects[effect].mean if effect in own.effects else None


def edge_sensitivity(
    model: Any,
    table: Any,
    transport: CounterfactualTransport,
    *,
    to: Any = None,
    edges: Iterable[Edge] | None = None,
    threshold: float | None = 0.5,
    verbose: bool = False,
) -> EdgeSensitivity:
    """Measure effects again under every graph that has one edge more or less.

    Parameters
    ----------
    model, table, to, threshold, verbose
        As for `audit_counterfactual`.
    transport : CounterfactualTransport
        It is cloned and fitted to ``table`` with each graph.
    edges : iterable of (str, str), optional
        Edges to remove where the graph has them, and to add where it does not. By default all edges, and all pairs of
        columns without one in the order of the graph, except into the sensitive column.

    Returns
    -------
    EdgeSensitivity
        ``print`` shows the total effect under each graph, the most different first; ``to_frame`` has all effects.

    Notes
    -----
    The graph is an assumption, which data cannot verify, and intervals do not include the uncertainty about it. An edge
    that is added is unfair only if all edges are, that is, with ``unfair_edges=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.causal import CounterfactualTransport, edge_sensitivity
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 1000)
    >>> age = rng.normal(40, 5, 1000) + 2 * sex
    >>> table = {"sex": sex, "age": age, "hours": age + 3 * sex + rng.normal(size=1000)}
    >>> transport = CounterfactualTransport([("sex", "hours"), ("age", "hours")], sensitive="sex", quantiles="linear")
    >>> found = edge_sensitivity(lambda rows: rows["hours"], table, transport, to=1, threshold=None)
    >>> [round(end) for end in found.range()]
    [3, 6]
    """
    graph = as_graph(transport.graph)
    whole = clone(transport).set_params(graph=graph)
    base = audit_counterfactual(model, table, whole.fit(table), to=to, threshold=threshold, **_QUICK)
    chosen = [*edges] if edges is not None else [*graph.edges, *_absent_edges(graph, whole)]
    variants = []
    with progress("Graphs", len(chosen), show=verbose) as bar:
        for edge in chosen:
            variants.append(_variant(model, table, whole, edge, to=base.to, threshold=threshold))
            bar.advance(len(variants))
    return EdgeSensitivity(base, tuple(variants))


def _variant(model: Any, table: Any, transport: CounterfactualTransport, edge: Edge, **options: Any) -> GraphVariant:
    graph: CausalGraph = transport.graph
    removed = edge in graph.edges
    edges = [one for one in graph.edges if one != edge] if removed else [*graph.edges, edge]
    changed = clone(transport).set_params(graph=CausalGraph.from_edges(edges, graph.nodes))
    if transport.unfair_edges is not None:
        changed.set_params(unfair_edges=[tuple(one) for one in transport.unfair_edges if tuple(one) in edges])
    audit = None
    try:
        changed.fit(table)
    except ValueError:  # a recanting witness, for instance, or no effect of the group at all
        pass
    else:
        audit = audit_counterfactual(model, table, changed, **options, **_QUICK)
    return GraphVariant(edge, "removed" if removed else "added", audit)


def _absent_edges(graph: CausalGraph, transport: CounterfactualTransport) -> list[Edge]:
    """Return the pairs of nodes without an edge, in the order of the graph; the sensitive column has no causes."""
    others = [node for node in graph.nodes if node not in graph.descendants(transport.sensitive)]
    others.sort(key=lambda node: node != transport.sensitive)
    order = [*others, *graph.descendants(transport.sensitive)]
    return [
        (one, other)
        for one, other in combinations(order, 2)
        if (one, other) not in graph.edges and other != transport.sensitive and one != transport.outcome
    ]
