"""Audits along paths: how much of a difference in scores flows through which causes, under a causal graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from fairtransport._progress import progress
from fairtransport._sklearn.estimator_calls import model_scores, take_rows
from fairtransport._validation import check_count, check_real
from fairtransport.causal._effects import CounterfactualAudit, GroupEffects, PathEffect
from fairtransport.causal._paths import moved_nodes
from fairtransport.causal.node_columns import Table
from fairtransport.metrics.ranks import pooled_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fairtransport.causal._graph import Edge
    from fairtransport.causal._transport import CounterfactualTransport

__all__ = ["audit_counterfactual"]


def audit_counterfactual(
    model: Any,
    table: Any,
    transport: CounterfactualTransport,
    *,
    to: Any = None,
    paths: Mapping[str, Iterable[Edge]] | None = None,
    threshold: float | None = 0.5,
    n_bootstrap: int = 50,
    n_permutations: int = 20,
    n_orders: int = 5,
    confidence: float = 0.95,
    random_state: int = 0,
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
    n_bootstrap : int, default=50
        Samples of rows for which everything is estimated again. 0 for no intervals.
    n_permutations : int, default=20
        Tables with the groups shuffled, in which the group has no effect through any mediator. What they show is the
        noise floor of each figure. 0 for none.
    n_orders : int, default=5
        Random orders of the values of categories, and draws of the ranks of people with equal values, with each of
        which effects are estimated again: neither is known. 0 for none.
    confidence : float, default=0.95
        Of the intervals.
    random_state : int, default=0
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
    >>> from fairtransport.causal import CounterfactualTransport, audit_counterfactual
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 2000)
    >>> hours = rng.normal(35, 5, 2000) + 4 * (sex == "M")
    >>> table = {"sex": sex, "hours": hours}
    >>> transport = CounterfactualTransport({"sex": ["hours"]}, sensitive="sex")
    >>> audit = audit_counterfactual(
    ...     lambda rows: rows["hours"] / 100, table, transport, to="M", n_bootstrap=0, n_permutations=0, n_orders=0
    ... )
    >>> round(audit.groups[0].effects["through hours"].mean, 2)
    0.04
    """
    limit = None if threshold is None else check_real(threshold, name="threshold", least=-np.inf)
    check_real(confidence, name="confidence", strict=True, most=0.9999)
    counts = {"n_bootstrap": n_bootstrap, "n_permutations": n_permutations, "n_orders": n_orders}
    repeats = {name: check_count(count, name=name, least=0) for name, count in counts.items()}
    is_fitted = hasattr(transport, "distributions_")
    if not is_fitted:
        transport = clone(transport).fit(table)
    score = _score_function(model, transport.outcome)
    sets = _edge_sets(transport, paths)
    target = _largest_group(transport, table) if to is None else to
    measure = partial(_measure, score, to=target, sets=sets, threshold=limit)
    found, n_rows, rng = measure(table, transport), Table(table).n_rows, np.random.default_rng(random_state)
    samples: list[dict[Any, _Measured]] = []
    floors: list[dict[Any, _Measured]] = []
    orders: list[dict[Any, _Measured]] = []
    with progress("Effects", sum(repeats.values()), show=verbose) as bar:
        for _ in range(repeats["n_bootstrap"]):
            rows = take_rows(table, np.sort(rng.integers(0, n_rows, n_rows)))
            samples.append(measure(rows, transport if is_fitted else clone(transport).fit(rows)))
            bar.advance(len(samples))
        for _ in range(repeats["n_permutations"]):
            groups = np.asarray(Table(table)[transport.sensitive])[rng.permutation(n_rows)]
            rows = Table(table).replaced({transport.sensitive: groups})
            floors.append(measure(rows, clone(transport).fit(rows), direct=False))
            bar.advance(len(samples) + len(floors))
        for draw in range(1, repeats["n_orders"] + 1):
            other = transport if is_fitted else _reordered(transport, table, rng)
            orders.append(measure(table, other, draw=draw))
            bar.advance(len(samples) + len(floors) + draw)
    return CounterfactualAudit(
        graph=transport.graph_,
        sensitive=transport.sensitive,
        to=target,
        groups=tuple(
            _effects_of(group, measured, _Repeats(samples, floors, orders), confidence)
            for group, measured in found.items()
        ),
        rows=n_rows,
        threshold=limit,
        confidence=confidence,
        **repeats,
    )


def _reordered(transport: CounterfactualTransport, table: Any, rng: np.random.Generator) -> CounterfactualTransport:
    """Return the transport with another order of the values of categories; the same one where there are none."""
    moved = moved_nodes(transport.graph_, transport.sensitive, transport.graph_.edges, tuple(transport.resolving))
    columns = [transport.columns_[node] for node in moved if node != transport.outcome]
    free = {one.name: one.levels for one in columns if one.levels is not None and not one.ordered}
    if not any(len(levels) > 2 for levels in free.values()):
        return transport
    orders = {name: [levels[index] for index in rng.permutation(len(levels))] for name, levels in free.items()}
    fitted: CounterfactualTransport = clone(transport).set_params(orders=orders).fit(table)
    return fitted


class _Repeats(NamedTuple):
    """Figures of samples of rows, of shuffled groups, and of other orders of categories; by group."""

    samples: list[dict[Any, _Measured]]
    floors: list[dict[Any, _Measured]]
    orders: list[dict[Any, _Measured]]


class _Measured:
    """Figures of one group: of each set of edges, the observed gap, and the share of rows within support."""

    def __init__(self, n_rows: int, gap: float, figures: dict[str, dict[str, float]], support: float) -> None:
        self.n_rows, self.gap, self.figures, self.support = n_rows, gap, figures, support


def _measure(
    score: Callable[[Any], NDArray[np.float64]],
    table: Any,
    transport: CounterfactualTransport,
    *,
    to: Any,
    sets: dict[str, frozenset[Edge]],
    threshold: float | None,
    direct: bool = True,
    draw: int = 0,
) -> dict[Any, _Measured]:
    column = transport.columns_[transport.sensitive]
    codes = column.encode(Table(table)[transport.sensitive]).astype(np.int64)
    target = transport.groups_.index(to)
    before = score(table)
    inside = transport.support(table, to=to, edges=transport.graph_.edges)
    ranked = _Ranks(before)
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
    before: NDArray[np.float64], after: NDArray[np.float64], ranked: _Ranks, threshold: float | None
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


class _Ranks:
    """Ranks of scores among all people's, as they are; mid-ranks for ties."""

    def __init__(self, scores: NDArray[np.float64]) -> None:
        order = np.argsort(scores, kind="stable")
        self._scores, self._ranks = scores[order], pooled_ranks(scores)[order]

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.interp(scores, self._scores, self._ranks)


def _effects_of(
    group: Any,
    found: _Measured,
    repeats: _Repeats,
    confidence: float,
) -> GroupEffects:
    levels = ((1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0)

    def interval(values: list[float]) -> tuple[float, float]:
        if len(values) < 2:
            return (float("nan"), float("nan"))
        low, high = np.quantile(values, levels)
        return (float(low), float(high))

    drawn, without, other = ([one[group] for one in many if group in one] for many in repeats)
    effects = {}
    for name, figures in found.figures.items():
        means = [figures["mean"], *(one.figures[name]["mean"] for one in other)]
        values: dict[str, Any] = {"rate": None, **figures}
        effects[name] = PathEffect(
            name,
            intervals={figure: interval([one.figures[name][figure] for one in drawn]) for figure in figures},
            floors={figure: _mean([abs(one.figures[name][figure]) for one in without]) for figure in figures},
            order_range=(min(means), max(means)) if other else (float("nan"), float("nan")),
            **values,
        )
    gap = interval([one.gap for one in drawn])
    return GroupEffects(group, found.n_rows, found.gap, gap, effects, found.support)


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


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


def _largest_group(transport: CounterfactualTransport, table: Any) -> Any:
    column = transport.columns_[transport.sensitive]
    codes = column.encode(Table(table)[transport.sensitive]).astype(np.int64)
    return transport.groups_[int(np.bincount(codes, minlength=len(transport.groups_)).argmax())]


def _score_function(model: Any, outcome: str | None) -> Callable[[Any], NDArray[np.float64]]:
    read: Callable[[Any], Any] = model
    if hasattr(model, "score_rows") and hasattr(model, "feature_names_in_"):
        read = lambda rows: model.score_rows(rows).scores  # noqa: E731 - one of three ways to read a model
    elif hasattr(model, "predict_proba") or hasattr(model, "predict"):
        read = lambda rows: model_scores(model, _features(model, rows, outcome))  # noqa: E731
    elif not callable(model):
        raise TypeError(f"model must be a model or a function from a table to scores; got {type(model).__name__}.")

    def score(rows: Any) -> NDArray[np.float64]:
        scores = np.asarray(read(rows), dtype=np.float64)
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
