"""Atomic writing of files: at any moment a file has its old or its new content, never a part of either."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["remove_leftovers", "replacing", "sync_folder", "write_atomically"]

_LEFTOVER_AGE = 3600.0  # seconds; longer than any write
_NO_FOLDER_SYNC = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP}  # from file systems that cannot do it


def write_atomically(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file atomically: to a temporary file in the same folder, which is flushed and renamed.

    Parameters
    ----------
    path : path
        A file in an existing folder. An existing file is replaced and its permissions are kept; a new one gets the
        permissions of the umask. A symbolic link is replaced, not followed.
    content : bytes

    Returns
    -------
    Path
        The path of the file. A full disk or a kill leaves the old file unchanged. If two processes write to the same
        path at once, the file of one of them is there in full.

    Raises
    ------
    OSError
        If the file cannot be written; an existing file is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = write_atomically(Path(folder.name) / "note.txt", b"hello")
    >>> path.read_bytes()
    b'hello'
    >>> folder.cleanup()
    """
    target = Path(path)
    try:
        _refuse_folder(target)
        remove_leftovers(target)
        # After a jump of the clock, another writer may remove the temporary file as a leftover: try once more.
        if not _write_beside(target, content) and not _write_beside(target, content):
            raise FileNotFoundError(errno.ENOENT, "The temporary file was removed twice")
        sync_folder(target.parent)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, _explanation(error, target), str(target)) from error
    return target


def _write_beside(target: Path, content: bytes) -> bool:
    """Write and rename the temporary file; return False if another process has removed it."""
    temporary = _beside(target)
    try:
        _write_and_sync(temporary, content, like=target)
        temporary.replace(target)
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise
        return False
    finally:
        temporary.unlink(missing_ok=True)  # does nothing after the renaming
    return True


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new, empty file in the same folder, which replaces ``path`` if the block succeeds.

    Parameters
    ----------
    path : path
        See `write_atomically`.

    Yields
    ------
    Path
        Path of the new file, for content that is written in parts. If the block raises, it is removed and ``path`` is
        unchanged.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with replacing(Path(folder.name) / "note.txt") as draft:
    ...     _ = draft.write_text("hello")
    >>> (Path(folder.name) / "note.txt").read_text()
    'hello'
    >>> folder.cleanup()
    """
    target = Path(path)
    _refuse_folder(target)
    remove_leftovers(target)
    draft = _beside(target)
    try:
        _write_and_sync(draft, b"", like=target)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(target)
        sync_folder(target.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove_leftovers(path: str | os.PathLike[str], *, older_than: float = _LEFTOVER_AGE) -> int:
    """Remove the temporary files of writers that were killed, and return their number.

    Parameters
    ----------
    path : path
        The file that they were to replace.
    older_than : float, default=3600
        Least age in seconds; younger files may belong to an active writer. Pass 0 if there is none.
    """
    target, removed = Path(path), 0
    if not target.parent.is_dir():
        return 0
    start = f".{target.name}."
    for name in os.listdir(target.parent):  # noqa: PTH208 - names only; a folder may be large
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


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")


def _refuse_folder(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _write_and_sync(temporary: Path, content: bytes, *, like: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
        if like.is_file() and not like.is_symlink():
            temporary.chmod(like.stat().st_mode & 0o777)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that new names in it are durable, where the system supports it.

    Parameters
    ----------
    folder : Path
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def _explanation(error: OSError, target: Path) -> str:
    reason = error.strerror or type(error).__name__
    if not target.parent.is_dir():
        return f"{reason}; create the folder first"
    state = "the existing file is unchanged" if target.is_file() else "nothing was written"
    return f"{reason}; {state}. Free disk space or choose a folder with write permission, and try again"
