"""Files that are either the old ones or the new ones, never half of either."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_atomically"]


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
