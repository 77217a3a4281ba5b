"""A store survives kills, full disks and damaged files, is used by one process, and belongs to one model."""

import json
import subprocess
import sys

import numpy as np
import pytest

import fairtransport as ft
from fairtransport.stream import ContinualAdjuster, StoreError, StoreWarning, read_journal
from fairtransport.stream._store import journal_line

from .worlds import raw_scores, repair


def feed(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        scores, sex = raw_scores(rng, 50)
        yield scores, {"sex": sex}


@pytest.fixture
def store(tmp_path):
    """Return a store of three batches with a checkpoint after each."""
    with ContinualAdjuster(repair(), store=tmp_path / "store", checkpoint_every=1) as adjuster:
        for scores, sex in feed(3):
            adjuster.adjust(scores, sensitive_features=sex)
    return tmp_path / "store"


def checkpoints(store):
    return sorted(store.glob("checkpoint-*.ft"))


def flip(content, index):
    return content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :]


DAMAGES = {
    "empty": lambda content: b"",  # noqa: ARG005
    "truncated": lambda content: content[: len(content) // 2],
    "one byte short": lambda content: content[:-1],
    "a bit of the model": lambda content: flip(content, content.index(b"arrays/model.npy") + 5000),
    "a bit of the end": lambda content: flip(content, len(content) - 30),
    "not ours": lambda content: b"x" * len(content),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_detected_and_the_one_before_used(store, name):
    newest = checkpoints(store)[-1]
    newest.write_bytes(DAMAGES[name](newest.read_bytes()))
    with pytest.warns(StoreWarning, match=r"1 checkpoint\(s\).*version 2"):
        adjuster = ContinualAdjuster.resume(store)
    with adjuster:
        assert adjuster.batches == 2
        assert [entry["batch"] for entry in adjuster.lost] == [3]
        scores, sex = list(feed(3))[-1]
        adjuster.adjust(scores, sensitive_features=sex)
        assert adjuster.lost == []
    assert [entry["batch"] for entry in read_journal(store)] == [1, 2, 3]
    assert newest.with_suffix(".ft.damaged").exists()
    with ContinualAdjuster.resume(store) as again:  # and the next checkpoint is intact
        assert again.batches == 3


def test_all_damaged(store):
    for path in checkpoints(store):
        path.write_bytes(b"")
    with pytest.raises(StoreError, match="None of the 4 checkpoints"):
        ContinualAdjuster.resume(store)


def test_a_damaged_model_says_what_to_do(store, tmp_path):
    (store / "model.ft").write_bytes(b"x")
    with pytest.raises(StoreError, match=r"model\.ft cannot be used"):
        ContinualAdjuster.resume(store)
    ft.save(repair(), store / "model.ft")  # a copy of what it was started with
    ContinualAdjuster.resume(store).close()


def test_an_incomplete_journal_line_is_truncated(store):
    complete = (store / "journal.jsonl").read_bytes()
    with (store / "journal.jsonl").open("ab") as file:
        file.write(journal_line({"batch": 4}) + journal_line({"batch": 5})[:-7])
    assert [entry["batch"] for entry in read_journal(store)] == [1, 2, 3, 4]
    with ContinualAdjuster.resume(store) as adjuster:
        assert [entry["batch"] for entry in adjuster.lost] == [4]
        assert (store / "journal.jsonl").read_bytes() == complete + journal_line({"batch": 4})
        scores, sex = next(feed(1, seed=9))
        adjuster.adjust(scores, sensitive_features=sex)  # another batch: nobody has scores of the one that was lost
    assert [entry["batch"] for entry in read_journal(store)] == [1, 2, 3, 4]
    assert (store / "journal.jsonl").read_bytes().startswith(complete)


def test_a_changed_journal_line_ends_what_is_read(store):
    lines = (store / "journal.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"alarm":false', b'"alarm":true')
    (store / "journal.jsonl").write_bytes(b"".join(lines))
    assert [entry["batch"] for entry in read_journal(store)] == [1]


def test_a_lost_journal_gives_a_warning(store):
    (store / "journal.jsonl").write_bytes(b"")
    with pytest.warns(StoreWarning, match="journal of the store lacks"):
        ContinualAdjuster.resume(store).close()


def test_the_journal_has_no_scores_and_no_time(store):
    text = (store / "journal.jsonl").read_text()
    entry = json.loads(text.splitlines()[0])
    assert set(entry) == {
        *("batch", "rows", "rows_without_group", "disparity_before", "disparity_after", "noise_floor", "alarm"),
        *(
            "evidence",
            "updates",
            "skipped_updates",
            "stalled",
            "moved",
            "at_border",
            "mean_change",
            "agreement",
            "frozen",
        ),
        *("sizes", "check"),
    }


def test_a_second_process_is_refused(store):
    code = "import sys; from fairtransport.stream import ContinualAdjuster as A; A.resume(sys.argv[1])"
    with ContinualAdjuster.resume(store):
        done = subprocess.run(
            [sys.executable, "-c", code, str(store)], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 1
        assert "in use by another process" in done.stderr.splitlines()[-1]
        with pytest.raises(StoreError, match="in use"):
            ContinualAdjuster.resume(store)
    ContinualAdjuster.resume(store).close()  # free again


def test_a_store_belongs_to_one_model(store):
    other = repair(seed=1)
    with pytest.raises(StoreError, match="another model"):
        ContinualAdjuster(other, store=store)
    with pytest.raises(StoreError, match="another model"):
        ContinualAdjuster.resume(store, model=other)
    with pytest.raises(StoreError, match="contains a stream already"):
        ContinualAdjuster(repair(), store=store)
    ContinualAdjuster.resume(store, model=repair()).close()


def test_what_is_not_a_store(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        ContinualAdjuster.resume(tmp_path / "file")
    with pytest.raises(StoreError, match="not a store"):
        ContinualAdjuster.resume(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="not a store"):
        ContinualAdjuster.resume(tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "file"]  # nothing was created


def test_a_kill_before_the_first_checkpoint(tmp_path):
    with ContinualAdjuster(repair(), store=tmp_path / "s"):
        pass
    for path in checkpoints(tmp_path / "s"):
        path.unlink()
    assert not ContinualAdjuster.is_store(tmp_path / "s")
    with pytest.raises(StoreError, match="Start again"):
        ContinualAdjuster.resume(tmp_path / "s")
    ContinualAdjuster(repair(), store=tmp_path / "s").close()
    assert ContinualAdjuster.is_store(tmp_path / "s")
