"""Files that are either the old ones or the new ones, never half of either."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["replacing", "write_atomically"]


def write_atomically(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write beside the file, flush to the disk, and rename.

    Parameters
    ----------
    path : path
        In an existing folder.
    content : bytes

    Returns
    -------
    Path
        The same path. A full disk or a kill in the middle leaves the old file as it was.

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
    handle, name = tempfile.mkstemp(dir=goal.parent, prefix=f".{goal.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(goal)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return goal


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new, empty file beside ``path``, which takes its place when the block ends well.

    Parameters
    ----------
    path : path
        In an existing folder.

    Yields
    ------
    Path
        Of the new file, for content that is written bit by bit. It is readable to those whom the user's file mask
        allows. If the block raises, or Ctrl-C is pressed, it is removed, and what was at ``path`` stays.

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
    draft = goal.parent / f".{goal.name}.{secrets.token_hex(6)}"
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(goal)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
