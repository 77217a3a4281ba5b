"""Counterfactual transport along a causal graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._columns import say_columns
from fairtransport._sklearn import content_keys, deal_rows
from fairtransport._validation import check_choice, check_count, check_weights
from fairtransport.causal import conditional_distributions as conditional
from fairtransport.causal._graph import CausalGraph, Edge, as_graph, check_confounding, check_parents, check_witnesses

# What a table has to have, so that the people of its groups can be compared.

_LEAST_ROWS = 10  # of a group


def check_groups(column: conditional.NodeColumn, codes: Floats) -> tuple[Any, ...]:
    """Return the groups of the sensitive column; raise unless there are two or more, of 10 rows or more."""
    groups = column.levels
    if groups is None:
        raise ValueError(f"Column {column.name!r} has many different numbers; cut it into groups first.")
    if np.isnan(codes).any():
        raise ValueError(f"Column {column.name!r} has rows without a group; drop them first.")
    if len(groups) < 2:
        raise ValueError(f"Column {column.name!r} has one group; there is none to compare it with.")
    smallest = int(np.bincount(codes.astype(np.int64)).min())
    if smallest < _LEAST_ROWS:
        raise ValueError(
            f"A group of column {column.name!r} has {smallest} rows; distributions need at least {_LEAST_ROWS}. "
            "Merge small groups, or leave them out."
        )
    return groups


def check_varies(node: str, sensitive: str, values: Mapping[str, Floats]) -> None:
    """Raise where a column has one value in a group, so that people have no ranks there."""
    codes = values[sensitive]
    for group in np.unique(codes):
        inside = values[node][codes == group]
        known = inside[np.isfinite(inside)]
        if not known.size or np.ptp(known) == 0.0:
            raise ValueError(
                f"Column {node!r} has one value in a group of {sensitive!r}, so that people cannot be ranked there. "
                "Leave the column out of the graph, or name it in resolving=."
            )


def check_overlap(
    node: str, causes: Sequence[str], sensitive: str, ranges: Mapping[str, tuple[conditional.SeenValues, ...]]
) -> None:
    """Raise where a cause has no value in common between two groups, so that ranks cannot be taken from one another."""
    for cause in causes:
        apart = any(not one.overlaps(other) for one, other in combinations(ranges[cause], 2))
        if apart:
            raise ValueError(
                f"Two groups of {sensitive!r} have no values of {cause!r} in common, which is a cause of {node!r}: "
                "people of the two groups are not comparable. Leave the column out of the graph, or the group out of "
                "the table."
            )


Values = dict[str, "Floats"]
Distributions = dict[str, tuple[conditional.ConditionalDistribution, ...]]


class CounterfactualTransport(BaseEstimator):
    r"""Counterfactual columns of people in another group: quantile transport along a causal graph.

    Each descendant of the sensitive column keeps its rank among people with the same causes, and takes the value of
    that rank among people with the causes as they would be. Along *unfair* edges an effect sees its cause as it would
    be, along others as it is, so that the counterfactual is that of chosen paths.

    Parameters
    ----------
    graph : networkx.DiGraph, str, path, table, mapping or iterable of edges
        The causal graph: an assumption of the user, which data cannot verify. See `as_graph` for its forms.
    sensitive : str
        Column of the groups.
    outcome : str, optional
        Column of the labels, where the graph has it. The edge from ``sensitive`` to ``outcome`` is the direct effect.
    unfair_edges : iterable of (str, str), optional
        Edges along which a change of the group is passed on; all by default.
    resolving : iterable of str, default=()
        Columns that are never moved, because a difference in them is fair whatever caused it.
    adjust_for : iterable of str, default=()
        Causes of ``sensitive``: they have to be named, because counterfactuals are then given their values.
    confounded : iterable of (str, str), default=()
        Pairs of columns with a common cause that is not in the table. A pair on a path that is moved is refused,
        because ranks are not comparable then.
    quantiles : {"auto", "linear", "forest", "boosted"} or regressor, default="auto"
        Conditional distributions: of linear regression of mean and spread (levels: multinomial logistic regression), of
        linear regression with residuals by a quantile regression forest, or of boosted trees, or this regressor, with
        residuals that do not depend on the causes (levels: a forest). ``"auto"`` chooses for each column by the pinball
        loss on held-out rows: linear, unless another is better by more than one standard error.
    orders : mapping of str to sequence, optional
        Order of the values of columns of categories, which decides who takes whose place; by frequency by default.
    cv : int, default=5
        Folds of `fit_transform`.
    random_state : int, default=0
        Seed of the forests, and of the ranks of people with equal values.

    Attributes
    ----------
    graph_ : CausalGraph
    groups_ : tuple
        Groups, in order.
    columns_ : dict of str to NodeColumn
        How each node is read: as numbers, or as levels in an order.
    distributions_ : dict of str to tuple of ConditionalDistribution
        Of each descendant of ``sensitive``: one for each group where the group is among its causes.
    methods_ : dict of str to str or regressor
        How each of these was estimated.
    ranges_ : dict of str to tuple of SeenValues
        Values of each node in each group, which `support` asks for.

    Notes
    -----
    With :math:`u_j = F_j(x_j \mid \text{causes})` the rank of a value among people with the same causes, its
    counterfactual is :math:`F_j^{-1}(u_j \mid \text{causes as they would be})`, in the order of the graph [1]_. People
    with equal values get ranks at random between those below and above, from ``random_state`` and their position in the
    table. Everything here holds *under this graph*: with an edge more or less, results differ.

    References
    ----------
    .. [1] Plečko and Meinshausen (2020), "Fair data adaptation with quantile preservation", JMLR 21.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 2000)
    >>> hours = rng.normal(35, 5, 2000) + 4 * (sex == "M")
    >>> transport = CounterfactualTransport({"sex": ["hours"]}, sensitive="sex").fit({"sex": sex, "hours": hours})
    >>> moved = transport.transform({"sex": ["F"], "hours": [35.0]}, to="M")
    >>> float(moved["hours"][0].round())
    39.0
    """

    def __init__(
        self,
        graph: Any,
        *,
        sensitive: str,
        outcome: str | None = None,
        unfair_edges: Iterable[Edge] | None = None,
        resolving: Iterable[str] = (),
        adjust_for: Iterable[str] = (),
        confounded: Iterable[Edge] = (),
        quantiles: Any = "auto",
        orders: Mapping[str, Sequence[Any]] | None = None,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.graph = graph
        self.sensitive = sensitive
        self.outcome = outcome
        self.unfair_edges = unfair_edges
        self.resolving = resolving
        self.adjust_for = adjust_for
        self.confounded = confounded
        self.quantiles = quantiles
        self.orders = orders
        self.cv = cv
        self.random_state = random_state

    def fit(self, table: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the distribution of each descendant of the sensitive column given its causes.

        Parameters
        ----------
        table : table
            Of pandas, polars or pyarrow, or a dict of columns; with all columns of the graph.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        """
        self._fit(conditional.Table(table), sample_weight)
        return self

    def fit_transform(
        self, table: Any, *, to: Any, edges: Iterable[Edge] | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Fit, and return the counterfactuals of the same rows, each from distributions of the other folds.

        In a distribution that it was used to estimate, a row's rank is biased towards the middle. ``to`` and ``edges``
        are those of ``transform``, ``sample_weight`` is that of ``fit``.
        """
        rows = conditional.Table(table)
        values, weights = self._fit(rows, sample_weight)
        codes, chosen = values[self.sensitive].astype(np.int64), self._edges(edges)
        n_folds, keys = check_count(self.cv, name="cv", least=2), content_keys(np.column_stack([*values.values()]))
        fold = deal_rows(keys, np.zeros(codes.size), codes, n_folds, np.random.default_rng(self.random_state))
        moved: Values = {}
        for others, held_out in ((np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(n_folds)):
            distributions = self._estimate({node: numbers[others] for node, numbers in values.items()}, weights[others])
            part = {node: numbers[held_out] for node, numbers in values.items()}
            for node, numbers in self._move(part, distributions, self._group(to), chosen, positions=held_out).items():
                moved.setdefault(node, np.empty(codes.size))[held_out] = numbers
        return self._write(rows, moved, self._group(to), direct=self._is_direct(chosen))

    def _fit(self, rows: conditional.Table, sample_weight: ArrayLike | None) -> tuple[Values, Floats]:
        self._check_parameters()
        given = check_weights(sample_weight, size=rows.n_rows)
        weights = np.ones(rows.n_rows) if given is None else given
        self.graph_ = self._check_graph()
        self.graph_.check_columns(rows.names)
        orders = self.orders or {}
        self.columns_ = {
            node: conditional.NodeColumn.of(node, rows[node], orders.get(node)) for node in self.graph_.nodes
        }
        values = {node: column.encode(rows[node]) for node, column in self.columns_.items()}
        codes = values[self.sensitive]
        self.groups_ = check_groups(self.columns_[self.sensitive], codes)
        for node in self._movable:
            check_varies(node, self.sensitive, values)
        self.methods_ = {node: self._choose(node, values, weights) for node in self._movable}
        self.distributions_ = self._estimate(values, weights)
        self.ranges_ = {
            node: tuple(
                conditional.SeenValues.of(numbers[codes == group], levels=self.columns_[node].levels is not None)
                for group in range(len(self.groups_))
            )
            for node, numbers in values.items()
        }
        for node in self._movable:
            roots = [cause for cause in self._causes(node) if cause not in self.graph_.descendants(self.sensitive)]
            check_overlap(node, roots, self.sensitive, self.ranges_)
        return values, weights

    def _estimate(self, values: Values, weights: Floats) -> Distributions:
        """Return the distributions of all descendants of the sensitive column."""
        return {
            node: tuple(
                conditional.fit_conditional(*part, method=self.methods_[node], **self._options(node))
                for part in self._parts(node, values, weights)
            )
            for node in self._movable
        }

    def _choose(self, node: str, values: Values, weights: Floats) -> Any:
        """Return the method for a node: as ``quantiles`` says, or the best one."""
        if not isinstance(self.quantiles, str) or self.quantiles != "auto":
            return self.quantiles
        return conditional.choose_method(self._parts(node, values, weights), **self._options(node))

    def _options(self, node: str) -> dict[str, Any]:
        levels = self.columns_[node].levels
        return {"n_levels": None if levels is None else len(levels), "random_state": self.random_state}

    def _parts(self, node: str, values: Values, weights: Floats) -> list[tuple[Floats, Floats, Floats]]:
        """Return causes, values and weights of the rows of each group where the group is a cause, otherwise of all."""
        codes, X = values[self.sensitive], self._design(node, values)
        rows = [weights > 0]
        if self.sensitive in self.graph_.parents(node):
            rows = [(codes == group) & rows[0] for group in range(len(self.groups_))]
        return [(X[some], values[node][some], weights[some]) for some in rows]

    def transform(
        self, table: Any, *, to: Any, edges: Iterable[Edge] | None = None, direct: bool | None = None, draw: int = 0
    ) -> Any:
        """Return the table as it would be, had everyone been of one group.

        Parameters
        ----------
        table : table
            With the columns of the graph; the outcome is not needed.
        to : group
            Of ``groups_``. Rows of that group stay as they are.
        edges : iterable of (str, str), optional
            Move along these edges instead of ``unfair_edges``.
        direct : bool, optional
            Whether the sensitive column itself is moved, too. By default it is where the edge from it to ``outcome``
            is unfair or, without an outcome, where all edges are.
        draw : int, default=0
            Number of the draw of random ranks, for people with equal values.

        Returns
        -------
        table
            Of the same kind, with the columns moved, except the outcome.
        """
        check_is_fitted(self)
        rows, chosen, group = conditional.Table(table), self._edges(edges), self._group(to)
        moved = self._move(self._encode(rows), self.distributions_, group, chosen, draw=draw)
        return self._write(rows, moved, group, direct=self._is_direct(chosen) if direct is None else direct)

    def support(self, table: Any, *, to: Any, edges: Iterable[Edge] | None = None) -> Bools:
        """Return whose counterfactuals have causes within what was seen in the other group.

        Parameters
        ----------
        table, to, edges
            As for ``transform``.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
            False where a cause of a moved column, as it would be, lies outside the values of the group ``to`` in
            ``fit``: such a counterfactual is an extrapolation.
        """
        check_is_fitted(self)
        rows, chosen, group = conditional.Table(table), self._edges(edges), self._group(to)
        values = self._encode(rows)
        moved = self._move(values, self.distributions_, group, chosen)
        inside = np.ones(rows.n_rows, dtype=bool)
        for node in moved:
            for parent in self._causes(node):
                seen = moved[parent] if parent in moved and (parent, node) in chosen else values[parent]
                inside &= self.ranges_[parent][group].includes(seen)
        return inside | (values[self.sensitive] == group)

    def _move(
        self,
        values: Values,
        distributions: Distributions,
        to: int,
        edges: Collection[Edge],
        *,
        positions: Ints | None = None,
        draw: int = 0,
    ) -> Values:
        """Return the moved columns; ``positions`` of the rows in their table choose their random ranks."""
        codes = values[self.sensitive].astype(np.int64)
        positions = np.arange(codes.size) if positions is None else positions
        moved: Values = {}
        others = np.flatnonzero(codes != to)
        order = {node: number for number, node in enumerate(sorted(self.graph_.nodes))}
        for node in self.graph_.descendants(self.sensitive, edges, except_for=self.resolving):
            if node not in values:  # an outcome that the table does not have
                continue
            seen = {parent: moved[parent] for parent in moved if (parent, node) in edges}
            before, after = self._design(node, values), self._design(node, {**values, **seen})
            seed = [self.random_state, draw, order[node]]
            ties = np.random.default_rng(seed).random(int(positions.max(initial=0)) + 1)[positions]
            target = np.full(codes.size, to) if (self.sensitive, node) in edges else codes
            numbers, parts = values[node].copy(), distributions[node]
            for own in np.unique(codes[others]):
                some = others[codes[others] == own]
                first, last = (parts[own], parts[target[some[0]]]) if len(parts) > 1 else (parts[0], parts[0])
                ranks = first.ranks(before[some], values[node][some], ties[some])
                numbers[some] = last.quantiles(after[some], ranks)
            moved[node] = numbers
        return moved

    def _write(self, rows: conditional.Table, moved: Values, to: int, *, direct: bool) -> Any:
        columns = {node: self.columns_[node].decode(numbers) for node, numbers in moved.items() if node != self.outcome}
        if direct:
            columns[self.sensitive] = self.columns_[self.sensitive].decode(np.full(rows.n_rows, float(to)))
        return rows.replaced(columns)

    @property
    def _movable(self) -> list[str]:
        """Descendants of the sensitive column, causes first, except those in which a difference is fair."""
        return [node for node in self.graph_.descendants(self.sensitive) if node not in tuple(self.resolving)]

    def _causes(self, node: str) -> list[str]:
        """Return the causes of a node, without the sensitive column."""
        return [parent for parent in self.graph_.parents(node) if parent != self.sensitive]

    def _design(self, node: str, values: Values) -> Floats:
        causes = self._causes(node)
        columns, n_rows = [self.columns_[one] for one in causes], values[self.sensitive].size
        return np.asarray(conditional.design_matrix(columns, [values[one] for one in causes], n_rows))

    def _encode(self, rows: conditional.Table) -> Values:
        needed = [node for node in self.graph_.nodes if node != self.outcome or node in rows.names]
        absent = [node for node in needed if node not in rows.names]
        if absent:
            raise ValueError(f"The table has no {say_columns(absent)}, which the graph has.")
        values = {node: self.columns_[node].encode(rows[node]) for node in needed}
        if np.isnan(values[self.sensitive]).any():
            raise ValueError(f"Column {self.sensitive!r} has rows without a group; drop them first.")
        return values

    def _edges(self, edges: Iterable[Edge] | None) -> frozenset[Edge]:
        given = self.unfair_edges if edges is None else edges
        if given is None:
            return frozenset(self.graph_.edges)
        chosen = frozenset((one, other) for one, other in given)
        self.graph_.check_edges(chosen, name="unfair_edges" if edges is None else "edges")
        check_witnesses(self.graph_, self.sensitive, chosen, tuple(self.resolving))
        return chosen

    def _is_direct(self, edges: Collection[Edge]) -> bool:
        if self.outcome is not None:
            return (self.sensitive, self.outcome) in edges
        return len(edges) == len(self.graph_.edges)

    def _group(self, to: Any) -> int:
        if to not in self.groups_:
            allowed = ", ".join(map(repr, self.groups_))
            raise ValueError(f"to must be one of the groups of column {self.sensitive!r}: {allowed}.")
        return self.groups_.index(to)

    def _check_parameters(self) -> None:
        if not isinstance(self.sensitive, str):
            raise TypeError(
                "sensitive must be the name of one column. Cross several into one first, such as race and sex into "
                "'race, sex'."
            )
        if isinstance(self.quantiles, str):
            check_choice(self.quantiles, conditional.METHODS, name="quantiles")
        elif not is_regressor(self.quantiles):
            raise ValueError(f"quantiles must be one of {', '.join(conditional.METHODS)}, or a regressor.")

    def _check_graph(self) -> CausalGraph:
        graph = as_graph(self.graph)
        outcome = [] if self.outcome is None else [self.outcome]
        named = (self.sensitive, *outcome, *self.resolving, *self.adjust_for, *(self.orders or ()))
        unknown = [name for name in named if name not in graph.nodes]
        if unknown:
            raise ValueError(f"The graph has no {say_columns(unknown)}.")
        check_parents(graph, self.sensitive, tuple(self.adjust_for))
        if not graph.descendants(self.sensitive):
            raise ValueError(f"Column {self.sensitive!r} has no effects in the graph, so there is nothing to move.")
        if self.outcome is not None and graph.children(self.outcome):
            raise ValueError(f"The outcome, {self.outcome!r}, has effects in the graph; it has to come last.")
        self.graph_ = graph
        edges = self._edges(None)
        moved = graph.descendants(self.sensitive, edges, except_for=self.resolving)
        check_confounding(graph, self.sensitive, moved, tuple(self.confounded))
        return graph
