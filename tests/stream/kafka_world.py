"""Brokers that a test starts, messages to score, and what readers of the output see."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

import fairtransport as ft

BROKER = Path(__file__).with_name("kafka_broker.py")
MOCK = """
import sys, time, confluent_kafka
admin = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
print(next(iter(admin.list_topics(timeout=10).brokers.values())), flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def broker(*topics):
    """Start the broker of `kafka_broker` with topics such as ``rows=2``; its address."""
    with _process([sys.executable, str(BROKER), *topics]) as line:
        yield f"127.0.0.1:{line}"


@contextlib.contextmanager
def mock_cluster():
    """Start librdkafka's own mock cluster; topics come into being when they are first named."""
    with _process([sys.executable, "-c", MOCK]) as line:
        yield line.partition("/")[0]


@contextlib.contextmanager
def _process(command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def make_model(path):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=1000)
    scores = rng.beta(2 + group, 3)
    ft.save(ft.QuantileRepair().fit(scores, sensitive_features={"sex": np.array(["F", "M"])[group]}), path)


def make_rows(n_rows, *, bad=()):
    """JSON lines; those whose numbers are in ``bad`` cannot be read."""
    rng = np.random.default_rng(1)
    rows = [{"id": i, "s": float(rng.beta(2, 3)), "sex": "FM"[int(rng.integers(2))]} for i in range(n_rows)]
    return [b"not JSON" if i in bad else json.dumps(row).encode() for i, row in enumerate(rows)]


def produce(brokers, topic, lines, *, n_partitions=1):
    """Send lines to the partitions in turn; the key is the number."""
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})
    for number, line in enumerate(lines):
        options = {"key": str(number).encode(), "headers": {"number": str(number)}}
        producer.produce(topic, line, partition=number % n_partitions, **options)
    assert producer.flush(30) == 0


def messages(brokers, topic, *, n_partitions=1, committed=True):
    """All messages of a topic as a reader sees them: partition, key and value in the order of each partition."""
    isolation = "read_committed" if committed else "read_uncommitted"
    options = {"group.id": "reader", "enable.partition.eof": True, "isolation.level": isolation, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": brokers, "auto.offset.reset": "earliest", **options})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(n_partitions)])
    found, ended = [], set()
    while len(ended) < n_partitions:
        for message in consumer.consume(1000, 0.1):
            if message.error() is None:
                found.append((message.partition(), message.offset(), message.key(), message.value()))
            else:
                ended.add(message.partition())
    consumer.close()
    return [(partition, key, value) for partition, _, key, value in sorted(found)]


def committed_offsets(brokers, group, topic, *, n_partitions=1):
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group, "log_level": 0})
    answer = consumer.committed([TopicPartition(topic, index) for index in range(n_partitions)], timeout=30)
    consumer.close()
    return [item.offset for item in answer]
