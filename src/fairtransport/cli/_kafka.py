"""Options of ``fairtransport stream`` for Kafka, and the topics that they name."""

from __future__ import annotations

import contextlib
import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairtransport.stream.kafka import KafkaSettings, TopicOutput, TopicSource

__all__ = ["KafkaArguments"]

_PANEL = "Kafka"

Brokers = Annotated[
    str | None,
    typer.Option(
        "--kafka", metavar="BROKERS", help="Read from Kafka: host:port, separated by commas.", rich_help_panel=_PANEL
    ),
]
Topic = Annotated[
    str | None, typer.Option("--topic", metavar="NAME", help="Topic of the rows.", rich_help_panel=_PANEL)
]
GroupId = Annotated[
    str | None,
    typer.Option(
        "--group-id", metavar="NAME", help="Consumer group that offsets are committed for.", rich_help_panel=_PANEL
    ),
]
OutputTopic = Annotated[
    str | None,
    typer.Option(
        "--output-topic",
        metavar="NAME",
        help="Topic for scored rows, in transactions [default: --out].",
        rich_help_panel=_PANEL,
    ),
]
RejectedTopic = Annotated[
    str | None,
    typer.Option(
        "--rejected-topic",
        metavar="NAME",
        help="Topic for rejected rows [default: --rejected].",
        rich_help_panel=_PANEL,
    ),
]
Partitions = Annotated[
    str | None,
    typer.Option(
        "--partitions", metavar="NUMBERS", help="Partitions to read, as in 0,1 [default: all].", rich_help_panel=_PANEL
    ),
]
StartAt = Annotated[
    str,
    typer.Option(
        "--start-at",
        metavar="END",
        help="Where to start if the group has no offsets: earliest or latest.",
        rich_help_panel=_PANEL,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns of CSV messages, which have no header; separated by commas.",
        rich_help_panel=_PANEL,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        metavar="PATH",
        help="Properties of librdkafka, such as security.protocol=SASL_SSL, one per line.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True)
class KafkaArguments:
    """What the command line says about Kafka."""

    brokers: str | None
    topic: str | None
    group_id: str | None
    output_topic: str | None
    rejected_topic: str | None
    partitions: str | None
    start_at: str
    columns: str | None
    config: Path | None

    def __bool__(self) -> bool:
        return self.brokers is not None

    def check(self, *, file: Path | None, out: Path | None, rejected: Path | None, file_format: str) -> None:
        """Raise if options contradict each other."""
        if self.brokers is None:
            used = ("topic", "group_id", "output_topic", "rejected_topic", "partitions", "columns", "config")
            if any(getattr(self, name) is not None for name in used):
                raise typer.BadParameter("Options of Kafka need --kafka with the addresses of brokers.")
            return
        if self.topic is None or self.group_id is None:
            raise typer.BadParameter("--kafka needs --topic and --group-id.")
        if file is not None:
            raise typer.BadParameter("--kafka reads a topic: leave FILE out.")
        if self.output_topic is not None and out is not None:
            raise typer.BadParameter("Use --output-topic or --out, not both.")
        if self.rejected_topic is not None and (rejected is not None or self.output_topic is None):
            raise typer.BadParameter("--rejected-topic needs --output-topic, and replaces --rejected.")
        if len({self.topic, self.output_topic, self.rejected_topic} - {None}) < sum(
            name is not None for name in (self.topic, self.output_topic, self.rejected_topic)
        ):
            raise typer.BadParameter("--topic, --output-topic and --rejected-topic must be different topics.")
        if self.start_at not in {"earliest", "latest"}:
            raise typer.BadParameter("--start-at must be earliest or latest.")
        if (file_format == "csv") != (self.columns is not None):
            raise typer.BadParameter("--format csv needs --columns with --kafka, because messages have no header.")

    @contextlib.contextmanager
    def topics(
        self, *, follow: bool, stop: Callable[[], bool], delimiter: str
    ) -> Iterator[tuple[TopicSource, TopicOutput | None]]:
        """Open the topics; the output comes first, because it ends the transaction of a run that was killed."""
        from fairtransport.stream.kafka import TopicOutput, TopicSource  # noqa: PLC0415 - scikit-learn takes a while

        settings, output = self._settings(), None
        if self.output_topic is not None:
            output = TopicOutput(settings, self.output_topic, self.rejected_topic)
        header = None if self.columns is None else _header(self.columns, delimiter)
        source = TopicSource(settings, follow=follow, stop=stop, header=header, commits=output is None)
        if output is not None:
            output.source = source
        try:
            yield source, output
        finally:
            source.close()

    def _settings(self) -> KafkaSettings:
        from fairtransport.stream.kafka import KafkaSettings, read_properties  # noqa: PLC0415

        try:
            partitions = tuple(int(number) for number in (self.partitions or "").split(",") if number.strip())
        except ValueError:
            raise typer.BadParameter("--partitions must be numbers, separated by commas.") from None
        return KafkaSettings(
            str(self.brokers),
            str(self.topic),
            str(self.group_id),
            partitions=partitions,
            start=self.start_at,
            properties={} if self.config is None else read_properties(self.config),
        )


def _header(columns: str, delimiter: str) -> bytes:
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="").writerow(name.strip() for name in columns.split(","))
    return line.getvalue().encode()
