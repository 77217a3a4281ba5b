"""DuckDB with bounded memory: queries run in a thread, so that Ctrl-C stops them and a bar shows their progress.

DuckDB streams CSV, JSON lines and Parquet on all cores, in the order of the rows where that matters, spills to disk
beyond its memory limit, reports the line of a malformed row, and reports its progress.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, TypeVar

from fairtransport._extras import load_extra
from fairtransport._progress import progress
from fairtransport.tables.files.paths import FoundFile

#: Memory limit of the engine, which writes to a temporary folder beyond it.
DEFAULT_MEMORY = "2GiB"

#: Seconds before a progress bar appears.
QUIET = 2.0

_STEPS = 1000
_POLL = 0.05
_STOP_TIMEOUT = 10.0  # seconds

T = TypeVar("T")


class Engine:
    """A DuckDB connection with its temporary folder."""

    def __init__(self, *, memory: str = DEFAULT_MEMORY, threads: int | None = None) -> None:
        duckdb = load_extra("duckdb")
        self._cleanup = contextlib.ExitStack()
        settings: dict[str, Any] = {
            "memory_limit": memory,
            "temp_directory": self._temporary_folder(),
            "autoinstall_known_extensions": "false",  # no downloads
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",  # names in queries never refer to Python variables
        }
        if threads is not None:
            settings["threads"] = str(threads)
        try:
            self.connection: Any = duckdb.connect(config=settings)
        except duckdb.Error:
            self._cleanup.close()
            raise ValueError(f"memory must be a size such as '2GiB' or '500MB'; got {memory!r}.") from None
        self.connection.execute("SET enable_progress_bar = true")
        self.connection.execute("SET enable_progress_bar_print = false")

    def close(self) -> None:
        """Close the connection and remove the temporary folder."""
        with contextlib.suppress(load_extra("duckdb").Error):  # a query did not stop in time
            self.connection.close()
        self._cleanup.close()

    def _temporary_folder(self) -> str:
        """Return a new folder, removed by `close`; empty, which means not to spill, where no folder is writable."""
        try:
            folder = tempfile.TemporaryDirectory(prefix="fairtransport-", ignore_cleanup_errors=True)
        except OSError:
            return ""
        return self._cleanup.enter_context(folder)

    def progress(self) -> float:
        """Return the share of the running query that is done; 0 when it is unknown."""
        try:
            return max(0.0, float(self.connection.query_progress())) / 100
        except (load_extra("duckdb").Error, RuntimeError):
            return 0.0

    def run(
        self,
        work: Callable[[], T],
        *,
        title: str,
        show: bool,
        guard: DecompressionGuard | None = None,
        share: Callable[[], float],
        meanwhile: Callable[[], object] | None = None,
    ) -> T:
        """Run queries in a thread."""
        with progress(title, _STEPS, show=show, after=QUIET) as bar:
            task = in_thread(work)
            try:
                if meanwhile is not None:
                    meanwhile()
                while not task.done():
                    futures.wait([task], _POLL)
                    if guard is not None:
                        guard.check(wait=False)
                    bar.advance(int(_STEPS * share()))
                if guard is not None:
                    guard.check(wait=task.exception() is None)
            except BaseException:
                end = time.monotonic() + _STOP_TIMEOUT
                while not task.done() and time.monotonic() < end:
                    self.connection.interrupt()  # repeatedly, since it may be between two queries
                    futures.wait([task], _POLL)
                raise
            finally:
                if guard is not None:
                    guard.stop()
        return task.result()


def in_thread(work: Callable[[], T]) -> futures.Future[T]:
    """Return the future result of work in a thread that does not keep Python from ending, as those of a pool do."""
    future: futures.Future[T] = futures.Future()

    def settle() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            future.set_exception(error)

    threading.Thread(target=settle, daemon=True).start()
    return future


# A limit on the decompressed size of files, checked while the engine reads.

#: Largest allowed ratio of decompressed to compressed size.
MOST_EXPANSION = 200.0
#: Decompressed bytes that are always allowed.
ALWAYS_ALLOWED = 1 << 30

_MOST_GZIP = 1032  # largest ratio that gzip can reach
_CHUNK = 1 << 20


class DecompressionGuard:
    """Thread that decompresses files and counts the bytes."""

    def __init__(self, files: Sequence[FoundFile], most: float = MOST_EXPANSION) -> None:
        self._stopped = threading.Event()
        large = [file for file in files if _can_exceed(file, most)]
        self._counted = in_thread(lambda: self._count(large, most))

    def check(self, *, wait: bool) -> None:
        """Raise where a file exceeded the limit; with ``wait``, after all files have been counted."""
        while wait and not self._counted.done():
            futures.wait([self._counted], _POLL)
        if self._counted.done():
            self._counted.result()

    def stop(self) -> None:
        """Stop counting."""
        self._stopped.set()
        futures.wait([self._counted])

    def _count(self, large: Sequence[FoundFile], most: float) -> None:
        arrow: Any = load_extra("pyarrow")
        for file in large:
            n_bytes = 0
            with (
                contextlib.suppress(arrow.ArrowException, OSError),  # the engine reports damaged files
                arrow.OSFile(str(file.path)) as raw,
                arrow.CompressedInputStream(raw, file.compression) as stream,
            ):
                while not self._stopped.is_set() and (size := stream.read_buffer(_CHUNK).size):
                    n_bytes += size
                    if n_bytes > ALWAYS_ALLOWED and n_bytes > most * raw.tell():
                        raise ValueError(
                            f"{file.path} decompresses to more than {most:g} times its size and more than "
                            f"{ALWAYS_ALLOWED / 2**30:.3g} GiB, as a file made to do harm would. If you trust it, "
                            "raise max_expansion=."
                        )


def _can_exceed(file: FoundFile, most: float) -> bool:
    if file.compression is None:
        return False
    if file.compression != "gzip":
        return True
    return most < _MOST_GZIP and file.path.stat().st_size * _MOST_GZIP > ALWAYS_ALLOWED
