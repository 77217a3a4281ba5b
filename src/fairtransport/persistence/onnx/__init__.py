"""Models as ONNX graphs, for runtimes without Python (extra: ``onnx``)."""

from fairtransport.persistence.onnx._export import to_onnx

__all__ = ["to_onnx"]
