"""Lines of files and pipes: positions, batches of bounded size, and inputs that changed."""

import os
import random
import threading

import pytest

from fairtransport.stream.input import _line_source
from fairtransport.stream.input._line_source import MAX_BATCH_BYTES, MAX_LINE_BYTES, LineSource


def pipe(content):
    """Return a pipe to which a thread writes in small pieces."""
    reading, writing = os.pipe()

    def write():
        for begin in range(0, len(content), 7):
            os.write(writing, content[begin : begin + 7])
        os.close(writing)

    threading.Thread(target=write, daemon=True).start()
    return reading


def opened(path):
    return LineSource(os.open(path, os.O_RDONLY))


@pytest.mark.parametrize("kind", ["file", "pipe"])
@pytest.mark.parametrize("end", [b"", b"fi", b"five\r"])
@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_lines_and_position(tmp_path, kind, end, stop_at):
    content = b"one\r\ntwo\n\nfo\rur\n" + end
    path = tmp_path / "lines"
    path.write_bytes(content)

    def source():
        return LineSource(os.open(path, os.O_RDONLY) if kind == "file" else pipe(content))

    whole = source()
    assert whole.take(2) + whole.take(9) == [b"one", b"two", b"", b"fo\rur"]
    assert (whole.lines, whole.position) == (4, len(content) - len(end))
    assert (whole.ended, whole.incomplete) == (True, bool(end))
    assert whole.take(1) == []
    first = source()
    first.take(stop_at)
    again = source()
    again.restore(first.state())
    assert again.take(9) == [b"one", b"two", b"", b"fo\rur"][stop_at:]
    assert again.state() == whole.state()


def test_batches_are_bounded_in_bytes_and_do_not_depend_on_how_lines_arrive(tmp_path, monkeypatch):
    chance = random.Random(0)  # noqa: S311
    lengths = [chance.choice([0, 10, 1000, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 3 * MAX_LINE_BYTES]) for _ in range(40)]
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"x" * length + b"\n" for length in lengths))

    def batches(source):
        return list(iter(lambda: [len(line) for line in source.take(20)], []))

    expected = batches(opened(path))
    assert [length for batch in expected for length in batch] == [min(n, MAX_LINE_BYTES + 1) for n in lengths]
    assert all(sum(batch) <= MAX_BATCH_BYTES for batch in expected)
    assert 1 < max(map(len, expected)) <= 20
    for chunk in (10_007, 1 << 16, 1 << 20):
        monkeypatch.setattr(_line_source, "_CHUNK", chunk)
        assert batches(opened(path)) == expected
        first, again = opened(path), opened(path)
        before = [[len(line) for line in first.take(20)] for _ in range(2)]
        again.restore(first.state())
        assert before + batches(again) == expected


def test_following_a_file_and_waiting(tmp_path):
    path, stop = tmp_path / "lines", threading.Event()
    path.write_bytes(b"one\ntw")
    source = LineSource(os.open(path, os.O_RDONLY), follow=True, stop=stop.is_set)
    assert source.take(2, wait=0.05) == [b"one"]  # the second is incomplete
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert source.take(2) == [b"two", b"three"]
    threading.Timer(0.2, stop.set).start()
    assert source.take(2) == []
    path.write_bytes(b"")
    stop.clear()
    with pytest.raises(ValueError, match="shorter"):
        source.take(1)


@pytest.mark.parametrize("follow", [False, True])
def test_a_file_that_is_truncated_and_rewritten_while_it_is_read_is_noticed(tmp_path, monkeypatch, follow):
    monkeypatch.setattr(_line_source, "_CHUNK", 8)
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    source = LineSource(os.open(path, os.O_RDONLY), follow=follow)
    assert source.take(2) == [b"one", b"two"]
    with path.open("r+b") as file:
        file.truncate()
        file.write(b"eins\nzwei\ndrei\n")
    with pytest.raises(ValueError, match="rewritten while it was read"):
        source.take(1)
