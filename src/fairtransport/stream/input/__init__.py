"""Input of a stream: lines of a file or a pipe, parsed into batches of what the model scores."""

from fairtransport.stream.input._batch_reader import BatchReader
from fairtransport.stream.input._line_source import LineSource, Source
from fairtransport.stream.input._schema import InputBatch, InputSchema, Owners, input_schema_for

__all__ = ["BatchReader", "InputBatch", "InputSchema", "LineSource", "Owners", "Source", "input_schema_for"]
