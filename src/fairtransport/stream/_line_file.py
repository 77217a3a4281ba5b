"""Append-only files that one process writes, no other may change, and a resumed run never rewrites."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtransport.storage import sync_folder

_HINT = "the last checkpoint is intact. Free disk space, then resume"
_BLOCK = 1 << 20
_IN_USE = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}


class StoreError(ValueError):
    """A store, or a file that its stream writes, that cannot be used.

    It is in use by another process, belongs to another model, was changed by another program, or has no intact
    checkpoint.
    """


class StoreWarning(UserWarning):
    """Part of a store is damaged; the run continues from what is intact."""


class LineFile:
    """An append-only file of lines, locked while it is open.

    The lock is one of the open file, not of a name, so removing or replacing files does not release it. Before and
    after each write, the file must still have its name, and the length that was written; otherwise another program has
    changed it, and `StoreError` is raised.

    A resumed run continues at the length of its checkpoint. What the file already has after that is not truncated: the
    content that is added must equal it, and only the rest of the content is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._absolute = self.path.absolute()
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        try:
            self.length = self._size = self._locked_size()
            self._digest = hashlib.sha256()
            if self.length == 0:  # a new file must be durable before a checkpoint refers to it
                with self._explained_errors():
                    sync_folder(self.path.parent)
        except BaseException:
            self.close()
            raise

    def _locked_size(self) -> int:
        status = os.fstat(self._handle)
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(
                f"{self.path.name} is not a regular file. To write to a pipe or a device, write to standard output."
            )
        if not lock_file(self._handle):
            raise StoreError(
                f"{self.path.name} is in use by another process. Stop that process first, or choose another path."
            )
        return status.st_size

    @property
    def ahead(self) -> int:
        """Number of bytes that an earlier run wrote after its last checkpoint, and that were not added again yet."""
        return self._size - self.length

    @property
    def digest(self) -> str:
        """Checksum of the content up to ``length``, since `continue_from`."""
        return self._digest.hexdigest()

    def continue_from(self, length: int, digest: str) -> None:
        """Continue after so many bytes, which must have this checksum."""
        if self._size < length:
            raise StoreError(
                f"{self.path.name} has {self._size} bytes, but {length} were written. Restore the file, or start with "
                "an empty store."
            )
        self._digest, self.length = hashlib.sha256(), 0
        while self.length < length:
            block = self._read(min(_BLOCK, length - self.length))
            self._digest.update(block)
            self.length += len(block)
        if self.digest != digest:
            raise StoreError(
                f"The first {length} bytes of {self.path.name} are not those that were written. Restore the file, or "
                "start with an empty store."
            )

    def cut(self, length: int) -> None:
        """Truncate the file to so many bytes; only for content that no reader may rely on."""
        if length == self._size:
            return
        with self._explained_errors():
            os.ftruncate(self._handle, length)
        self._size = length
        self.length = min(self.length, length)

    def add(self, content: bytes) -> None:
        """Append the content, or the part of it that the file does not have yet."""
        self.check()
        known = self._confirm(content) if self.ahead else 0
        left = memoryview(content)[known:]
        with self._explained_errors():
            while left:
                written = os.write(self._handle, left)
                self._size += written
                left = left[written:]
        self.length += len(content)
        self._digest.update(content)
        self.check()

    def check(self) -> None:
        """Raise if another program has deleted, replaced, truncated or extended the file."""
        status = os.fstat(self._handle)
        try:
            named = os.path.samestat(self._absolute.stat(), status)
        except (FileNotFoundError, NotADirectoryError):
            named = False
        if not named:
            raise StoreError(self._recovered(status))
        if status.st_size != self._size:
            change = "truncated" if status.st_size < self._size else "extended"
            raise StoreError(
                f"{self.path.name} was {change} by another program: it has {status.st_size} bytes instead of "
                f"{self._size}. Restore what it had, and resume; only one program may write to it."
            )

    def sync(self) -> None:
        self.check()
        with self._explained_errors():
            os.fsync(self._handle)

    def close(self) -> None:
        """Close the file and release its lock; further calls do nothing."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _confirm(self, content: bytes) -> int:
        """Compare the content with what the file has, and return how much of it is there."""
        found = self._read(len(content))
        if content.startswith(found):
            return len(found)
        equal = next(index for index, (ours, theirs) in enumerate(zip(content, found, strict=False)) if ours != theirs)
        if self._is_zero_after(self.length + equal):  # after a loss of power, some file systems leave zeros
            self.cut(self.length + equal)
            return equal
        raise StoreError(
            f"{self.path.name} differs from what this run writes after byte {self.length + equal}: another program "
            "has changed it, or the run is continued on another machine or with other versions of libraries. Restore "
            "the file, and resume where the run was started."
        )

    def _is_zero_after(self, start: int) -> bool:
        while start < self._size:
            block = os.pread(self._handle, _BLOCK, start)
            if not block or block.strip(b"\0"):
                return False
            start += len(block)
        return True

    def _read(self, n_bytes: int) -> bytes:
        """Return so many bytes after ``length``, or fewer at the end of the file."""
        return os.pread(self._handle, min(n_bytes, self._size - self.length), self.length)

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; {_HINT}", str(self.path)) from error

    def _recovered(self, status: os.stat_result) -> str:
        """Write the content of a deleted file again, which this process still has; return the message of the error."""
        if status.st_nlink > 0:
            return (
                f"{self.path.name} was moved by another program. Move it back, and resume; stop a stream before moving "
                "its files."
            )
        replaced = os.path.lexists(self._absolute)
        target = self._absolute.with_name(f"{self.path.name}.recovered") if replaced else self._absolute
        try:
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(status.st_mode))
            with os.fdopen(handle, "wb") as file:
                for start in range(0, status.st_size, _BLOCK):
                    file.write(os.pread(self._handle, _BLOCK, start))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            return (
                f"{self.path.name} was deleted by another program. Restore it and resume, or start with another store."
            )
        if replaced:
            return (
                f"{self.path.name} was replaced by another program. Its content was saved as {target.name}: rename "
                "that file, and resume."
            )
        return f"{self.path.name} was deleted by another program. Its content was written again; resume to go on."


class NoFile:
    """An output with the interface of a `LineFile` that is none: nothing of it is stored or compared."""

    length, ahead, digest = 0, 0, ""

    def continue_from(self, length: int, digest: str) -> None:
        """Do nothing: what was written before a kill is written again, or was committed."""

    def sync(self) -> None:
        """Do nothing, too."""

    check = close = sync


def lock_file(handle: int) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it.

    File systems without locks are accepted: what the other process writes is noticed by its length.
    """
    try:
        try:
            import fcntl  # noqa: PLC0415 - not available on Windows
        except ImportError:  # pragma: no cover
            import msvcrt  # noqa: PLC0415

            os.lseek(handle, 0x7FFF0000, os.SEEK_SET)  # a byte that readers do not need
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _IN_USE
    return True
