"""Kafka topics as the input and the output of a stream, a transaction for each batch.

Partitions are assigned, not subscribed to: the state of a stream belongs to the messages that it was computed from, so
they must not move to another process when one joins the group. Offsets are stored with the checkpoints, and committed
to the group for whoever watches its lag; with an output topic they are committed in the transaction of the output.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtransport._extras import load_extra
from fairtransport.stream._line_file import NoFile, StoreError
from fairtransport.stream.input import Source

_POLL_INTERVAL = 0.1  # seconds
_AT_ONCE = 1000  # messages that are polled at once
_MAX_BYTES = 900_000  # of a message: brokers take a million by default, and the score has to fit as well


@dataclass(frozen=True)
class Message:
    """One message of the input topic."""

    partition: int
    offset: int
    value: bytes
    key: bytes | None
    headers: Any

    def __len__(self) -> int:
        return len(self.value)


class TopicSource(Source):
    """Messages of a topic, each taken for one line; one newline at the end of a message is removed.

    The messages of a batch are ordered by partition and offset, so a batch is determined by the offsets at which it
    ends. Those are in the journal, and a resumed run reads the same batches.
    """

    reproducible = False
    max_line_bytes = _MAX_BYTES

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        follow: bool = False,
        stop: Callable[[], bool] = lambda: False,
        header: bytes | None = None,
        commits: bool = True,
    ) -> None:
        super().__init__(follow=follow, stop=stop)
        self._settings, self._commits, self.header = settings, commits, header
        self.taken: list[Message] = []
        self._at_end: set[int] = set()
        self._repeated: dict[int, int] = {}  # offsets at which the next batch ends, if it is one of an earlier run
        self._in_batch: set[int] = set()  # partitions that there were at the time of the last batch
        self._kafka = load_extra("confluent_kafka")
        self._consumer = self._kafka.Consumer(settings.for_consumer())
        try:
            self.offsets = self._first_offsets()
        except BaseException:
            self.close()
            raise
        self._assigned = False

    @property
    def settings(self) -> dict[str, Any]:
        """The part that a resumed run has to repeat."""
        settings = self._settings
        return {"topic": settings.topic, "group": settings.group_id, "partitions": list(settings.partitions)}

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint stores."""
        return {"lines": self.lines, "offsets": {str(key): offset for key, offset in self.offsets.items()}}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Continue after the messages that a checkpoint says were taken; partitions that are new are read as well."""
        stored_offsets = parse_offsets(stored["offsets"])
        gone = sorted(set(stored_offsets) - set(self.offsets))
        if gone:
            raise StoreError(
                f"The topic has no partition {gone[0]} any more, which was read before: it was created anew. Start "
                "with an empty store and another group."
            )
        committed = self.committed()
        for partition in set(self.offsets) - set(stored_offsets):  # it was added since, so all its messages are new
            if committed[partition] is None:
                self.offsets[partition] = self._end_of(partition, "earliest")
        self.offsets |= stored_offsets
        self.lines = stored["lines"]

    def committed(self) -> dict[int, int | None]:
        """Return the offsets that the group has committed; None where there are none."""
        answer = self._ask(self._consumer.committed, self.topic_offsets())
        failed = [item.error for item in answer if item.error is not None]
        if failed:
            raise self._explained(failed[0])
        return {item.partition: item.offset if item.offset >= 0 else None for item in answer}

    @property
    def group_metadata(self) -> Any:
        """Return the metadata of the consumer group, for transactions."""
        return self._consumer.consumer_group_metadata()

    def topic_offsets(self) -> list[Any]:
        """Return the offsets as the client library represents them."""
        topic, partition_of = self._settings.topic, self._kafka.TopicPartition
        return [partition_of(topic, partition, offset) for partition, offset in sorted(self.offsets.items())]

    def _first_offsets(self) -> dict[int, int]:
        """Return where a new stream starts: at the group's offsets, else at one end of the topic."""
        settings = self._settings
        topic = self._ask(self._consumer.list_topics, settings.topic).topics[settings.topic]
        if topic.error is not None or not topic.partitions:
            raise ValueError(f"The brokers have no topic {settings.topic!r}. Create it, or check --topic.")
        wanted = settings.partitions or sorted(topic.partitions)
        missing = sorted(set(wanted) - set(topic.partitions))
        if missing:
            raise ValueError(
                f"The topic has no partition {missing[0]}; it has partitions 0 to {max(topic.partitions)}."
            )
        self.offsets = dict.fromkeys(wanted, 0)
        return {
            partition: self._end_of(partition, settings.start) if offset is None else offset
            for partition, offset in self.committed().items()
        }

    def _end_of(self, partition: int, end: str) -> int:
        item = self._kafka.TopicPartition(self._settings.topic, partition)
        low, high = self._ask(self._consumer.get_watermark_offsets, item)
        return int(low if end == "earliest" else high)

    def take(self, n_lines: int, *, wait: float | None = None) -> list[bytes]:
        """Return the next messages; see `Source`."""
        if not self._assigned:
            self._consumer.assign(self.topic_offsets())
            self._assigned = True
        self._in_batch = set(self._repeated or self.offsets)
        if self._repeated:
            chosen = self._take_repeated()
        else:
            chosen = self._wait_for_batch(n_lines, wait)
            self.ended = not self._ready and self._has_ended()
        self.taken = sorted(chosen, key=lambda message: (message.partition, message.offset))
        for message in self.taken:
            self.offsets[message.partition] = message.offset + 1
        self.lines += len(chosen)
        return [message.value for message in self.taken]

    def repeat(self, entry: Mapping[str, Any]) -> None:
        """Let the next batch be the one of this journal entry."""
        self._repeated = parse_offsets(entry["offsets"])

    def batch_end(self) -> dict[str, Any]:
        """Return what the journal says about the end of the last batch."""
        return {"offsets": {str(key): offset for key, offset in self.offsets.items() if key in self._in_batch}}

    def locate(self, line: int) -> dict[str, int]:
        """Say where a line of the last batch is."""
        message = self.taken[line - self.lines + len(self.taken) - 1]
        return {"line": line, "partition": message.partition, "offset": message.offset}

    def checkpointed(self) -> None:
        """Commit the offsets of a checkpoint to the group; a failure is no error, because the checkpoint has them."""
        if self._commits and self._assigned:
            self._consumer.commit(offsets=self.topic_offsets(), asynchronous=True)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _has_ended(self) -> bool:
        return not self._follow and self._at_end >= set(self.offsets)

    def _take_repeated(self) -> list[Message]:
        """Return all messages before the offsets of a batch of an earlier run."""
        ends, self._repeated = self._repeated, {}
        deadline = time.monotonic() + self._settings.timeout
        while not all(self._has_reached(partition, end) for partition, end in ends.items()):
            if self._stop():
                return []
            if self._poll(_POLL_INTERVAL):
                deadline = time.monotonic() + self._settings.timeout
            elif time.monotonic() >= deadline:
                raise ValueError(
                    "Messages that were read before are not in the topic any more, or the brokers do not answer."
                )
        taken = [message for message in self._ready if message.offset < ends.get(message.partition, 0)]
        self._ready = [message for message in self._ready if message.offset >= ends.get(message.partition, 0)]
        return taken

    def _has_reached(self, partition: int, end: int) -> bool:
        if self.offsets[partition] >= end:
            return True
        return any(message.partition == partition and message.offset >= end - 1 for message in self._ready)

    def _poll(self, seconds: float) -> int:
        """Wait for messages; return how many there were."""
        received = 0
        for message in self._consumer.consume(_AT_ONCE, max(0.0, seconds)):
            error = message.error()
            if error is None:
                value = message.value() or b""  # a message without a value is rejected as an empty line
                line = value.removesuffix(b"\n").removesuffix(b"\r")
                self._ready.append(
                    Message(message.partition(), message.offset(), line, message.key(), message.headers())
                )
                self._at_end.discard(message.partition())
                received += 1
            elif error.code() == self._kafka.KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                self._at_end.add(message.partition())
            elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
                raise ValueError(
                    f"Partition {message.partition()} does not have the next message to read any more: it was deleted "
                    "before it was scored. Keep messages longer; to continue without those lost, start with an empty "
                    "store and another group."
                )
            elif not error.retriable():
                raise self._explained(error)
        return received

    def _ask(self, question: Callable[..., Any], subject: Any) -> Any:
        try:
            return question(subject, timeout=self._settings.timeout)
        except self._kafka.KafkaException as error:
            raise self._explained(error.args[0]) from None

    def _explained(self, error: Any) -> Exception:
        settings = self._settings
        return ConnectionError(f"Kafka at {settings.brokers}, topic {settings.topic!r}: {error.str()}.")


def parse_offsets(offsets: Mapping[str, int]) -> dict[int, int]:
    """Return offsets as they are stored in JSON."""
    return {int(partition): int(offset) for partition, offset in offsets.items()}


# Scored messages in an output topic, each exactly once.

_TRIES = 5  # of a call that the brokers ask to repeat


class TopicOutput(NoFile):
    """Output topic, and optionally a topic of rejected messages, with a transaction for each batch.

    A scored message has the key, the headers and, if the topics have equally many partitions, the partition of its
    original.
    """

    source: TopicSource

    def __init__(self, settings: KafkaSettings, topic: str, rejected_topic: str | None = None) -> None:
        self._settings = settings
        self._topic, self._rejected_topic = topic, rejected_topic
        self._delivered = 0  # batches of the journal that are committed already
        self._begun = False
        self._kafka = load_extra("confluent_kafka")
        self._producer = self._kafka.Producer(settings.for_producer())
        self._same_partitions = self._count_partitions(topic) == self._count_partitions(settings.topic)
        if rejected_topic is not None:
            self._count_partitions(rejected_topic)
        self._call(self._producer.init_transactions, settings.timeout)  # ends a transaction of an earlier run

    @property
    def takes_rejected(self) -> bool:
        """True if there is a topic of rejected messages."""
        return self._rejected_topic is not None

    @property
    def settings(self) -> dict[str, Any]:
        """The part that a resumed run has to repeat."""
        return {"output_topic": self._topic, "rejected_topic": self._rejected_topic}

    def _count_partitions(self, topic: str) -> int:
        found = self._call(self._producer.list_topics, topic, self._settings.timeout).topics[topic]
        if found.error is not None or not found.partitions:
            raise ValueError(f"The brokers have no topic {topic!r}. Create it, or check its name.")
        return len(found.partitions)

    def start(self) -> None:
        """Commit the offsets at which a new stream starts, so that a resumed run finds the group where it left it."""
        self._commit()

    def resume(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Find out which batches of the journal, after the checkpoint, are committed."""
        committed = self.source.committed()
        ends = [parse_offsets(entry["offsets"]) for entry in entries if "offsets" in entry]
        first = dict(self.source.offsets)
        if not ends and all(offset is None for offset in committed.values()):
            self._commit()  # killed before anything was sent, or the offsets have expired
            return
        boundaries = [{**first, **end} for end in (first, *ends)]
        known = {partition: first[partition] if offset is None else offset for partition, offset in committed.items()}
        never = ends and all(offset is None for offset in committed.values())
        if never or known not in boundaries:
            raise StoreError(
                "The offsets of the consumer group are not those of the store: another program has used or changed the "
                "group, the brokers have forgotten it, or the store is an old copy. Set the group's offsets to the end "
                "of a batch of the journal, or start with an empty store and another group."
            )
        self._delivered = len(boundaries) - 1 - boundaries[::-1].index(known)

    def send(self, accepted: Sequence[int], lines: Sequence[bytes]) -> None:
        """Add scored messages to the transaction of the batch."""
        if self._delivered:
            return
        self._begin()
        for index, line in zip(accepted, lines, strict=True):
            original = self.source.taken[index]
            partition = {"partition": original.partition} if self._same_partitions else {}
            self._produce(self._topic, line, key=original.key, headers=original.headers, **partition)

    def reject(self, lines: Sequence[bytes]) -> None:
        """Add descriptions of rejected messages to the transaction."""
        if self._delivered:
            return
        self._begin()
        for line in lines:
            self._produce(str(self._rejected_topic), line)

    def end_batch(self) -> None:
        """Commit the messages of the batch, and the offsets after it, together."""
        if self._delivered:
            self._delivered -= 1
        else:
            self._commit()

    def _begin(self) -> None:
        if not self._begun:
            self._call(self._producer.begin_transaction)
            self._begun = True

    def _commit(self) -> None:
        self._begin()
        source, timeout = self.source, self._settings.timeout
        offsets, group = source.topic_offsets(), source.group_metadata
        self._call(self._producer.send_offsets_to_transaction, offsets, group, timeout)
        self._call(self._producer.commit_transaction, timeout)
        self._begun = False

    def _produce(self, topic: str, line: bytes, **options: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, line.removesuffix(b"\n"), **options)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _call(self, function: Any, *arguments: Any) -> Any:
        """Call the client library, again if the brokers ask for it; what cannot be repeated ends the run."""
        tries = 1
        while True:
            try:
                return function(*arguments)
            except self._kafka.KafkaException as exception:
                error = exception.args[0]
                if not error.retriable() or tries == _TRIES:
                    raise self._explained(error) from None
            tries += 1

    def _explained(self, error: Any) -> Exception:
        codes = self._kafka.KafkaError
        fenced = error.code() in {codes._FENCED, codes.PRODUCER_FENCED}  # noqa: SLF001 - public names
        hint = "another run of the stream has started" if fenced else "resume to continue"
        return ConnectionError(f"Kafka at {self._settings.brokers}, topic {self._topic!r}: {error.str()}; {hint}.")

    def close(self) -> None:
        """Abort an open transaction, which an error has left."""
        if self._begun:
            self._begun = False
            try:
                self._producer.abort_transaction(self._settings.timeout)
            except self._kafka.KafkaException:
                return  # the next run ends it


# Settings of the Kafka clients.

# What exactly-once delivery rests on; a properties file must not change it.
_CONSUMER = {
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}
_RESERVED = {*_CONSUMER, "bootstrap.servers", "enable.idempotence", "group.id", "transactional.id"}


@dataclass(frozen=True)
class KafkaSettings:
    """Brokers, input topic and consumer group of a stream."""

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

    def for_consumer(self) -> dict[str, Any]:
        """Return the configuration of the consumer, which reads committed messages and commits nothing by itself."""
        return {**self._common(), "group.id": self.group_id, **_CONSUMER}

    def for_producer(self) -> dict[str, Any]:
        """Return the configuration of the transactional producer.

        All runs of a stream share its identifier, so that a new one ends the transaction of its predecessor.
        """
        name = ".".join(["fairtransport", self.group_id, self.topic, *map(str, sorted(self.partitions))])
        own = {"partitioner": "murmur2_random", **self._common()}  # as Kafka's Java clients choose partitions
        return {**own, "transactional.id": name}

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
