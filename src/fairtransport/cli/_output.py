"""Output of the commands: checked paths, JSON, tables and progress on the terminal."""

from __future__ import annotations

import contextlib
import errno
import glob
import itertools
import json
import os
import shutil
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairtransport._progress import progress
from fairtransport._text import one_line, score_text
from fairtransport.cli import _options as shared
from fairtransport.storage import write_atomically

# Check that no path of a command is another of its paths: what is written must not be what is read.


def check_paths(
    outputs: Sequence[Path], *, inputs: Iterable[str | os.PathLike[str]] = (), folders: Sequence[Path] = ()
) -> None:
    """Raise if an output is an input, another output, or lies in a folder whose files are written, too."""
    names = [os.fspath(name) for name in inputs if os.fspath(name) != "-"]
    read = [Path(path) for name in names for path in (name, *glob.glob(name, recursive=True))]  # noqa: PTH207
    for index, output in enumerate(outputs):
        if any(is_same_file(output, other) for other in outputs[:index]):
            raise ValueError(f"Two outputs have the same file name, {output}; change one of them.")
        if any(is_same_file(output, path) for path in read):
            raise ValueError(f"{output} is an input; choose another name for the output file.")
        for folder in folders:
            if _lies_in(output, folder):
                raise ValueError(f"{output} is in {folder}, a folder of this command; choose a path outside of it.")


def is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths lead to the same file; it need not exist."""
    if os.path.realpath(first) == os.path.realpath(second):
        return True
    if first.exists() and second.exists():
        return first.samefile(second) and first.is_file()
    return not first.exists() and not second.exists() and _folded(first) == _folded(second)


def standard_output() -> list[Path]:
    """Return the file that standard output was redirected to; empty if it is none."""
    try:
        handle = sys.stdout.fileno()
        named = Path(f"/proc/self/fd/{handle}")
        return [named.resolve()] if stat.S_ISREG(os.fstat(handle).st_mode) and named.exists() else []
    except (OSError, ValueError):
        return []


def _lies_in(path: Path, folder: Path) -> bool:
    files = [own for own in folder.iterdir() if own.is_file()] if folder.is_dir() else []
    return _folded(path).startswith(_folded(folder) + os.sep) or any(is_same_file(path, own) for own in files)


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


# What the commands print with rich: tables, sentences, paths, and progress on a terminal.


def stderr_is_terminal() -> bool:
    """Return whether standard error is a terminal; progress is shown only there."""
    return sys.stderr.isatty()


def can_ask() -> bool:
    """Return whether a question can be asked and answered on the terminal."""
    return stderr_is_terminal() and sys.stdin.isatty()


def print_table(
    title: str,
    left: Sequence[str],
    right: Sequence[str],
    rows: Iterable[Sequence[str | float | None]],
    *,
    gap: int = 2,
    dim: Sequence[str] = (),
) -> None:
    """Print a table and an empty line; numbers are those of `figure_text`, and a last row ``dim`` is less visible."""
    table = Table(
        title=Text(one_line(title), style="bold"),
        title_justify="left",
        box=None,
        padding=(0, gap, 0, 0),
        pad_edge=False,
    )
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = ("" if cell is None else cell if isinstance(cell, str) else figure_text(cell) for cell in row)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    if dim:
        table.add_row(*dim, style="dim")
    console = Console(highlight=False)
    console.print(table)
    console.print()


def figure_text(value: float) -> str:
    """Format a figure with three decimals, and fewer from 10 on."""
    return score_text(value) if abs(value) >= 10 else f"{value:.3f}"


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is one."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def print_sentence(text: str) -> None:
    """Print text, wrapped to the width of the terminal and without interpreting markup."""
    Console(highlight=False).print(Text(one_line(text)))


def print_paths(paths: Mapping[str, Path | None]) -> None:
    """Print each path on one line, however long, so that it can be copied."""
    for label, path in paths.items():
        if path is not None:
            Console(highlight=False).print(Text(one_line(f"{label}: {path}")), soft_wrap=True)


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on a terminal once the work has taken two seconds."""
    from fairtransport.tables.files.engine import QUIET  # noqa: PLC0415 - narwhals takes a while

    with progress(title, 1000, show=stderr_is_terminal(), after=QUIET) as bar:
        yield lambda fraction: bar.advance(int(1000 * fraction))


@contextlib.contextmanager
def step_progress(title: str, n_steps: int) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal how many steps are done, and the time left."""
    if not Console(stderr=True).is_terminal:
        yield None
        return
    done = itertools.count()
    with progress(title, n_steps) as bar:
        yield lambda note: bar.advance(min(next(done), n_steps - 1), one_line(note))


@contextlib.contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal that work is going on."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(Text(text)) as status:
        yield lambda note: status.update(Text(one_line(note)))


_REQUIRED_MB = 20  # the largest results take 5 MB


def prepare_folder(path: Path, files: Iterable[str] = ()) -> Path:
    """Create a folder and check that results can be written there."""
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


@shared.described(
    json_path=shared.option(
        "[PATH]",
        "Write the results as JSON to a file; without PATH, or with -, to standard output instead of tables.",
        "--json",
    )
)
@dataclass(frozen=True)
class Output:
    """The results of a command as JSON, to a file or to standard output."""

    json_path: str | None = None
    force: bool = False

    @property
    def is_json(self) -> bool:
        return self.json_path == "-"

    @property
    def _json_file(self) -> Path | None:
        return None if self.json_path is None or self.is_json else Path(self.json_path)

    def prepare(self, *paths: Path | None, inputs: Iterable[str] = (), folders: Sequence[Path] = ()) -> None:
        """Check that files can be written and that existing ones may be replaced; on a terminal, ask."""
        outputs = [path for path in (*paths, self._json_file) if path is not None]
        check_paths(outputs, inputs=inputs, folders=folders)
        for output in outputs:
            _check_writable(output)
            if not output.exists() or self.force:
                continue
            if not can_ask():
                raise FileExistsError(errno.EEXIST, "The output file exists; use --force to overwrite it", str(output))
            if not typer.confirm(f"{output} exists. Overwrite it?", err=True):
                raise FileExistsError(errno.EEXIST, "The output file exists and was not overwritten", str(output))

    def write_json(self, content: Any) -> bool:
        """Write a value that JSON can represent, or text that is JSON already; return whether it is all to be shown."""
        if self.json_path is not None:
            text = content if isinstance(content, str) else json.dumps(content, indent=2, allow_nan=False)
            if self._json_file is not None:
                write_atomically(self._json_file, (text + "\n").encode())
            else:
                typer.echo(text)
        return self.is_json

    def print_paths(self, paths: Mapping[str, Path | None]) -> None:
        print_paths({**paths, "JSON": self._json_file})


def _check_writable(output: Path) -> None:
    if output.is_dir():
        raise IsADirectoryError(errno.EISDIR, "The output file is a folder", str(output))
    if not output.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "The folder of the output file does not exist", str(output))
    if not os.access(output.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "The folder of the output file is not writable", str(output.parent))
