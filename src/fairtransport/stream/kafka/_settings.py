"""Settings of the Kafka clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["KafkaSettings", "read_properties"]

# What exactly-once delivery rests on; a properties file must not change it.
_RESERVED = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "isolation.level",
        "transactional.id",
    }
)


@dataclass(frozen=True)
class KafkaSettings:
    """Brokers, input topic and consumer group of a stream.

    Parameters
    ----------
    brokers : str
        Addresses of some brokers, separated by commas.
    topic : str
        Topic of the rows.
    group_id : str
        Consumer group under which offsets are committed.
    partitions : tuple of int, default=()
        Partitions of the topic to read; all of them if empty.
    start : {"earliest", "latest"}, default="earliest"
        Where to start if the group has committed no offset.
    properties : mapping, optional
        Further properties of librdkafka, such as those of TLS and SASL; see `read_properties`.
    timeout : float, default=30
        Seconds to wait for an answer of the brokers.
    """

    brokers: str
    topic: str
    group_id: str
    partitions: tuple[int, ...] = ()
    start: str = "earliest"
    properties: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if self.start not in {"earliest", "latest"}:
            raise ValueError(f"start must be 'earliest' or 'latest'; got {self.start!r}.")
        reserved = sorted(_RESERVED & set(self.properties))
        if reserved:
            raise ValueError(
                f"The properties set {', '.join(reserved)}, which the stream sets itself. Remove them from the file."
            )

    @property
    def transactional_id(self) -> str:
        """Identifier that all runs of this stream share, so that a new one ends the transaction of its predecessor."""
        own = "".join(f".{partition}" for partition in sorted(self.partitions))
        return f"fairtransport.{self.group_id}.{self.topic}{own}"

    def for_consumer(self) -> dict[str, Any]:
        """Return the configuration of the consumer, which reads committed messages and commits nothing by itself."""
        return {
            **self._common(),
            "group.id": self.group_id,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }

    def for_producer(self) -> dict[str, Any]:
        """Return the configuration of the transactional producer."""
        own = {"partitioner": "murmur2_random", **self._common()}  # as Kafka's Java clients choose partitions
        return {**own, "transactional.id": self.transactional_id}

    def _common(self) -> dict[str, Any]:
        quiet = {"log_level": 2}  # what matters is raised, or reported through the callback for errors
        return {**quiet, **self.properties, "bootstrap.servers": self.brokers}


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of properties, one ``name=value`` per line; empty lines and lines that start with # are skipped."""
    properties = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ValueError(f"Line {number} of {path.name} is not of the form name=value.")
        properties[name.strip()] = value.strip()
    return properties
