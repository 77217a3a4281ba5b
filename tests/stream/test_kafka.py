"""Topics as input and output: each message is scored once, whatever ends a run, and bad ones are set aside."""

import json

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from fairtransport.cli.app import app
from fairtransport.stream.kafka import KafkaSettings, TopicOutput, TopicSource, read_properties

from .kafka_world import broker, committed_offsets, make_model, make_rows, messages, mock_cluster, produce

BAD = {3, 11}


@pytest.fixture(scope="module")
def kafka():
    sizes = {"file": 2, "topics": 2, "scored": 2, "grown": 2}
    names = ["file", "csv", "topics", "one", "few", "fence", "grown", "scored", "scored-one", "rejected", "fenced"]
    with broker(*(f"{name}={sizes.get(name, 1)}" for name in names)) as address:
        yield address


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.ft"
    make_model(path)
    return path


def stream(model, *arguments, status=0):
    own = ["stream", "--model", str(model), "--sensitive", "sex", "--score", "s", "--max-rejected", "0.5"]
    done = CliRunner().invoke(app, [*own, *map(str, arguments)])
    assert done.exit_code == status, done.output
    return done


def file_scores(model, lines, folder, *arguments):
    """What the command writes for the same lines in a file."""
    folder.mkdir()
    (folder / "rows.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    stream(model, folder / "rows.jsonl", "--out", folder / "out.jsonl", *arguments)
    return (folder / "out.jsonl").read_bytes()


def test_file_output_continues_at_the_offsets_of_the_store(kafka, model, tmp_path):
    lines = make_rows(30, bad=BAD)
    store = ["--store", tmp_path / "run", "--resume", "--out", tmp_path / "out.jsonl", "--batch", 10]
    read = ["--kafka", kafka, "--topic", "file", "--group-id", "to-file"]
    produce(kafka, "file", lines[:20], n_partitions=2)
    stream(model, *read, *store)
    produce(kafka, "file", lines[20:], n_partitions=2)
    stream(model, *read, *store)
    scored = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert sorted(row["id"] for row in scored) == sorted(set(range(30)) - BAD)
    rejected = [json.loads(line) for line in (tmp_path / "run" / "rejected.jsonl").read_text().splitlines()]
    assert {(entry["partition"], entry["offset"], entry["reason"]) for entry in rejected} == {
        (1, 1, "not JSON"),  # odd numbers are in partition 1
        (1, 5, "not JSON"),
    }
    assert committed_offsets(kafka, "to-file", "file", n_partitions=2) == [15, 15]


def test_topic_output_equals_file_output(kafka, model, tmp_path):
    """One partition: the same batches as of a file, and the same bytes. Rejected messages go to their topic."""
    lines = make_rows(25, bad=BAD)
    produce(kafka, "one", lines)
    arguments = ["--kafka", kafka, "--topic", "one", "--group-id", "g", "--output-topic", "scored-one"]
    stream(model, *arguments, "--rejected-topic", "rejected", "--store", tmp_path / "run", "--resume", "--batch", 10)
    expected = file_scores(model, lines, tmp_path / "file", "--batch", 10)
    found = messages(kafka, "scored-one")
    assert b"".join(value + b"\n" for _, _, value in found) == expected
    assert [key for _, key, _ in found] == [str(i).encode() for i in range(25) if i not in BAD]
    entries = [json.loads(value) for _, _, value in messages(kafka, "rejected")]
    assert [(entry["line"], entry["offset"]) for entry in entries] == [(4, 3), (12, 11)]
    assert committed_offsets(kafka, "g", "one") == [25]
    assert not (tmp_path / "run" / "rejected.jsonl").exists()


def test_partitions_and_keys_are_kept_and_a_second_store_sends_nothing_twice(kafka, model, tmp_path):
    lines = make_rows(20)
    produce(kafka, "topics", lines, n_partitions=2)
    arguments = ["--kafka", kafka, "--topic", "topics", "--group-id", "g2", "--output-topic", "scored"]
    stream(model, *arguments, "--store", tmp_path / "a", "--batch", 7)
    stream(model, *arguments, "--store", tmp_path / "b")  # the group has the offsets
    found = messages(kafka, "scored", n_partitions=2)
    assert [(partition, key) for partition, key, _ in found] == [
        (part, str(i).encode()) for part in (0, 1) for i in range(20) if i % 2 == part
    ]


def test_csv_messages_have_no_header(kafka, model, tmp_path):
    produce(kafka, "csv", [b"F,0.5,1", b"M,0.25,2\r\n", b"M,x,3", b"F,0.1\n,4", b"", b"F,0.5," + b"x" * 900_000])
    arguments = ["--kafka", kafka, "--topic", "csv", "--group-id", "g", "--out", tmp_path / "out.csv"]
    stream(model, *arguments, "--format", "csv", "--columns", "sex,s,id", status=2)  # 4 of 6 are more than half
    head, *rows = (tmp_path / "out.csv").read_text().splitlines()
    assert head == "sex,s,id,s_repaired"
    assert [row.rsplit(",", 1)[0] for row in rows] == ["F,0.5,1", "M,0.25,2"]
    reasons = [json.loads(line)["reason"] for line in (tmp_path / "out.csv.rejected.jsonl").read_text().splitlines()]
    expected = ["column 's' is not a number", "a newline within the line", "empty line", "longer than 900000 bytes"]
    assert reasons == expected


def test_a_group_whose_offsets_were_moved_is_refused(kafka, model, tmp_path):
    produce(kafka, "few", make_rows(6))
    arguments = ["--kafka", kafka, "--topic", "few", "--group-id", "moved", "--output-topic", "scored"]
    stream(model, *arguments, "--store", tmp_path / "run", "--resume")
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "moved", "log_level": 0})
    consumer.commit(offsets=[TopicPartition("few", 0, 2)], asynchronous=False)
    consumer.close()
    done = stream(model, *arguments, "--store", tmp_path / "run", "--resume", status=1)
    assert "not those of the store" in done.output


def test_partitions_that_were_added_are_read_from_their_start(kafka):
    """A batch of the journal has none of their messages, even if they are there already when it is read again."""
    produce(kafka, "grown", make_rows(10), n_partitions=2)
    source = TopicSource(KafkaSettings(kafka, "grown", "grown", start="latest"))
    source.restore({"lines": 1, "offsets": {"0": 1}})
    source.repeat({"offsets": {"0": 3}})
    assert [json.loads(line)["id"] for line in source.take(2)] == [2, 4]
    assert source.batch_end() == {"offsets": {"0": 3}}
    taken = [json.loads(line)["id"] for line in source.take(100)]
    source.close()
    assert sorted(taken) == [1, 3, 5, 6, 7, 8, 9]
    assert source.batch_end() == {"offsets": {"0": 5, "1": 5}}
    assert (source.lines, source.ended) == (10, True)


def test_a_new_run_fences_the_one_before(kafka):
    settings = KafkaSettings(kafka, "fence", "g")
    first = TopicOutput(settings, "fenced")
    second = TopicOutput(settings, "fenced")
    first.source = second.source = _Nothing()
    with pytest.raises(ConnectionError, match="another run of the stream has started"):
        first.start()
    second.start()


class _Nothing:
    taken = ()

    def topic_offsets(self):
        return [TopicPartition("fence", 0, 0)]

    @property
    def group_metadata(self):
        return Consumer({"group.id": "g", "log_level": 0}).consumer_group_metadata()


def test_mock_cluster_of_librdkafka(model, tmp_path):
    """A broker that others wrote; its transactions cannot be aborted, so kills are tested with ours."""
    lines = make_rows(12)
    with mock_cluster() as address:
        produce(address, "rows", lines)
        arguments = ["--kafka", address, "--topic", "rows", "--group-id", "g", "--output-topic", "scored"]
        stream(model, *arguments, "--store", tmp_path / "run", "--batch", 5)
        found = messages(address, "scored", n_partitions=4)
    assert b"".join(value + b"\n" for _, _, value in found) == file_scores(model, lines, tmp_path / "f", "--batch", 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "one"], "need --kafka"),
        (["--kafka", "here"], "needs --topic and --group-id"),
        (["--kafka", "here", "--topic", "a", "--group-id", "g", "--output-topic", "a"], "different topics"),
        (["--kafka", "here", "--topic", "a", "--group-id", "g", "--output-topic", "b", "--out", "c"], "not both"),
        (["--kafka", "here", "--topic", "a", "--group-id", "g", "--format", "csv"], "needs --columns"),
    ],
)
def test_wrong_usage(model, arguments, message):
    assert message in " ".join(stream(model, *arguments, status=64).output.split())


def test_missing_topic_and_partition_are_named(kafka, model):
    for more, message in ((["--topic", "nowhere"], "no topic 'nowhere'"), (["--topic", "one"], "no partition 7")):
        done = stream(model, "--kafka", kafka, *more, "--group-id", "x", "--partitions", "7", status=1)
        assert message in done.output


def test_properties_file(tmp_path):
    path = tmp_path / "kafka.properties"
    path.write_text("# of the cluster\n\nsecurity.protocol = SSL\n")
    assert read_properties(path) == {"security.protocol": "SSL"}
    path.write_text("group.id=other\n")
    with pytest.raises(ValueError, match=r"group\.id, which the stream sets itself"):
        KafkaSettings("b", "t", "g", properties=read_properties(path))
    path.write_text("nonsense\n")
    with pytest.raises(ValueError, match=r"Line 1 of kafka\.properties"):
        read_properties(path)
