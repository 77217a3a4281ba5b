"""Input of a stream: lines of a file or a pipe, parsed into batches of what the model scores."""

from fairtransport.stream.input._batch_reader import BatchReader
from fairtransport.stream.input._line_source import LineSource, Source
from fairtransport.stream.input._schema import InputBatch, InputSchema, input_schema_for

__all__ = ["BatchReader", "InputBatch", "InputSchema", "LineSource", "Source", "input_schema_for"]
