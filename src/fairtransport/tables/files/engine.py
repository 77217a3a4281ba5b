"""DuckDB with bounded memory: queries run in a thread, so that Ctrl-C stops them and a bar shows their progress.

DuckDB streams CSV, JSON lines and Parquet on all cores, in the order of the rows where that matters, spills to disk
beyond its memory limit, reports the line of a malformed row, and reports its progress.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from fairtransport._extras import load_extra
from fairtransport._progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairtransport.tables.files._formats import DecompressionGuard


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
        task = _Task(work)
        with progress(title, _STEPS, show=show, after=QUIET) as bar:
            try:
                task.start()
                if meanwhile is not None:
                    meanwhile()
                while task.busy:
                    task.wait(_POLL)
                    if guard is not None:
                        guard.check(wait=False)
                    bar.advance(int(_STEPS * share()))
                if guard is not None:
                    guard.check(wait=task.error is None)
            except BaseException:
                self._interrupt(task)
                raise
            finally:
                if guard is not None:
                    guard.stop()
        if task.error is not None:
            raise task.error
        return task.result

    def _interrupt(self, task: _Task) -> None:
        end = time.monotonic() + _STOP_TIMEOUT
        while task.busy and time.monotonic() < end:
            self.connection.interrupt()  # repeatedly, since it may be between two queries
            task.wait(_POLL)


class _Task(threading.Thread):
    """A thread that stores the result or the exception of its work.

    It records itself whether it is busy, since Python regards a thread as ended after Ctrl-C during ``join``.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True, name="query")
        self._work = work
        self._begun, self._ended = threading.Event(), threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    @property
    def busy(self) -> bool:
        return self._begun.is_set() and not self._ended.is_set()

    def start(self) -> None:
        self._begun.set()
        super().start()

    def wait(self, seconds: float) -> None:
        self._ended.wait(seconds)

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self.error = error
        finally:
            self._ended.set()
