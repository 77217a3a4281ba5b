"""A folder for results, checked before anything is computed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["prepare_folder"]

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
