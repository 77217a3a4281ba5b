"""Models as ONNX graphs, for runtimes without Python (extra: ``onnx``)."""

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.persistence.onnx._export import to_onnx

__all__ = ["to_onnx"]

redact_public_errors(globals())
