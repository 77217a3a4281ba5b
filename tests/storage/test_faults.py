"""Every call of the system fails once, in every writer: the old or the new file is whole, and nothing else is there.

A first run of a writer counts its calls; then each of them fails in turn, in each of several ways.
"""

import errno
import os
from base64 import b64encode
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.storage import make_keys, replacing, write_atomically
from fairtransport.storage._atomic import create_file

CALLS = ("open", "write", "fsync", "close", "replace", "unlink", "chmod", "listdir", "stat", "lstat")
FAULTS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EDQUOT, errno.EROFS, errno.ENOENT)


class FaultyDisk:
    """The functions of `os` that writers call, one call of which fails."""

    def __init__(self, monkeypatch, *, fail_at=None, error=errno.EIO, chunk=None):
        self.names, self._fail_at, self._error, self._chunk = [], fail_at, error, chunk
        self._handles, self._real = set(), {name: getattr(os, name) for name in CALLS}
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrap(name))

    def _wrap(self, name):
        def call(*args, **options):
            self.names.append(name)
            if len(self.names) - 1 == self._fail_at:
                if name == "close":  # the descriptor is gone even if close fails
                    self._real["close"](*args)
                    self._handles.discard(args[0])
                raise OSError(self._error, os.strerror(self._error))
            if name == "write" and self._chunk:
                args = (args[0], args[1][: self._chunk])
            result = self._real[name](*args, **options)
            if name == "open":
                self._handles.add(result)
            elif name == "close":
                self._handles.discard(args[0])
            return result

        return call

    @property
    def n_open(self):
        return len(self._handles)


def model(strength):
    X = np.arange(40.0).reshape(20, 2)
    return LogisticRegression(C=strength).fit(X, np.arange(20) > 9)


OLD, NEW = model(0.1), model(10.0)
IS_SIGNING = find_spec("cryptography") is not None  # the oldest versions are tested without extras
#: An unencrypted Ed25519 key in PEM whose 32 bytes are zeros.
PRIVATE = b"-----BEGIN PRIVATE KEY-----\n%b\n-----END PRIVATE KEY-----\n" % b64encode(
    bytes.fromhex("302e020100300506032b657004220420") + bytes(32)
)


def draft(path):
    with replacing(path) as draft:
        handle = os.open(draft, os.O_WRONLY)
        try:
            os.write(handle, b"one, ")
            os.write(handle, b"two")
        finally:
            os.close(handle)


WRITERS = {
    "ft.save": lambda path: ft.save(NEW, path),
    "write_atomically": lambda path: write_atomically(path, b"new" * 1000),
    "replacing": draft,
    **({"sign": lambda path: ft.persistence.sign(path, PRIVATE)} if IS_SIGNING else {}),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def check_message(error, path, *, is_new, existing):
    unchanged = "the existing file is unchanged" if existing else "nothing was written"
    state = "the new file is complete" if is_new else unchanged
    assert state in str(error) or "create the folder" in str(error)
    assert str(path) in str(error)
    assert ".part" not in str(error)


def attempt(write, path, *, existing, **fault):
    """Return the content before, the calls and the error of a write with a fault."""
    path.unlink(missing_ok=True)
    if existing:
        ft.save(OLD, path)
        path.chmod(0o640)
    old = path.read_bytes() if existing else None
    with pytest.MonkeyPatch.context() as patch:
        disk = FaultyDisk(patch, **fault)
        try:
            write(path)
            error = None
        except OSError as raised:
            error = raised
    assert disk.n_open == 0
    return old, disk.names, error


@pytest.mark.parametrize(
    ("writer", "existing"), [(one, existing) for one in WRITERS for existing in (True, False)[: 2 - (one == "sign")]]
)
def test_each_call_fails_once(writer, existing, folder, record_property):
    path = folder / "model.ft"
    _, names, error = attempt(WRITERS[writer], path, existing=existing)
    assert error is None
    new = path.read_bytes()
    assert {"open", "write", "fsync", "close", "replace"} <= set(names)
    n_failures = 0
    record_property("cases", len(names) * len(FAULTS))
    for number, name in enumerate(names):
        for fault in FAULTS:
            if name == "stat" and fault == errno.ENOENT:  # then there is no file, whose permissions could be kept
                continue
            old, _, error = attempt(WRITERS[writer], path, existing=existing, fail_at=number, error=fault)
            content = path.read_bytes() if path.exists() else None
            assert [one.name for one in folder.iterdir()] == (["model.ft"] if content is not None else [])
            assert content in ((old, new) if existing else (None, new)), (name, number)
            if content is not None and existing:
                assert path.stat().st_mode & 0o777 == 0o640
            if error is None:  # what failed did not matter, or was done again
                assert content == new, (name, number)
            else:
                n_failures += 1
                of_writing = error.filename is not None or writer not in {"replacing", "sign"}  # not of the block
                if of_writing:
                    check_message(error, path, is_new=content == new, existing=existing)
    assert n_failures >= 6 * 4


@pytest.mark.parametrize("writer", ["ft.save", "write_atomically"])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_short_writes_are_continued(writer, chunk, folder):
    path = folder / "model.ft"
    WRITERS[writer](path)
    new = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        FaultyDisk(patch, chunk=chunk)
        WRITERS[writer](path)
    assert path.read_bytes() == new


@pytest.mark.parametrize("make", [lambda path: create_file(path, b"x" * 9, mode=0o600), *[make_keys] * IS_SIGNING])
def test_new_files_are_whole_or_absent(make, folder):
    path = folder / "a.key"

    def attempt_new(**fault):
        for one in folder.iterdir():
            one.unlink()
        with pytest.MonkeyPatch.context() as patch:
            disk = FaultyDisk(patch, **fault)
            try:
                make(path)
            except OSError as error:
                return disk.names, error
        return disk.names, None

    names, error = attempt_new()
    assert error is None
    expected = {one.name: one.stat().st_size for one in folder.iterdir()}
    for number, name in enumerate(names):
        for fault in FAULTS:
            _, error = attempt_new(fail_at=number, error=fault)
            left = {one.name: one.stat().st_size for one in folder.iterdir()}
            if error is None or "is complete" in str(error):
                assert left.items() <= expected.items(), (name, number)
            else:
                assert left == {}, (name, number)


def test_an_error_of_the_block_of_replacing_is_passed_on(folder):
    def fail(number):
        with replacing(folder / "a"):
            raise OSError(number, "about another file", "other.csv")

    with pytest.raises(OSError, match=r"about another file: 'other\.csv'"):
        fail(errno.EIO)
    with pytest.raises(OSError, match=r"nothing was written\. Free disk space"):
        fail(errno.ENOSPC)
    assert list(folder.iterdir()) == []
