"""A running server: one process, or several that share a port."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from fairtransport.serving._counters import SharedCounts
from fairtransport.serving._models import ServedModel
from fairtransport.serving._sockets import is_loopback, listen, make_config
from fairtransport.serving.app import create_app
from fairtransport.serving.settings import ServerSettings, local_names

if TYPE_CHECKING:
    from starlette.applications import Starlette


_LOG = logging.getLogger("fairtransport.serving")
_KEEP_ALIVE = 30  # seconds without a request after which a connection is closed
_SWITCH = 2e-4  # seconds for which a thread that reads a large request may keep the event loop waiting
_MIN_LIFE = 5.0  # seconds; a process that ends sooner is not replaced at once
_MAX_EARLY_ENDS = 5  # of processes in a row, after which the server gives up


def serve(
    settings: ServerSettings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    grace: float = 30.0,
    on_start: Callable[[str], None] | None = None,
) -> int | None:
    """Serve a model until SIGTERM or SIGINT, which let requests finish.

    Parameters
    ----------
    settings : ServerSettings
    host : str, default="127.0.0.1"
        Address to listen on; by default this machine only.
    port : int, default=8000
        0 selects a free port.
    workers : int, default=1
        Number of processes; a model that is adjusted has one.
    grace : float, default=30
        Seconds that requests have to finish after the signal.
    on_start : callable, optional
        Called with the address when requests are answered.

    Returns
    -------
    int or None
        The signal that ended it.
    """
    if workers > 1 and settings.store is not None:
        raise ValueError("A model that is adjusted is held by one process; use workers=1 with a store.")
    with listen(host, port) as listener:
        number = listener.getsockname()[1]
        if is_loopback(host) and not settings.hosts and settings.token is None:  # a token protects from web sites, too
            settings = replace(settings, hosts=tuple(local_names(number)))
        name = f"[{host}]" if ":" in host else host

        def started() -> None:
            if on_start is not None:
                on_start(f"http://{name}:{number}")

        if workers == 1:
            server = _Server(_config(create_app(settings), settings, grace), started, grace)
            server.run([listener])
            return server.ended_by
        ServedModel.load(settings)  # so that an error is raised here, and once
        with tempfile.TemporaryDirectory(prefix="fairtransport-") as folder:
            return _Supervisor(settings, listener, workers, Path(folder), grace).run(started)


def log_to_standard_error() -> None:
    """Print what the server has to say, such as that a new version is served, without any value of a row."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOG.handlers[:] = [handler]
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False


def _config(app: Starlette, settings: ServerSettings, grace: float) -> uvicorn.Config:
    options = {"lifespan": "on", "access_log": False, "timeout_keep_alive": _KEEP_ALIVE}
    return make_config(app, settings.max_connections, options, read_seconds=settings.timeout, grace=grace)


class _Server(uvicorn.Server):
    """Server that says when it has started, and ends without raising the signal again, within its grace period."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None], grace: float) -> None:
        super().__init__(config)
        self._say_started, self._grace = started, grace
        self.ended_by: int | None = None

    def handle_exit(self, sig: int, frame: Any) -> None:
        if not self.should_exit:
            limit = threading.Timer(self._grace - min(1.0, 0.1 * self._grace), self._end_process)
            limit.daemon = True
            limit.start()
        super().handle_exit(sig, frame)

    def _end_process(self) -> None:
        """End the process unless it goes on without the server, whatever its threads do; a store survives that."""
        if self.ended_by is None or not threading.main_thread().is_alive():
            _LOG.warning("requests were not finished within the grace period")
            os._exit(1)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            sys.setswitchinterval(_SWITCH)
            gc.freeze()  # what has been loaded is not searched for garbage at each large request
            self._say_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            self.ended_by = self._captured_signals[-1] if self._captured_signals else None
            self._captured_signals.clear()


class _Supervisor:
    """Parent of several processes that accept connections from one socket; it replaces those that end."""

    def __init__(
        self, settings: ServerSettings, listener: socket.socket, n_workers: int, folder: Path, grace: float
    ) -> None:
        self._settings, self._listener, self._grace = settings, listener, grace
        self._shares = [SharedCounts(folder, n_workers, index) for index in range(n_workers)]
        self._context = _process_context()
        self._processes: list[Any] = []
        self._births = [0.0] * n_workers
        self._stopping = threading.Event()
        self._early_ends = 0
        self._ended_by: int | None = None

    def run(self, started: Callable[[], None]) -> int | None:
        """Run until SIGTERM or SIGINT, and return which it was."""
        before: dict[int, Any] = {
            number: signal.signal(number, self._ask_to_stop) for number in (signal.SIGTERM, signal.SIGINT)
        }
        if hasattr(signal, "SIGHUP"):
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: self._pass_on(signal.SIGHUP))
        try:
            self._processes = [self._start(index) for index in range(len(self._shares))]
            if all(self._wait_started(index) for index in range(len(self._shares))):
                started()
            while not self._stopping.wait(0.1):
                self._replace_ended()
            return self._ended_by
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask_to_stop(self, number: int, _: Any) -> None:
        self._ended_by = number
        self._stopping.set()

    def _start(self, index: int) -> Any:
        ready = self._context.Event()
        process: Any = self._context.Process(
            target=_run_worker,
            args=(self._settings, self._shares[index], self._listener, self._grace, ready),
            name=f"fairtransport-worker-{index}",
            daemon=True,
        )
        process.ready = ready
        process.start()
        self._births[index] = time.monotonic()
        return process

    def _wait_started(self, index: int) -> bool:
        while not self._stopping.is_set():
            process = self._processes[index]
            if process.ready.wait(0.1):
                return True
            if not process.is_alive():
                return False
        return False

    def _replace_ended(self) -> None:
        for index, process in enumerate(self._processes):
            if process.is_alive() or self._stopping.is_set():
                continue
            early = time.monotonic() - self._births[index] < _MIN_LIFE or not process.ready.is_set()
            self._early_ends = self._early_ends + 1 if early else 0
            if self._early_ends > _MAX_EARLY_ENDS:
                raise RuntimeError("The processes of the server end as soon as they have started.")
            _LOG.warning("a process ended (status %s); it is replaced", process.exitcode)
            self._processes[index] = self._start(index)

    def _pass_on(self, number: int) -> None:
        for process in self._processes:
            if process.is_alive() and process.pid is not None and process.ready.is_set():
                os.kill(process.pid, number)

    def _stop(self) -> None:
        self._listener.close()  # otherwise connections would wait in its queue
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + self._grace
        for process in self._processes:
            process.join(max(0.1, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


def _process_context() -> Any:
    """Return how processes are started: as forks of one that has only loaded the libraries, where that is possible."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([create_app.__module__])
    return context


def _run_worker(
    settings: ServerSettings, shared: SharedCounts, listener: socket.socket, grace: float, ready: Any
) -> None:  # pragma: no cover - in another process
    """Run one of several processes; it ends when its parent does."""
    log_to_standard_error()
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(
                getattr(signal, name), signal.SIG_IGN
            )  # the terminal sends them to the parent, too, which stops this process
    server = _Server(_config(create_app(settings, shared), settings, grace), ready.set, grace)
    parent = multiprocessing.parent_process()

    def follow_parent() -> None:
        if parent is not None:
            parent.join()
            server.should_exit = True

    threading.Thread(target=follow_parent, daemon=True).start()
    server.run([listener])
