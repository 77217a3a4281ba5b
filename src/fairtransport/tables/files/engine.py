"""DuckDB with bounded memory: queries run in a thread, so that Ctrl-C stops them and a bar shows how far they are.

Why DuckDB: it scans CSV, JSON lines and Parquet as a stream on all cores, in the order of the rows where that matters,
spills to disk instead of growing, names the line of a damaged row, and says how far a query is.
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

    from fairtransport.tables.files._decompression_limit import UnpackingGuard

__all__ = ["DEFAULT_MEMORY", "QUIET", "Engine"]

#: Most that the engine keeps in memory before it writes to a temporary folder.
DEFAULT_MEMORY = "2GiB"

#: Seconds without a bar.
QUIET = 2.0

_STEPS = 1000
_POLL = 0.05
_PATIENCE = 10.0  # seconds that a stopped query has to end

T = TypeVar("T")


class Engine:
    """A DuckDB connection of our own, with its temporary folder.

    Parameters
    ----------
    memory : str
        Such as ``"2GiB"``.
    threads : int, optional
        One a core when omitted.
    """

    def __init__(self, *, memory: str = DEFAULT_MEMORY, threads: int | None = None) -> None:
        duckdb = load_extra("duckdb")
        self._folder = tempfile.TemporaryDirectory(prefix="fairtransport-", ignore_cleanup_errors=True)
        settings: dict[str, Any] = {
            "memory_limit": memory,
            "temp_directory": self._folder.name,
            "autoinstall_known_extensions": "false",  # nothing is fetched
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",  # a name in a query is never a Python variable
        }
        if threads is not None:
            settings["threads"] = str(threads)
        try:
            self.connection: Any = duckdb.connect(config=settings)
        except duckdb.Error:
            self._folder.cleanup()
            raise ValueError(f"memory must be a size such as '2GiB' or '500MB'; got {memory!r}.") from None
        self.connection.execute("SET enable_progress_bar = true")
        self.connection.execute("SET enable_progress_bar_print = false")

    def close(self) -> None:
        """Close the connection and remove the temporary folder."""
        with contextlib.suppress(load_extra("duckdb").Error):  # busy: a query that did not stop in time
            self.connection.close()
        self._folder.cleanup()

    def progress(self) -> float:
        """Return the share of the running query that is done; 0 when it is not known."""
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
        guard: UnpackingGuard | None = None,
        share: Callable[[], float],
        meanwhile: Callable[[], object] | None = None,
    ) -> T:
        """Run work that queries, in a thread.

        Parameters
        ----------
        work : callable
        title : str
            What the bar says, on work of more than two seconds.
        show : bool
            Whether there is a terminal for the bar.
        guard : UnpackingGuard, optional
            Its error stops the query and is raised.
        share : callable
            Says how much is done.
        meanwhile : callable, optional
            Is called in this thread while the other one works; what it raises stops the query.

        Returns
        -------
        object
            What ``work`` returned; what it raised is raised here.
        """
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
        end = time.monotonic() + _PATIENCE
        while task.busy and time.monotonic() < end:
            self.connection.interrupt()  # it may be between two queries, so again and again
            task.wait(_POLL)


class _Task(threading.Thread):
    """A thread that keeps what its work returned or raised.

    It says itself whether it is busy: Python takes a thread for ended when Ctrl-C is pressed during its ``join``.
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
