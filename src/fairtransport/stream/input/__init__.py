"""Input of a stream: lines from a file or a pipe, parsed into the columns that a model needs."""

from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser
from fairtransport.stream.input._line_source import LineSource
from fairtransport.stream.input._parser import ParsedBatch, Parser
from fairtransport.stream.input._schema import InputSchema, input_schema_for

__all__ = ["CsvParser", "InputSchema", "JsonParser", "LineSource", "ParsedBatch", "Parser", "input_schema_for"]
