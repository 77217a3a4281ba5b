"""Files that are either the old ones or the new ones, never half of either."""

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

_LEFTOVER_AGE = 3600.0  # seconds; no write takes so long
_NO_FOLDER_SYNC = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP}  # what some file systems answer


def write_atomically(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write beside the file, flush to the disk, and rename.

    Parameters
    ----------
    path : path
        In an existing folder. A file that is there is replaced and its permissions are kept; a new one gets those that
        the process's umask allows. A symbolic link is replaced, not followed.
    content : bytes

    Returns
    -------
    Path
        The same path. A full disk or a kill in the middle leaves the old file as it was. Of two processes that
        write to one path at once, one's file is there in full.

    Raises
    ------
    OSError
        When it cannot be written; the text says that the old file is as it was.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = write_atomically(Path(folder.name) / "note.txt", b"hello")
    >>> path.read_bytes()
    b'hello'
    >>> folder.cleanup()
    """
    goal = Path(path)
    try:
        _refuse_folder(goal)
        remove_leftovers(goal)
        # When the clock leaps ahead, another writer may take ours for a leftover and remove it: then once more.
        if not _write_beside(goal, content) and not _write_beside(goal, content):
            raise FileNotFoundError(errno.ENOENT, "The temporary file was removed, twice")
        sync_folder(goal.parent)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, _told(error, goal), str(goal)) from error
    return goal


def _write_beside(goal: Path, content: bytes) -> bool:
    """Write and rename; return whether the file was still there to be renamed."""
    temporary = _beside(goal)
    try:
        _write_and_sync(temporary, content, like=goal)
        temporary.replace(goal)
    except FileNotFoundError:
        if not goal.parent.is_dir():
            raise
        return False
    finally:
        temporary.unlink(missing_ok=True)  # nothing, after it was renamed
    return True


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new, empty file beside ``path``, which takes its place when the block ends well.

    Parameters
    ----------
    path : path
        As in `write_atomically`.

    Yields
    ------
    Path
        Of the new file, for content that is written bit by bit. If the block raises, or Ctrl-C is pressed, it is
        removed, and what was at ``path`` stays.

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
    goal = Path(path)
    _refuse_folder(goal)
    remove_leftovers(goal)
    draft = _beside(goal)
    try:
        _write_and_sync(draft, b"", like=goal)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(goal)
        sync_folder(goal.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove_leftovers(path: str | os.PathLike[str], *, older_than: float = _LEFTOVER_AGE) -> int:
    """Remove what writers of ``path`` left behind when they were killed, and return how many files that were.

    Parameters
    ----------
    path : path
        The file that they were going to replace.
    older_than : float, default 3600
        Seconds; younger files may be those of a writer that is at work. Who knows that there is none passes 0.
    """
    goal, removed = Path(path), 0
    if not goal.parent.is_dir():
        return 0
    start = f".{goal.name}."
    for name in os.listdir(goal.parent):  # noqa: PTH208 - names only; a folder may be large
        if not (name.startswith(start) and name.endswith(".part")):
            continue
        leftover = goal.with_name(name)
        try:
            if time.time() - leftover.lstat().st_mtime >= older_than:
                leftover.unlink()
                removed += 1
        except OSError:  # somebody else removed it, or it is not ours to remove
            continue
    return removed


def _beside(goal: Path) -> Path:
    return goal.with_name(f".{goal.name}.{secrets.token_hex(6)}.part")


def _refuse_folder(goal: Path) -> None:
    if goal.is_dir():
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
    """Make new names in a folder last, too, where the system can.

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


def _told(error: OSError, goal: Path) -> str:
    what = error.strerror or type(error).__name__
    if not goal.parent.is_dir():
        return f"{what}; make the folder first"
    kept = "what was there before is as it was" if goal.is_file() else "nothing was written"
    return f"{what}; {kept}. Make room or name a folder that can be written to, and try again"
