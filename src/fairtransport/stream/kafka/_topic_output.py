"""Scored messages in an output topic, each exactly once.

The messages of a batch and the offsets after them are committed in one transaction. The journal has an entry of the
batch before, so a run that is killed at any moment leaves one of two states behind: the group has the offsets at the
beginning of a batch, and no reader of committed messages sees any of its scores, or those at its end, and readers see
them all. A resumed run processes the batches of the journal again and sends those that are not committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.stream._errors import StoreError
from fairtransport.stream.kafka._topic_source import parse_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtransport.stream.kafka._settings import KafkaSettings
    from fairtransport.stream.kafka._topic_source import TopicSource

__all__ = ["TopicOutput"]

_TRIES = 5  # of a call that the brokers ask to repeat


class TopicOutput:
    """Output topic, and optionally a topic of rejected messages, with a transaction for each batch.

    A scored message has the key, the headers and, if the topics have equally many partitions, the partition of its
    original.

    Parameters
    ----------
    settings : KafkaSettings
    topic : str
    rejected_topic : str, optional

    Attributes
    ----------
    source : TopicSource
        Where the messages come from; to be set before the first batch. It is opened after the output, which ends the
        transaction of a run that was killed: only then does the group have the offsets that are true.
    """

    source: TopicSource

    length, ahead, digest = 0, 0, ""

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
        """Whether there is a topic of rejected messages."""
        return self._rejected_topic is not None

    @property
    def settings(self) -> dict[str, Any]:
        """What a resumed run has to repeat."""
        return {"output_topic": self._topic, "rejected_topic": self._rejected_topic}

    def _count_partitions(self, topic: str) -> int:
        found = self._call(self._producer.list_topics, topic, self._settings.timeout).topics[topic]
        if found.error is not None or not found.partitions:
            raise ValueError(f"The brokers have no topic {topic!r}. Create it, or check its name.")
        return len(found.partitions)

    # ---------------------------------------------------------------- start or resume

    def start(self) -> None:
        """Commit the offsets at which a new stream starts, so that a resumed run finds the group where it left it."""
        self._commit()

    def resume(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Find out which batches of the journal, after the checkpoint, are committed.

        Parameters
        ----------
        entries : sequence of dict
            Journal entries after the checkpoint, to whose offsets the source was restored.
        """
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

    # ---------------------------------------------------------------- one batch

    def send(self, accepted: Sequence[int], lines: Sequence[bytes]) -> None:
        """Add scored messages to the transaction of the batch.

        Parameters
        ----------
        accepted : sequence of int
            Indices of the messages in the batch.
        lines : sequence of bytes
            What to send for each of them.
        """
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
                self._producer.produce(topic, line, **options)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    # ---------------------------------------------------------------- the client library, and the interface of a file

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

    def sync(self) -> None:
        """Do nothing: each batch is committed."""

    check = sync

    def close(self) -> None:
        """Abort an open transaction, which an error has left."""
        if self._begun:
            self._begun = False
            try:
                self._producer.abort_transaction(self._settings.timeout)
            except self._kafka.KafkaException:
                return  # the next run ends it
