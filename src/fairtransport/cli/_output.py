"""Folders and files for results, checked before anything is computed."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["prepare_files", "prepare_folder"]

_NEEDED_MB = 20  # the largest results have 5 MB


def prepare_folder(path: Path, files: Iterable[str] = ()) -> Path:
    """Make a folder and make sure that results can be written there.

    Parameters
    ----------
    path : Path
        Made with its parents when it does not exist.
    files : iterable of str
        Names of the files that will be written; existing ones will be replaced.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    OSError
        When it is a file, lies below one, may not be written, has no room, or a result's name is a folder there.
    """
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "The output folder is a file; choose another --out", str(path))
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".fairtransport-") as probe:
            probe.write(bytes(4096))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OSError(error.errno, f"Cannot write to the output folder ({reason})", str(path)) from error
    free = shutil.disk_usage(path).free // 2**20
    if free < _NEEDED_MB:
        told = f"The output folder has {free} MB of free space; {_NEEDED_MB} MB are needed"
        raise OSError(errno.ENOSPC, told, str(path))
    taken = [name for name in files if (path / name).is_dir()]
    if taken:
        raise IsADirectoryError(errno.EISDIR, "A result has the name of a folder", str(path / taken[0]))
    return path


def prepare_files(paths: Sequence[Path | None], *, force: bool, ask: bool, inputs: Iterable[str] = ()) -> None:
    """Make sure that files can be written, and that existing ones may be replaced.

    Parameters
    ----------
    paths : sequence of Path or None
        Each in an existing folder; None is no file.
    force : bool
        Replace existing files.
    ask : bool
        Without ``force``, ask on the terminal. Otherwise an existing file is an error.
    inputs : iterable of str
        Files that are read, or patterns; none of them may be written.

    Raises
    ------
    OSError, ValueError
        When a file cannot be written or may not be replaced.
    """
    goals = [path for path in paths if path is not None]
    if len({goal.resolve() for goal in goals}) < len(goals):
        raise ValueError("Two results have the same file; name another one.")
    read = {Path(path).resolve() for name in inputs for path in (name, *glob.glob(name, recursive=True))}  # noqa: PTH207
    for goal in goals:
        if goal.is_dir():
            raise IsADirectoryError(errno.EISDIR, "The output file is a folder", str(goal))
        if not goal.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "The folder of the output file does not exist", str(goal))
        if goal.resolve() in read:
            raise ValueError(f"{goal} is read; choose another name for the output file.")
        if not os.access(goal.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "The folder of the output file may not be written", str(goal.parent))
        if goal.exists() and not force:
            if not ask:
                raise FileExistsError(errno.EEXIST, "The output file exists; give --force to replace it", str(goal))
            if not typer.confirm(f"{goal} exists. Replace it?", err=True):
                raise FileExistsError(errno.EEXIST, "The output file exists, and was left as it is", str(goal))
