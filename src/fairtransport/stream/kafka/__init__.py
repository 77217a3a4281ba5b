"""Kafka topics as the input and the output of a stream."""

from fairtransport.stream.kafka._settings import KafkaSettings, read_properties
from fairtransport.stream.kafka._topic_output import TopicOutput
from fairtransport.stream.kafka._topic_source import TopicSource

__all__ = ["KafkaSettings", "TopicOutput", "TopicSource", "read_properties"]
