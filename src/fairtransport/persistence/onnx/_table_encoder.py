"""The encoder of a `TableModel` as nodes: raw columns in, the matrix of the model's features out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.persistence.onnx._graph import ML_DOMAIN, Graph
from fairtransport.tabular.column_plans import MAX_DEVIATIONS
from fairtransport.tabular.value_parsing import MISSING

if TYPE_CHECKING:
    from fairtransport.tabular.column_plans import ColumnPlan

__all__ = ["add_encoder"]


def add_encoder(graph: Graph, encoder: Any) -> str:
    """Declare an input for each column, of shape (n, 1), and return the encoded features."""
    return graph.add("Concat", *[_add_column(graph, plan) for plan in encoder.plans_], axis=1)


def _add_column(graph: Graph, plan: ColumnPlan) -> str:
    if plan.kind == "date":
        raise ValueError(
            f"Column {plan.name!r} is a date, which ONNX does not know. Give the model numbers instead, such as the "
            "days since a date, or drop the column."
        )
    return _add_words(graph, plan) if plan.kind == "words" else _add_number(graph, plan)


def _add_number(graph: Graph, plan: ColumnPlan) -> str:
    column = graph.input(plan.name, "DOUBLE", 1)
    centred = graph.add("Sub", column, graph.constant(plan.centre))
    scaled = graph.add("Div", centred, graph.constant(plan.scale))
    missing = graph.add("IsNaN", column)
    filled = graph.add("Where", missing, graph.constant(np.float64(0.0)), scaled)
    ends = [graph.constant(np.float64(end)) for end in (-MAX_DEVIATIONS, MAX_DEVIATIONS)]
    clipped = graph.add("Clip", filled, *ends)
    if not plan.missing:
        return clipped
    return graph.add("Concat", clipped, graph.add("Cast", missing, to=graph.number_type("DOUBLE")), axis=1)


def _add_words(graph: Graph, plan: ColumnPlan) -> str:
    """One row of a table for each known text, for any other, and for none."""
    n_words = len(plan.words)
    other, missing = n_words, n_words + 1
    rows = np.zeros((n_words + 2, plan.width))
    rows[:n_words, :n_words] = np.eye(n_words)
    if plan.other:
        rows[[other, missing], n_words] = 1.0
    if plan.missing:
        rows[missing] = 0.0
        rows[missing, -1] = 1.0
    spellings = sorted({way for text in MISSING for way in (text, text.upper(), text.capitalize(), text.title())})
    keys = [*plan.words, *(text for text in spellings if text not in plan.words)]
    values = [*range(n_words), *[missing] * (len(keys) - n_words)]
    column = graph.input(plan.name, "STRING", 1)
    codes = graph.add(
        "LabelEncoder", column, domain=ML_DOMAIN, keys_strings=keys, values_int64s=values, default_int64=other
    )
    flat = graph.add("Reshape", codes, graph.constant(np.array([-1], dtype=np.int64)))
    return graph.add("Gather", graph.constant(rows), flat, axis=0)
