"""Check that no path of a command is another of its paths: what is written must not be what is read."""

from __future__ import annotations

import glob
import os
import stat
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["check_paths", "is_same_file", "standard_output"]


def check_paths(
    outputs: Sequence[Path], *, inputs: Iterable[str | os.PathLike[str]] = (), folders: Sequence[Path] = ()
) -> None:
    """Raise if an output is an input, another output, or lies in a folder whose files are written, too.

    Parameters
    ----------
    outputs : sequence of Path
        Files that the command writes, or that must differ from each other for another reason.
    inputs : iterable of path
        Files that it reads, or patterns; ``-`` is standard input.
    folders : sequence of Path
        Folders that belong to the command, such as a store.

    Raises
    ------
    ValueError
        Two paths are the same if they lead to the same file, by whatever links and names: symbolic links, hard links,
        and, as long as neither exists, names that differ only in case, which many file systems do not distinguish.
    """
    names = [os.fspath(name) for name in inputs if os.fspath(name) != "-"]
    read = [Path(path) for name in names for path in (name, *glob.glob(name, recursive=True))]  # noqa: PTH207
    for index, output in enumerate(outputs):
        if any(is_same_file(output, other) for other in outputs[:index]):
            raise ValueError(f"Two outputs have the same file name, {output}; change one of them.")
        if any(is_same_file(output, path) for path in read):
            raise ValueError(f"{output} is an input; choose another name for the output file.")
        for folder in folders:
            if _lies_in(output, folder) or any(is_same_file(output, own) for own in _files_in(folder)):
                raise ValueError(f"{output} is in {folder}, a folder of this command; choose a path outside of it.")


def is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths lead to the same file; it need not exist.

    Examples
    --------
    >>> is_same_file(Path("new.csv"), Path("elsewhere/../new.csv")), is_same_file(Path("a.csv"), Path("b.csv"))
    (True, False)
    """
    one, other = os.path.realpath(first), os.path.realpath(second)
    if one == other:
        return True
    found = [_status(path) for path in (one, other)]
    if found[0] is not None and found[1] is not None:
        return os.path.samestat(found[0], found[1]) and stat.S_ISREG(found[0].st_mode)
    return found == [None, None] and _folded(one) == _folded(other)


def standard_output() -> list[Path]:
    """Return the file that standard output was redirected to; empty if it is none."""
    try:
        handle = sys.stdout.fileno()
        named = Path(f"/proc/self/fd/{handle}")
        return [named.resolve()] if stat.S_ISREG(os.fstat(handle).st_mode) and named.exists() else []
    except (OSError, ValueError):
        return []


def _lies_in(path: Path, folder: Path) -> bool:
    one, other = os.path.realpath(path), os.path.realpath(folder)
    return _folded(one).startswith(_folded(other) + os.sep)


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _status(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except OSError:
        return None
