"""What models are made of, as nodes: the code of a group, a linear score, a repaired score, and what comes out.

ONNX has no errors to raise. Where a row must be refused, a number is looked up in a table that does not have it: then
the runtime itself raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.persistence.onnx._graph import ML_DOMAIN, Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.transport.line import QuantileMap

__all__ = ["add_classes", "add_group_codes", "add_linear", "add_mixture", "add_repair", "as_vector", "require_range"]

_MOST_COMBINATIONS = 1 << 20


def add_group_codes(graph: Graph, groups: Groups) -> str:
    """Declare an input for each sensitive column, and return the index of each row's group, as a vector.

    Columns of text are text, those of integers or booleans are int64. A value or combination that was not seen in
    ``fit`` gets an index beyond all tables.
    """
    columns: list[tuple[Any, ...]] = list(zip(*map(_parts, groups.labels), strict=True))
    values = [list(dict.fromkeys(column)) for column in columns]
    n_combinations = int(np.prod([len(known) for known in values], dtype=np.int64))
    if n_combinations > _MOST_COMBINATIONS:
        raise ValueError(
            f"The sensitive columns have {n_combinations} combinations; {_MOST_COMBINATIONS} can be exported."
        )
    index: str | None = None
    for name, known in zip(groups.columns, values, strict=True):
        code = _code_of(graph, name, known)
        if index is None:
            index = code
        else:  # beyond the last combination as soon as one of the values is unknown
            index = graph.add("Add", graph.add("Mul", index, graph.constant(np.int64(len(known)))), code)
    table = np.full(n_combinations, len(groups), dtype=np.int64)
    where = np.ravel_multi_index(
        [[known.index(value) for value in column] for known, column in zip(values, columns, strict=True)],
        [len(known) for known in values],
    )
    table[where] = np.arange(len(groups))
    return graph.add("Gather", graph.constant(table), str(index))


def _parts(label: Any) -> tuple[Any, ...]:
    return label if isinstance(label, tuple) else (label,)


def _code_of(graph: Graph, name: str, known: list[Any]) -> str:
    text = all(isinstance(value, str) for value in known)
    if not text and not all(isinstance(value, (bool, int)) and abs(value) < 1 << 62 for value in known):
        raise ValueError(
            f"Groups of column {name!r} cannot be exported: ONNX identifies groups by text or by integers, and "
            "this column holds fractions, missing or mixed values. Write them as text, and fit again."
        )
    column = graph.input(name, "STRING" if text else "INT64", None)
    keys: dict[str, Any] = {
        "keys_strings" if text else "keys_int64s": known if text else [int(value) for value in known]
    }
    unknown = 1 << 40  # far beyond any table, also when it is multiplied by the sizes of other columns
    return graph.add(
        "LabelEncoder", column, domain=ML_DOMAIN, values_int64s=list(range(len(known))), default_int64=unknown, **keys
    )


def add_linear(
    graph: Graph,
    features: str,
    coef: NDArray[Any],
    intercept: NDArray[Any],
    codes: str | None,
    *,
    logistic: bool = True,
) -> str:
    """Return the score of a linear model, or of that of each row's group, as a vector: a probability where logistic."""
    weights, shift = (np.asarray(one, dtype=np.float64) for one in (coef, intercept))
    scores = graph.add("Add", graph.add("MatMul", features, graph.constant(weights.T.copy())), graph.constant(shift))
    if codes is not None:
        column = graph.add("Unsqueeze", codes, graph.constant(np.array([1], dtype=np.int64)))
        scores = graph.add("GatherElements", scores, column, axis=1)
    return as_vector(graph, graph.add("Sigmoid", scores) if logistic else scores)


def add_mixture(graph: Graph, first: str, second: str, amount: float) -> str:
    """Return (1 - amount) * first + amount * second."""
    if amount == 1.0:
        return second
    less, more = (graph.constant(np.float64(share)) for share in (1.0 - amount, amount))
    return graph.add("Add", graph.add("Mul", first, less), graph.add("Mul", second, more))


def add_repair(
    graph: Graph, scores: str, codes: str, maps: Sequence[QuantileMap], amount: float, *, extrapolate: bool = False
) -> str:
    """Return each score moved by the map of its group: a binary search among the knots, then a line between two.

    With ``extrapolate``, scores beyond the knots are shifted as far as the score at the last one.
    """
    if extrapolate:
        low, high = (
            graph.add("Gather", graph.constant(np.array([carry.knots[end] for carry in maps])), codes)
            for end in (0, -1)
        )
        inside = graph.add("Max", graph.add("Min", scores, high), low)
        moved = add_repair(graph, inside, codes, maps, amount)
        return graph.add("Add", moved, graph.add("Sub", scores, inside))
    width = (
        1 << max(carry.knots.size for carry in maps).bit_length()
    )  # more than any map has, so that the last is infinite
    knots, images = np.full((len(maps), width), np.inf), np.empty((len(maps), width))
    for row, carry in enumerate(maps):
        knots[row, : carry.knots.size], images[row, : carry.knots.size] = carry.knots, carry.images
        images[row, carry.knots.size :] = carry.images[-1]
    knot_table, image_table = graph.constant(knots.ravel()), graph.constant(images.ravel())
    # An index beyond the last group is beyond the table.
    at = graph.add("Mul", codes, graph.constant(np.int64(width)))
    step = width // 2
    while step:
        further = graph.add("Add", at, graph.constant(np.int64(step)))
        passed = graph.add("LessOrEqual", graph.add("Gather", knot_table, further), scores)
        at = graph.add("Where", passed, further, at)
        step //= 2
    then = graph.add("Add", at, graph.constant(np.int64(1)))
    low, high = (graph.add("Gather", knot_table, index) for index in (at, then))
    start, end = (graph.add("Gather", image_table, index) for index in (at, then))
    share = graph.add("Div", graph.add("Sub", scores, low), graph.add("Sub", high, low))
    share = graph.add("Max", share, graph.constant(np.float64(0.0)))  # below the first knot
    moved = graph.add("Add", start, graph.add("Mul", share, graph.add("Sub", end, start)))
    return add_mixture(graph, scores, moved, amount)


def require_range(graph: Graph, scores: str, low: float, high: float) -> str:
    """Return the scores; one outside of the range, or no number, makes the runtime raise."""
    fine = graph.add(
        "And",
        graph.add("GreaterOrEqual", scores, graph.constant(np.float64(low))),
        graph.add("LessOrEqual", scores, graph.constant(np.float64(high))),
    )
    zero_or_one = graph.add("Cast", graph.add("Not", fine), to=graph.number_type("INT64"))
    zero = graph.add("Gather", graph.constant(np.array([0.0])), zero_or_one)
    return graph.add("Add", scores, zero)


def add_classes(graph: Graph, positive: str, classes: NDArray[Any]) -> None:
    """Declare the outputs of a classifier: ``label`` and ``probabilities``."""
    axis = graph.constant(np.array([1], dtype=np.int64))
    yes = graph.add("Unsqueeze", positive, axis)
    no = graph.add("Sub", graph.constant(np.float64(1.0)), yes)
    graph.add("Concat", no, yes, axis=1, output="probabilities")
    above = graph.add("Greater", positive, graph.constant(np.float64(0.5)))
    index = graph.add("Cast", above, to=graph.number_type("INT64"))
    table, kind = _class_table(classes)
    graph.add("Gather", graph.constant(table), index, output="label")
    graph.output("label", kind, None)
    graph.output("probabilities", "DOUBLE", 2)


def _class_table(classes: NDArray[Any]) -> tuple[NDArray[Any], str]:
    kind = classes.dtype.kind
    if kind in "biu":
        return classes.astype(np.int64), "INT64"
    if kind == "f":
        return classes.astype(np.float64), "DOUBLE"
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object), "STRING"
    raise ValueError("The two classes cannot be exported: ONNX has numbers and text, and these labels are neither.")


def as_vector(graph: Graph, column: str) -> str:
    """Return a matrix of one column as a vector."""
    return graph.add("Reshape", column, graph.constant(np.array([-1], dtype=np.int64)))
