"""A graph under construction: nodes, constants and inputs, each by a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import load_extra

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        load_extra("onnx.compose")
        self._prefix, self._count, self._inlined = prefix, 0, 0
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

    def is_text(self, name: str) -> bool:
        """Return whether an input of this name is text."""
        kinds = {one.name: one.type.tensor_type.elem_type for one in self.inputs}
        return kinds.get(name) == self.number_type("STRING")

    def inline(self, made: Any, inputs: Mapping[str, str]) -> list[str]:
        """Add the nodes of a model of another converter.

        Parameters
        ----------
        made : onnx.ModelProto
        inputs : dict of str to str
            Which value of this graph each of its inputs is.

        Returns
        -------
        list of str
            The names of its outputs in this graph.
        """
        self._inlined += 1
        prefix = f"{self._prefix}part{self._inlined}_"
        part = self._onnx.compose.add_prefix(made, prefix).graph
        known = {f"{prefix}{name}": value for name, value in inputs.items()}
        for node in part.node:
            node.input[:] = [known.get(name, name) for name in node.input]
            if node.op_type == "Imputer":
                self._impute(node)
            else:
                self.nodes.append(node)
        self.constants.extend(part.initializer)
        return [known.get(one.name, one.name) for one in part.output]

    def _impute(self, node: Any) -> None:
        """Add what an imputer of missing doubles does, for which runtimes have no operator."""
        values = {one.name: self._onnx.helper.get_attribute_value(one) for one in node.attribute}
        if not np.isnan(values.get("replaced_value_float", 0.0)):
            raise TypeError("An imputer of other values than NaN cannot be exported to ONNX.")
        filled = self.constant(np.asarray(values["imputed_value_floats"], dtype=np.float64)[None])
        self.add("Where", self.add("IsNaN", node.input[0]), filled, node.input[0], output=node.output[0])

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
