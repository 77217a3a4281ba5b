"""Which files are meant: names and patterns -> plain files of one format."""

from __future__ import annotations

import errno
import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairtransport._validation import check_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FORMATS", "FoundFile", "find_files", "split_suffixes"]

#: Formats by the end of a file's name.
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
PACKED = {".gz": "gzip", ".zst": "zstd"}
_NOT_STREAMED = {".bz2", ".xz", ".lz4", ".br", ".zip", ".7z", ".rar", ".tar", ".tgz", ".z", ".snappy", ".lzma"}


@dataclass(frozen=True)
class FoundFile:
    """A file, its format, and how it is packed (None: it is not)."""

    path: Path
    format: str
    packed: str | None

    @property
    def tabbed(self) -> bool:
        """Whether the name says that fields are separated by tabs."""
        return ".tsv" in [suffix.lower() for suffix in self.path.suffixes[-2:]]


def find_files(names: Sequence[str | os.PathLike[str]], *, format: str | None = None) -> list[FoundFile]:  # noqa: A002
    """Return the files that names and patterns stand for, in the order given; those of a pattern in order of name.

    Parameters
    ----------
    names : sequence of path
        Files, or patterns with ``*``, ``?``, ``[...]`` and ``**``.
    format : {"csv", "parquet", "feather", "jsonl"}, optional
        What the files are; by the ends of their names when omitted.

    Returns
    -------
    list of FoundFile
        Of one format, each file once.

    Raises
    ------
    OSError
        For a missing file, a folder, or one that may not be read.
    ValueError
        For formats that are not known, not the same, or not read as a stream.
    """
    if not names:
        raise ValueError("No file is given.")
    if format is not None:
        check_choice(format, tuple(dict.fromkeys(FORMATS.values())), name="format")
    paths = [path for name in names for path in _expand(os.fspath(name))]
    for path in paths:
        _check_file(path)
    found = [FoundFile(path, *_kind(path, format)) for path in paths]
    places = [file.path.resolve() for file in found]
    twice = next((found[at] for at, place in enumerate(places) if place in places[:at]), None)
    if twice is not None:
        raise ValueError(f"{twice.path} is given twice; its rows would count twice.")
    kinds = sorted({file.format for file in found})
    if len(kinds) > 1:
        raise ValueError(f"The files are of {len(kinds)} formats ({', '.join(kinds)}); give those of one at a time.")
    return found


def _expand(name: str) -> list[Path]:
    """Return what a pattern matches; a file that exists under that very name is no pattern."""
    if Path(name).exists() or not glob.has_magic(name):
        return [Path(name)]
    paths = sorted(Path(one) for one in glob.glob(name, recursive=True))  # noqa: PTH207 - may be absolute
    files = [path for path in paths if path.is_file()]
    if not files:
        told = f"No file matches the pattern ({len(paths)} folders do)" if paths else "No file matches the pattern"
        raise FileNotFoundError(errno.ENOENT, told, name)
    return files


def _check_file(path: Path) -> None:
    if path.is_dir():
        told = "This is a folder; give its files by a pattern, such as folder/*.parquet"
        raise IsADirectoryError(errno.EISDIR, told, str(path))
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
    if not path.is_file():
        raise OSError(errno.EINVAL, "This is no plain file, and the head of a file is read before its rows", str(path))
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, "This file may not be read", str(path))
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes).")


def _kind(path: Path, given: str | None) -> tuple[str, str | None]:
    """Return the format, and how the file is packed."""
    format_suffix, packed = split_suffixes(path)
    last = path.suffix.lower()
    if last in _NOT_STREAMED:
        raise ValueError(
            f"{path}: files packed as {last} cannot be read as a stream; .gz and .zst can (CSV and JSON lines). Unpack "
            "this one first."
        )
    known = given if given is not None else FORMATS.get(format_suffix)
    if known is None:
        hint = "one object a line is format jsonl, " if last == ".json" else ""
        raise ValueError(
            f"{path}: no known format by its name; {', '.join(FORMATS)} are, and .gz or .zst behind. Otherwise say the "
            f"format: {hint}csv, parquet, feather or jsonl."
        )
    if packed is not None and known in {"parquet", "feather"}:
        raise ValueError(f"{path}: {known} files are packed inside; one packed once more cannot be read. Unpack it.")
    return known, packed


def split_suffixes(path: Path) -> tuple[str, str | None]:
    """Return the end of the name that tells the format, and how the file is packed.

    Examples
    --------
    >>> split_suffixes(Path("scores.csv.gz"))
    ('.csv', 'gzip')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = PACKED.get(suffixes[-1]) if suffixes else None
    if packed is not None:
        suffixes.pop()
    return (suffixes[-1] if suffixes else ""), packed
