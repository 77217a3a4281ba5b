"""Checks of output folders and files, made before anything is computed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import typer

from fairtransport.cli._console import can_ask
from fairtransport.cli._paths import check_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["prepare_files", "prepare_folder"]

_REQUIRED_MB = 20  # the largest results take 5 MB


def prepare_folder(path: Path, files: Iterable[str] = ()) -> Path:
    """Create a folder and check that results can be written there.

    Parameters
    ----------
    path : Path
        Created, with its parents, if it does not exist.
    files : iterable of str
        Names of the files that will be written; existing ones will be replaced.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    OSError
        If it is a file, lies below one, is not writable, is on a full disk, or a result has the name of a folder in it.
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
    if free < _REQUIRED_MB:
        message = f"The output folder has {free} MB of free space; {_REQUIRED_MB} MB are needed"
        raise OSError(errno.ENOSPC, message, str(path))
    taken = [name for name in files if (path / name).is_dir()]
    if taken:
        raise IsADirectoryError(errno.EISDIR, "A result has the name of a folder", str(path / taken[0]))
    return path


def prepare_files(
    paths: Sequence[Path | None], *, force: bool, inputs: Iterable[str] = (), folders: Sequence[Path] = ()
) -> None:
    """Check that files can be written and that existing ones may be replaced; on a terminal, ask.

    Parameters
    ----------
    paths : sequence of Path or None
        Each in an existing folder; None stands for no file.
    force : bool
        Replace existing files without asking.
    inputs : iterable of str
        Input files or patterns, none of which may be overwritten; see `check_paths`.
    folders : sequence of Path
        Folders that the command writes to as well; the files must lie outside of them.

    Raises
    ------
    OSError, ValueError
        If a file cannot be written or may not be replaced.
    """
    outputs = [path for path in paths if path is not None]
    check_paths(outputs, inputs=inputs, folders=folders)
    for output in outputs:
        if output.is_dir():
            raise IsADirectoryError(errno.EISDIR, "The output file is a folder", str(output))
        if not output.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "The folder of the output file does not exist", str(output))
        if not os.access(output.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "The folder of the output file is not writable", str(output.parent))
        if output.exists() and not force:
            if not can_ask():
                raise FileExistsError(errno.EEXIST, "The output file exists; use --force to overwrite it", str(output))
            if not typer.confirm(f"{output} exists. Overwrite it?", err=True):
                raise FileExistsError(errno.EEXIST, "The output file exists and was not overwritten", str(output))
