"""Resolution of names and patterns to files of one format."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtransport._validation import check_choice

#: Formats by extension.
FORMATS = {
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "feather"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_NOT_STREAMED = {".bz2", ".xz", ".lz4", ".br", ".zip", ".7z", ".rar", ".tar", ".tgz", ".z", ".snappy", ".lzma"}


@dataclass(frozen=True)
class FoundFile:
    """A file, its format and its compression (None: not compressed)."""

    path: Path
    format: str
    compression: str | None

    @property
    def location(self) -> str:
        """The absolute path, for libraries that read ``~`` and ``file:`` at the start of a path in their own way."""
        return str(self.path.absolute())

    @property
    def tabbed(self) -> bool:
        """True if the extension says that fields are separated by tabs."""
        return ".tsv" in [suffix.lower() for suffix in self.path.suffixes[-2:]]


def find_files(names: Sequence[str | os.PathLike[str]], *, format: str | None = None) -> list[FoundFile]:  # noqa: A002
    """Return the files that names and patterns match, in the order given; those of a pattern sorted by name."""
    if not names:
        raise ValueError("No file is given.")
    if format is not None:
        check_choice(format, tuple(dict.fromkeys(FORMATS.values())), name="format")
    paths = [path for name in names for path in _expand(os.fspath(name))]
    for path in paths:
        _check_file(path)
    files = [FoundFile(path, *_file_format(path, format)) for path in paths]
    resolved = [file.path.resolve() for file in files]
    repeated = next((files[index] for index, path in enumerate(resolved) if path in resolved[:index]), None)
    if repeated is not None:
        raise ValueError(f"{repeated.path} is given twice; its rows would count twice.")
    formats = sorted({file.format for file in files})
    if len(formats) > 1:
        raise ValueError(f"The files are of {len(formats)} formats ({', '.join(formats)}); give files of one format.")
    return files


def _expand(name: str) -> list[Path]:
    """Return the files that a pattern matches; a name of an existing file is not a pattern."""
    if Path(name).exists() or not glob.has_magic(name):
        return [Path(name)]
    paths = sorted(Path(match) for match in glob.glob(name, recursive=True))  # noqa: PTH207 - may be absolute
    files = [path for path in paths if path.is_file()]
    if not files:
        message = f"No file matches the pattern ({len(paths)} folders do)" if paths else "No file matches the pattern"
        raise FileNotFoundError(errno.ENOENT, message, name)
    return files


def _check_file(path: Path) -> None:
    if path.is_dir():
        message = "This is a folder; give its files by a pattern, such as folder/*.parquet"
        raise IsADirectoryError(errno.EISDIR, message, str(path))
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
    if not path.is_file():
        raise OSError(
            errno.EINVAL, "This is not a regular file; the header of a file is read before its rows", str(path)
        )
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, "This file may not be read", str(path))
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes).")


def _file_format(path: Path, format_name: str | None) -> tuple[str, str | None]:
    """Return the format and the compression of a file."""
    format_suffix, compression = split_suffixes(path)
    last = path.suffix.lower()
    if last in _NOT_STREAMED:
        raise ValueError(
            f"{path}: {last} files cannot be read as a stream; .gz and .zst can (CSV and JSON lines). Decompress this "
            "one first."
        )
    known = format_name if format_name is not None else FORMATS.get(format_suffix)
    if known is None:
        hint = "one object a line is format jsonl, " if last == ".json" else ""
        raise ValueError(
            f"{path}: unknown extension; known are {', '.join(FORMATS)}, also with .gz or .zst. Otherwise give the "
            f"format: {hint}csv, parquet, feather, jsonl or excel."
        )
    if compression is not None and known in {"parquet", "feather", "excel"}:
        raise ValueError(f"{path}: {known} files are compressed internally; decompress this one first.")
    return known, compression


def file_extension(name: str | os.PathLike[str]) -> str:
    """Return the end of a name that says the format of a file, such as ``".csv.gz"``; empty if it is not known."""
    path = Path(os.fspath(name).lower())
    known, packed = split_suffixes(path)
    return known + (path.suffix if packed else "") if known in FORMATS else ""


def split_suffixes(path: Path) -> tuple[str, str | None]:
    """Return the extension that determines the format, and the compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    return (suffixes[-1] if suffixes else ""), compression
