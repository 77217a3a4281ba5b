"""Each call of a stream that changes the disk fails once: the run ends with a clear message, and nothing is lost."""

import errno
import os

import pytest

from fairtransport._validation import describe_error

from .simulated_disk import CALLS, SimulatedDisk, restore
from .test_stream_protocol import explorer, ignored  # noqa: F401 - a fixture

pytestmark = pytest.mark.trust


CAUSES = {"full": errno.ENOSPC, "broken": errno.EIO, "descriptors": errno.EMFILE}


class Faults:
    """Counts the calls, and lets one of them fail; a write may put down a part of its content before."""

    def __init__(self, failing=None, cause=errno.ENOSPC, part=0.0):
        self.failing, self.cause, self.part = failing, cause, part
        self.count, self.failed = 0, None
        self.real = {name: getattr(os, name) for name in CALLS}

    def __enter__(self):
        for name in CALLS:
            setattr(os, name, lambda *arguments, name=name, **options: self.call(name, *arguments, **options))
        return self

    def __exit__(self, *exception):
        for name, call in self.real.items():
            setattr(os, name, call)

    def call(self, name, *arguments, **options):
        if name == "open" and not arguments[1] & (os.O_CREAT | getattr(os, "O_DIRECTORY", 0)):
            return self.real[name](*arguments, **options)  # only reads
        self.count += 1
        if self.count - 1 == self.failing:
            self.failed = name
            if name == "write" and self.part:
                self.real[name](arguments[0], arguments[1][: max(1, int(len(arguments[1]) * self.part))])
            path = () if isinstance(arguments[0], int) else (os.fspath(arguments[0]),)
            raise OSError(self.cause, os.strerror(self.cause), *path)
        return self.real[name](*arguments, **options)


def killed_state(explorer):  # noqa: F811
    """Return what a kill leaves in the middle of the journal's fourth entry, after the last checkpoint but one."""
    states = []
    restore(explorer.folder, frozenset())
    with SimulatedDisk(explorer.folder, ignored, lambda state, _: states.append(state)).recording():
        explorer.run((1, 1, 1, 1, 1))
    journals = [dict(state).get("store/journal.jsonl", b"") for state in states]
    return next(
        state
        for state, journal in zip(states, journals, strict=True)
        if journal.count(b"\n") == 3 and not journal.endswith(b"\n")
    )


@pytest.mark.parametrize("start", ["empty folder", "after a kill"])
def test_every_call_fails_once(explorer, start):  # noqa: F811
    state = frozenset() if start == "empty folder" else killed_state(explorer)
    restore(explorer.folder, state)
    with Faults() as good:
        explorer.run()
    expected, kinds = explorer.files(), set()
    assert good.count > 20
    for failing in range(good.count):
        for part in (0.0, 0.5):
            cause = list(CAUSES.values())[failing % len(CAUSES)]
            restore(explorer.folder, state)
            with Faults(failing, cause, part) as faults, pytest.raises(OSError, match=os.strerror(cause)) as error:
                explorer.run()
            kinds.add(faults.failed)
            assert error.value.filename is not None, describe_error(error.value)
            shown = (explorer.folder / "out.jsonl").read_bytes() if (explorer.folder / "out.jsonl").exists() else b""
            assert expected["out.jsonl"].startswith(shown)
            explorer.run()  # the cause is gone
            explorer.check_end()
            assert explorer.files()["out.jsonl"] == expected["out.jsonl"]
            if faults.failed != "write":
                break
    assert kinds >= {"open", "write", "fsync", "replace", "unlink", "mkdir" if start == "empty folder" else "ftruncate"}
