"""A graph under construction: nodes, constants and inputs, each by a name."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtransport._extras import load_extra

__all__ = ["ML_DOMAIN", "OPSETS", "Graph"]

ML_DOMAIN = "ai.onnx.ml"
#: Versions of the operators; onnxruntime has them since 1.12.
OPSETS = {"": 17, ML_DOMAIN: 3}


class Graph:
    """Nodes in the order in which they are added; every value has a name.

    Parameters
    ----------
    prefix : str
        Before every name that the graph gives, so that two graphs can be joined.
    """

    def __init__(self, prefix: str = "ft_") -> None:
        self._onnx = load_extra("onnx")
        self._prefix, self._count = prefix, 0
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, operator: str, *inputs: str, domain: str = "", output: str | None = None, **options: Any) -> str:
        """Add a node and return the name of what it gives."""
        name = output or self._new_name(operator)
        self.nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **options))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant array and return its name."""
        name, array = self._new_name("constant"), np.asarray(value)
        if array.dtype.kind in "UO":
            tensor = self._onnx.helper.make_tensor(
                name, self._onnx.TensorProto.STRING, array.shape, [str(word).encode() for word in array.ravel()]
            )
        else:
            tensor = self._onnx.numpy_helper.from_array(array, name)
        self.constants.append(tensor)
        return name

    def input(self, name: str, kind: str, width: int | None) -> str:
        """Declare an input of ``width`` columns (None: a vector) of doubles, integers or text."""
        self.inputs.append(self._value(name, kind, [None] if width is None else [None, width]))
        return name

    def output(self, name: str, kind: str, width: int | None) -> None:
        """Declare an output."""
        self.outputs.append(self._value(name, kind, [None] if width is None else [None, width]))

    def number_type(self, kind: str) -> int:
        """Return ONNX's number of a type."""
        return int(getattr(self._onnx.TensorProto, kind))

    def model(self, name: str) -> Any:
        """Return the graph as an ONNX model."""
        helper = self._onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="fairtransport")

    def _value(self, name: str, kind: str, shape: list[int | None]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self.number_type(kind), shape)

    def _new_name(self, what: str) -> str:
        self._count += 1
        return f"{self._prefix}{what}_{self._count}"
