"""A Kafka broker in one process and in memory, for tests, with the semantics of transactions.

No broker can be installed from the registries that this project uses, and the mock cluster of librdkafka accepts
transactions but makes their messages visible at once and never takes them back. This one speaks the protocol of Apache
Kafka (old, simple versions of the requests) with the real client library: a producer that initialises again fences its
predecessor and aborts its transaction, readers of committed messages see a transaction wholly or not at all, and
offsets are committed with it.

Run as a program: prints its port, and serves until it is killed. Arguments are ``topic=partitions``.
"""

from __future__ import annotations

import socketserver
import struct
import sys
import threading
import time
from dataclasses import dataclass, field

HOST = "127.0.0.1"
OK, UNKNOWN_TOPIC, INVALID_EPOCH, INVALID_STATE, OUT_OF_RANGE = 0, 3, 47, 48, 1
# api key: (name, lowest version, highest version)
APIS = {
    0: ("produce", 3, 3),
    1: ("fetch", 4, 4),
    2: ("list_offsets", 1, 2),
    3: ("metadata", 1, 4),
    8: ("offset_commit", 2, 2),
    9: ("offset_fetch", 1, 1),
    10: ("find_coordinator", 0, 1),
    18: ("api_versions", 0, 3),
    22: ("init_producer_id", 0, 0),
    24: ("add_partitions", 0, 0),
    25: ("add_offsets", 0, 0),
    26: ("end_transaction", 0, 0),
    28: ("transaction_offset_commit", 0, 0),
}


class Reader:
    def __init__(self, content):
        self.content, self.at = content, 0

    def number(self, code):
        size = struct.calcsize(f">{code}")
        (value,) = struct.unpack_from(f">{code}", self.content, self.at)
        self.at += size
        return value

    def raw(self, size):
        self.at += max(size, 0)
        return None if size < 0 else self.content[self.at - size : self.at]

    def text(self):
        raw = self.raw(self.number("h"))
        return None if raw is None else raw.decode()

    def records(self):
        return self.raw(self.number("i"))

    def array(self, item):
        return [item(self) for _ in range(self.number("i"))]

    def topics(self, item):
        """Topics, each with an array of what is said about its partitions."""
        return self.array(lambda r: (r.text(), r.array(item)))


def text(value):
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value.encode())) + value.encode()


def int32(value):
    return struct.pack(">i", value)


def array(items):
    return int32(len(items)) + b"".join(items)


def per_partition(topics, answer):
    """The usual form of an answer: for each topic and partition what ``answer(topic, item)`` returns."""
    return array([text(topic) + array([answer(topic, item) for item in items]) for topic, items in topics])


def crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def marker(offset, producer, epoch, committed):
    """A batch with the record that ends a transaction."""
    key, value = struct.pack(">hh", 0, int(committed)), struct.pack(">hi", 0, 0)
    body = struct.pack(">bbbb", 0, 0, 0, len(key) * 2) + key + struct.pack(">b", len(value) * 2) + value + b"\0"
    now = int(time.time() * 1000)
    record = struct.pack(">b", len(body) * 2) + body
    rest = struct.pack(">hiqqqhii", 0x30, 0, now, now, producer, epoch, -1, 1) + record
    tail = struct.pack(">ibI", 0, 2, crc32c(rest)) + rest
    return struct.pack(">qi", offset, len(tail)) + tail


@dataclass
class Partition:
    batches: list = field(default_factory=list)  # (first offset, next offset, bytes)
    end: int = 0
    open: dict = field(default_factory=dict)  # producer: first offset of its transaction
    aborted: list = field(default_factory=list)  # (producer, first offset, offset of the marker)
    sequences: dict = field(default_factory=dict)  # producer: (epoch, sequence, offset) of its last batch

    @property
    def stable(self):
        return min(self.open.values(), default=self.end)

    def append(self, batch, count):
        first, self.end = self.end, self.end + count
        self.batches.append((first, self.end, struct.pack(">q", first) + batch[8:]))
        return first

    def finish(self, producer, epoch, committed):
        first = self.open.pop(producer, None)
        if first is not None and not committed:
            self.aborted.append((producer, first, self.end))
        self.append(marker(self.end, producer, epoch, committed), 1)


@dataclass
class Transaction:
    producer: int
    epoch: int = 0
    partitions: set = field(default_factory=set)
    groups: dict = field(default_factory=dict)  # group: {(topic, partition): offset}


class Broker:
    def __init__(self, topics):
        self.topics = {name: [Partition() for _ in range(count)] for name, count in topics.items()}
        self.transactions, self.offsets = {}, {}
        self.changed = threading.Condition()
        self.port = 0

    def partition(self, topic, index):
        partitions = self.topics.get(topic, [])
        return partitions[index] if index < len(partitions) else None

    def owner(self, name, producer, epoch):
        """The transaction of a producer; None if a later producer has fenced it."""
        found = self.transactions.get(name)
        return found if found is not None and (found.producer, found.epoch) == (producer, epoch) else None

    # ------------------------------------------------------------ requests, in the order of their numbers

    def produce(self, r, version):
        name, _, _ = r.text(), r.number("h"), r.number("i")
        topics = r.topics(lambda r: (r.number("i"), r.records()))

        def answer(topic, item):
            error, offset = self.add_batch(name, topic, *item)
            return struct.pack(">ihqq", item[0], error, offset, -1)

        return per_partition(topics, answer) + int32(0)

    def add_batch(self, name, topic, index, batch):
        partition = self.partition(topic, index)
        if partition is None:
            return UNKNOWN_TOPIC, -1
        producer, epoch, sequence, count = struct.unpack_from(">qhii", batch, 43)
        if name is not None:
            owner = self.owner(name, producer, epoch)
            if owner is None:
                return INVALID_EPOCH, -1
            if (topic, index) not in owner.partitions:
                return INVALID_STATE, -1
        last = partition.sequences.get(producer)
        if producer >= 0 and last is not None and last[:2] == (epoch, sequence):
            return OK, last[2]  # sent again
        first = partition.append(batch, count)
        partition.sequences[producer] = (epoch, sequence, first)
        if name is not None:
            partition.open.setdefault(producer, first)
        self.changed.notify_all()
        return OK, first

    def fetch(self, r, version):
        _, wait, _, _, isolation = (r.number(code) for code in "iiiib")
        topics = r.topics(lambda r: (r.number("i"), r.number("q"), r.number("i")))
        committed = isolation == 1

        def has_news():
            found = [(self.partition(topic, item[0]), item[1]) for topic, items in topics for item in items]
            return any(p is None or offset < (p.stable if committed else p.end) for p, offset in found)

        self.changed.wait_for(has_news, wait / 1000)

        def answer(topic, item):
            index, offset, most = item
            partition = self.partition(topic, index)
            if partition is None or offset > partition.end:
                error = UNKNOWN_TOPIC if partition is None else OUT_OF_RANGE
                return struct.pack(">ihqqii", index, error, -1, -1, -1, 0)
            limit = partition.stable if committed else partition.end
            chosen, size = [], 0
            for first, after, batch in partition.batches:
                if offset < after and first < limit and (not chosen or size + len(batch) <= most):
                    chosen.append(batch)
                    size += len(batch)
            aborted = [struct.pack(">qq", p, first) for p, first, last in partition.aborted if last >= offset]
            head = struct.pack(">ihqq", index, OK, partition.end, partition.stable)
            return head + array(aborted if committed else []) + int32(size) + b"".join(chosen)

        return int32(0) + per_partition(topics, answer)

    def list_offsets(self, r, version):
        r.number("i")
        committed = version >= 2 and r.number("b") == 1
        topics = r.topics(lambda r: (r.number("i"), r.number("q")))

        def answer(topic, item):
            index, moment = item
            partition = self.partition(topic, index)
            if partition is None:
                return struct.pack(">ihqq", index, UNKNOWN_TOPIC, -1, -1)
            last = partition.stable if committed else partition.end
            return struct.pack(">ihqq", index, OK, -1, 0 if moment == -2 else last)

        return (int32(0) if version >= 2 else b"") + per_partition(topics, answer)

    def metadata(self, r, version):
        count = r.number("i")
        wanted = list(self.topics) if count < 0 else [r.text() for _ in range(count)]
        found = []
        for name in wanted:
            partitions = [
                struct.pack(">hii", OK, index, 0) + array([int32(0)]) * 2
                for index in range(len(self.topics.get(name, [])))
            ]
            error = OK if name in self.topics else UNKNOWN_TOPIC
            found.append(struct.pack(">h", error) + text(name) + b"\0" + array(partitions))
        broker = int32(0) + text(HOST) + int32(self.port) + text(None)
        throttle = int32(0) if version >= 3 else b""
        cluster = text("test") if version >= 2 else b""
        return throttle + array([broker]) + cluster + int32(0) + array(found)

    def offset_commit(self, r, version):
        group, _, _, _ = r.text(), r.number("i"), r.text(), r.number("q")
        topics = r.topics(lambda r: (r.number("i"), r.number("q"), r.text()))
        for topic, items in topics:
            for index, offset, _ in items:
                self.offsets[group, topic, index] = offset
        return per_partition(topics, lambda _, item: struct.pack(">ih", item[0], OK))

    def offset_fetch(self, r, version):
        group = r.text()
        topics = r.topics(lambda r: r.number("i"))

        def answer(topic, index):
            offset = self.offsets.get((group, topic, index), -1)
            return struct.pack(">iq", index, offset) + text("") + struct.pack(">h", OK)

        return per_partition(topics, answer)

    def find_coordinator(self, r, version):
        throttle, message = (int32(0), text(None)) if version >= 1 else (b"", b"")
        return throttle + struct.pack(">h", OK) + message + int32(0) + text(HOST) + int32(self.port)

    def api_versions(self, r, version):
        if version > 2:  # the compact form
            items = [struct.pack(">hhhb", key, low, high, 0) for key, (_, low, high) in APIS.items()]
            return struct.pack(">hb", OK, len(items) + 1) + b"".join(items) + struct.pack(">ib", 0, 0)
        items = [struct.pack(">hhh", key, low, high) for key, (_, low, high) in APIS.items()]
        return struct.pack(">h", OK) + array(items) + (int32(0) if version else b"")

    def init_producer_id(self, r, version):
        name, _ = r.text(), r.number("i")
        if name is None:
            return struct.pack(">ihqh", 0, OK, time.monotonic_ns(), 0)
        if name in self.transactions:
            before = self.transactions[name]
            self.finish(before, committed=False)
            self.transactions[name] = Transaction(before.producer, before.epoch + 1)
        else:
            self.transactions[name] = Transaction(1000 + len(self.transactions))
        now = self.transactions[name]
        return struct.pack(">ihqh", 0, OK, now.producer, now.epoch)

    def add_partitions(self, r, version):
        owner = self.owner(r.text(), r.number("q"), r.number("h"))
        topics = r.topics(lambda r: r.number("i"))
        if owner is not None:
            owner.partitions |= {(topic, index) for topic, items in topics for index in items}
        error = INVALID_EPOCH if owner is None else OK
        return int32(0) + per_partition(topics, lambda _, index: struct.pack(">ih", index, error))

    def add_offsets(self, r, version):
        owner = self.owner(r.text(), r.number("q"), r.number("h"))
        group = r.text()
        if owner is not None:
            owner.groups.setdefault(group, {})
        return struct.pack(">ih", 0, INVALID_EPOCH if owner is None else OK)

    def end_transaction(self, r, version):
        owner = self.owner(r.text(), r.number("q"), r.number("h"))
        if owner is None:
            return struct.pack(">ih", 0, INVALID_EPOCH)
        self.finish(owner, committed=bool(r.number("b")))
        return struct.pack(">ih", 0, OK)

    def finish(self, transaction, *, committed):
        for topic, index in transaction.partitions:
            self.partition(topic, index).finish(transaction.producer, transaction.epoch, committed)
        if committed:
            for group, offsets in transaction.groups.items():
                self.offsets |= {(group, *place): offset for place, offset in offsets.items()}
        transaction.partitions, transaction.groups = set(), {}
        self.changed.notify_all()

    def transaction_offset_commit(self, r, version):
        name, group, producer, epoch = r.text(), r.text(), r.number("q"), r.number("h")
        topics = r.topics(lambda r: (r.number("i"), r.number("q"), r.text()))
        owner = self.owner(name, producer, epoch)
        error = INVALID_EPOCH if owner is None else OK if group in owner.groups else INVALID_STATE
        if error == OK:
            owner.groups[group] |= {(topic, index): offset for topic, items in topics for index, offset, _ in items}
        return int32(0) + per_partition(topics, lambda _, item: struct.pack(">ih", item[0], error))


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while len(size := self.rfile.read(4)) == 4:
            r = Reader(self.rfile.read(struct.unpack(">i", size)[0]))
            key, version, correlation = r.number("h"), r.number("h"), r.number("i")
            r.text()  # the client's name
            name, low, high = APIS[key]
            if not low <= version <= high:
                raise ValueError(f"{name} {version}")
            broker = self.server.broker
            with broker.changed:
                answer = getattr(broker, name)(r, version)
            self.wfile.write(struct.pack(">ii", len(answer) + 4, correlation) + answer)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, broker):
        super().__init__((HOST, 0), Connection)
        self.broker = broker
        broker.port = self.server_address[1]

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a client that was killed
            super().handle_error(request, client_address)


def main():
    topics = dict(argument.split("=") for argument in sys.argv[1:])
    server = Server(Broker({name: int(count) for name, count in topics.items()}))
    print(server.broker.port, flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
