"""Input of a stream: lines of a file or a pipe, parsed into batches of what the model scores."""

from fairtransport.stream.input._batch_reader import BatchReader
from fairtransport.stream.input._line_source import MAX_BATCH_BYTES, LineSource
from fairtransport.stream.input._schema import InputBatch, InputSchema, input_schema_for

__all__ = ["MAX_BATCH_BYTES", "BatchReader", "InputBatch", "InputSchema", "LineSource", "input_schema_for"]
