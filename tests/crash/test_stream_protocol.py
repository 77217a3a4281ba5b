"""The protocol of the store, explored exhaustively: any number of kills and losses of power, at every call.

The code of the stream runs on the disk of `simulated_disk`. Each state in which a run can be interrupted is resumed,
and each state in which that run can be interrupted, too, until there are no new ones. Where a batch ends is chosen by
the explorer in all ways, as the clock of ``--wait`` might.
"""

import hashlib
import json
import os
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

import fairtransport as ft
from fairtransport.storage import pack_container
from fairtransport.stream import ContinualAdjuster, read_journal
from fairtransport.stream._line_file import LineFile
from fairtransport.stream._store import Store
from fairtransport.stream.input import LineSource, input_schema_for
from fairtransport.stream.loop import RunOptions, StreamRun

from .simulated_disk import SimulatedDisk, restore

pytestmark = pytest.mark.trust

ROWS = [{"s": 0.2, "sex": "F"}, {"s": 0.9, "sex": "M"}, None, {"s": 0.7, "sex": "M"}]  # None: not JSON
BATCH, EVERY, KEEP, WAIT = 2, 2, 2, 0.25


class Silent:
    def report_batch(self, report, **counts):
        pass

    def warn(self, text):
        pass


class ChosenSource(LineSource):
    """A source in which a batch that may end by the clock ends as chosen; beyond the choices, as early as possible."""

    choices, made = (), None

    def take(self, n_lines, *, wait=None):
        if wait != WAIT or self.lines == len(ROWS):
            return super().take(n_lines)
        most = min(n_lines, len(ROWS) - self.lines)
        size = self.choices[len(self.made)] if len(self.made) < len(self.choices) else 1
        self.made.append((size, most))
        return super().take(size)


class StandInScorer:
    """A model without content; the state of the stand-in below is what learns."""

    default_radius = 1.0

    def pack(self):
        return pack_container("model", {}, {})

    @classmethod
    def unpack(cls, _content):
        return cls()


class StandInState:
    """A state whose scores depend on all rows before, and on where the batches ended: a chain of checksums."""

    title, current = "", None

    def __init__(self, options, chain="", batches=0, extra=None):
        self.options, self.chain, self.batches, self.extra = options, chain, batches, extra or {}
        self.rows = self.alarms = 0
        self.frozen = False
        self.history = SimpleNamespace(times={}, known_times=dict)

    @classmethod
    def start(cls, _scorer, options, _title):
        return cls(options)

    def process(self, X, sensitive_features):
        scores = np.array([zlib.crc32(f"{self.chain} {value}".encode()) / 2**32 for value in np.ravel(X)])
        self.chain = hashlib.sha256(repr((self.chain, scores.tolist())).encode()).hexdigest()
        self.batches += 1
        reading = SimpleNamespace(rows=len(scores))
        entry = {"batch": self.batches, "chain": self.chain}
        return SimpleNamespace(scores=scores, groups=(reading,), frozen=False, to_dict=lambda: entry)

    def schema(self, version):
        return {"version": version, "chain": self.chain, "batches": self.batches, "extra": self.extra}

    def arrays(self):
        return {}

    @classmethod
    def from_checkpoint(cls, checkpoint, _start):
        schema = checkpoint.schema
        options = SimpleNamespace(checkpoint_every=None, keep_checkpoints=KEEP)
        return cls(options, schema["chain"], schema["batches"], schema["extra"])


@pytest.fixture
def explorer(tmp_path, monkeypatch):
    """The store, the journal, the files and the loop are those of the stream; the model and its state are not."""
    for name, stand_in in (
        ("StreamState", StandInState),
        ("scorer_for", lambda _: StandInScorer()),
        ("unpack_model", lambda _: None),
    ):
        monkeypatch.setattr(f"fairtransport.stream._adjuster.{name}", stand_in)
    return Explorer(tmp_path)


class Explorer:
    """Explores all states from the empty folder, and checks what every run does."""

    def __init__(self, home):
        self.wait = WAIT
        self.folder, self.rows = home / "folder", home / "rows.jsonl"
        self.folder.mkdir()
        self.rows.write_text("".join(f"{json.dumps(row) if row else 'not JSON'}\n" for row in ROWS))
        rng = np.random.default_rng(0)
        scores, sex = rng.random(200), np.array(["F", "M"] * 100)
        model = ft.QuantileRepair().fit(scores, sensitive_features={"sex": sex})
        self.schema = input_schema_for(model, sensitive=["sex"], score="s", features=None)
        self.expected = {}  # files of an uninterrupted run, by the sizes of its batches
        self.runs = self.calls = 0

    def run(self, choices=()):
        """Start or resume; return the sizes that were chosen, and the largest that were possible."""
        store, out = self.folder / "store", self.folder / "out.jsonl"
        if ContinualAdjuster.is_store(store):
            adjuster = ContinualAdjuster.resume(store)
        else:
            adjuster = ContinualAdjuster(None, store=store, checkpoint_every=None, keep_checkpoints=KEEP)
        options = RunOptions(
            batch=BATCH,
            checkpoint_every=EVERY,
            out=out,
            rejected=store / "rejected.jsonl",
            max_rejected=1.0,
            wait=self.wait,
        )
        handle = os.open(self.rows, os.O_RDONLY)
        try:
            source = ChosenSource(handle)
            source.choices, source.made = choices, []
            with adjuster:
                StreamRun(adjuster, self.schema, source, options, Silent()).run()
        finally:
            os.close(handle)
        self.runs += 1
        return source.made

    def files(self):
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        named = {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}
        return {name: content for name, content in named.items() if not ignored(name)}

    def explore(self):
        """Return the number of states; raise AssertionError, or what a run raises, for the first wrong one."""
        waiting = [(frozenset(), b"", b"")]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            prefixes = [()]
            while prefixes:
                prefix = prefixes.pop()
                made = self.recorded_run(node, prefix, seen, waiting)
                self.check_end()
                sizes = tuple(size for size, _ in made)
                prefixes += [
                    (*sizes[:index], size)
                    for index in range(len(prefix), len(made))
                    for size in range(made[index][0] + 1, made[index][1] + 1)
                ]
        return len(seen)

    def recorded_run(self, node, prefix, seen, waiting):
        restore(self.folder, node[0])
        given = {"out.jsonl": node[1], "store/rejected.jsonl": node[2]}  # what readers have seen
        changed, visible = [], {name: len(content.rstrip(b"\0")) for name, content in node[0]}

        def on_state(state, power_lost):
            files, shown = dict(state), dict(given)
            for name in given if not power_lost else ():
                content = files.get(name, b"").rstrip(b"\0")  # zeros are of the disk, not of the stream
                if not (content.startswith(given[name]) or given[name].startswith(content)):
                    changed.append(name)
                shown[name] = max(given[name], content, key=len)
                if state == disk.current:
                    if len(content) < visible.get(name, 0):
                        changed.append(f"{name} was truncated")
                    visible[name] = len(content)
            if state == disk.current:
                given.update(shown)
            found = (state, *shown.values())
            if found not in seen:
                seen.add(found)
                waiting.append(found)

        disk = SimulatedDisk(self.folder, ignored, on_state)
        with disk.recording():
            made = self.run(prefix)
        self.calls += disk.n_calls
        files = self.files()
        assert changed == []
        assert all(files.get(name, b"").startswith(content) for name, content in given.items())
        return made

    def check_end(self):
        """Compare the end with that of an uninterrupted run with the same batches; each line has its answer once."""
        found = self.files()
        sizes = tuple(entry["lines"] for entry in read_journal(self.folder / "store"))
        assert sum(sizes) == len(ROWS)
        scored = [json.loads(line)["s"] for line in found["out.jsonl"].splitlines()]
        assert scored == [row["s"] for row in ROWS if row]
        assert [json.loads(line)["line"] for line in found["store/rejected.jsonl"].splitlines()] == [3]
        if sizes not in self.expected:
            restore(self.folder, frozenset())
            self.run(sizes)
            self.expected[sizes] = self.files()
        assert found == self.expected[sizes], sizes


def ignored(name):
    return name in {"store/writer", "store/clock.json"} or name.endswith(".part")


def test_any_number_of_kills_and_losses_of_power(explorer):
    n_states = explorer.explore()
    print(f"{n_states} states, {explorer.runs} runs, {explorer.calls} calls")  # noqa: T201
    assert len(explorer.expected) == 5  # ways to write 4 as a sum of ones and twos
    assert n_states > 500


def test_the_same_without_a_clock(explorer):
    """Batches are full; their entries in the journal are not flushed, and may be lost while the output is not."""
    explorer.wait = None
    n_states = explorer.explore()
    print(f"{n_states} states, {explorer.runs} runs, {explorer.calls} calls")  # noqa: T201
    assert set(explorer.expected) == {(2, 2)}
    assert n_states > 100


def cut_output(monkeypatch):
    """As it was: a resumed run truncates the output to its checkpoint."""
    real = LineFile.continue_from

    def continue_from(self, length, digest):
        real(self, length, digest)
        self.cut(length)

    monkeypatch.setattr(LineFile, "continue_from", continue_from)


def write_before_the_journal(monkeypatch):
    """The journal gets its entry after the output."""
    waiting, real, add = [], Store.note, LineFile.add

    def note(self, entry, *, durable=False):
        waiting.append((self, entry, durable))

    def written(self, content):
        add(self, content)
        if self.path.name == "out.jsonl":
            while waiting:
                store, entry, durable = waiting.pop(0)
                real(store, entry, durable=durable)

    monkeypatch.setattr(Store, "note", note)
    monkeypatch.setattr(LineFile, "add", written)


@pytest.mark.parametrize("mistake", [cut_output, write_before_the_journal])
def test_the_explorer_finds_mistakes(explorer, monkeypatch, mistake):
    mistake(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        explorer.explore()
