"""Atomic writing of files: at any moment a file has its old or its new content, never a part of either."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

_LEFTOVER_AGE = 3600.0  # seconds; longer than any write
_NO_FOLDER_SYNC = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP}  # from file systems that cannot do it
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file atomically: to a temporary file in the same folder, which is flushed and renamed."""
    target = Path(path)
    with _explained_errors(target):
        _refuse_folder(target)
        remove_leftovers(target)
        # After a jump of the clock, another writer may remove the temporary file as a leftover: try once more.
        if not _write_beside(target, content) and not _write_beside(target, content):
            raise FileNotFoundError(errno.ENOENT, "The temporary file was removed twice")
    _sync_folder_of(target)
    return target


def _write_beside(target: Path, content: bytes) -> bool:
    """Write and rename the temporary file; return False if another process has removed it."""
    temporary = _beside(target)
    try:
        _write_and_sync(temporary, content, like=target)
        temporary.replace(target)
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, FileNotFoundError) and target.parent.is_dir():
            return False
        raise
    return True


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new, empty file in the same folder, which replaces ``path`` if the block succeeds."""
    target = Path(path)
    draft = _beside(target)
    try:
        with _explained_errors(target):
            _refuse_folder(target)
            remove_leftovers(target)
            _write_and_sync(draft, b"", like=target)
        with _explained_errors(target, only=_NO_SPACE):  # other errors may be about other files
            yield draft
        with _explained_errors(target):
            _sync(draft, os.O_RDWR | getattr(os, "O_BINARY", 0))
            draft.replace(target)
    except BaseException:
        _remove(draft)
        raise
    _sync_folder_of(target)


def create_file(path: str | os.PathLike[str], content: bytes, *, mode: int) -> Path:
    """Write a new file with given permissions; raise FileExistsError if there is one, and leave none if that fails."""
    target = Path(path)
    with _explained_errors(target):
        handle = os.open(target, _CREATE, mode)
        try:
            _write_all(handle, content)
        except BaseException:
            _remove(target)
            raise
    _sync_folder_of(target)
    return target


def remove_leftovers(path: str | os.PathLike[str], *, older_than: float = _LEFTOVER_AGE) -> int:
    """Remove the temporary files of writers that were killed, as far as possible, and return their number."""
    target, removed = Path(path), 0
    start = f".{target.name}."
    try:
        names = os.listdir(target.parent)  # noqa: PTH208 - names only; a folder may be large
    except OSError:  # there is no such folder, or it cannot be listed
        return 0
    for name in names:
        if not (name.startswith(start) and name.endswith(".part")):
            continue
        leftover = target.with_name(name)
        try:
            if time.time() - leftover.lstat().st_mtime >= older_than:
                leftover.unlink()
                removed += 1
        except OSError:  # removed by another process, or without permission
            continue
    return removed


def _remove(path: Path) -> None:
    """Remove a file, if that is possible; the error that led here is worth more than one from here."""
    with contextlib.suppress(OSError):
        path.unlink()


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")


def _refuse_folder(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _write_and_sync(temporary: Path, content: bytes, *, like: Path) -> None:
    handle = os.open(temporary, _CREATE, 0o666)
    try:
        if like.is_file() and not like.is_symlink():
            temporary.chmod(like.stat().st_mode & 0o777)
    except BaseException:
        os.close(handle)
        raise
    _write_all(handle, content)


def _write_all(handle: int, content: bytes) -> None:
    """Write everything, flush it to the disk and close the descriptor."""
    try:
        left = memoryview(content)
        while left:
            n_bytes = os.write(handle, left)
            if n_bytes == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left = left[n_bytes:]
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that new names in it are durable, where the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        _sync(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise OSError(error.errno, error.strerror, str(folder)) from error


def _sync_folder_of(target: Path) -> None:
    try:
        sync_folder(target.parent)
    except OSError as error:
        message = f"{_reason(error)}; the new file is complete, but may be lost if the power fails. Write it again"
        raise OSError(error.errno, message, str(target)) from error


@contextlib.contextmanager
def _explained_errors(target: Path, *, only: set[int] | None = None) -> Iterator[None]:
    """Say in errors of the system, or only those with given numbers, what has become of the file and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (only is not None and error.errno not in only):
            raise
        raise OSError(error.errno, _explanation(error, target), str(target)) from error


def _explanation(error: OSError, target: Path) -> str:
    if isinstance(error, FileExistsError):
        return f"{_reason(error)}; it is unchanged. Choose another name"
    if isinstance(error, FileNotFoundError) and not os.path.isdir(target.parent):  # noqa: PTH112 - does not raise
        return f"{_reason(error)}; create the folder first"
    state = "the existing file is unchanged" if os.path.lexists(target) else "nothing was written"
    return f"{_reason(error)}; {state}. Free disk space or choose a folder with write permission, and try again"


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
