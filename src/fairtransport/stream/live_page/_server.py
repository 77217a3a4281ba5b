"""Server of the live page: read-only, on this machine only, in a thread of its own.

A browser loads ``/`` once and receives every change through ``/events`` (server-sent events). Requests cannot change
anything: only GET and HEAD are answered, and only the method, the path and the ``Host`` of a request are read. The
``Host`` must be this machine's; otherwise a web site whose name resolves to 127.0.0.1 could read the page (DNS
rebinding).

The stream must not suffer from its page. The number of connections is limited, and with it that of threads and file
descriptors; a request must be complete within ten seconds, and so must each reading of what is sent; bodies of requests
are not read.
"""

from __future__ import annotations

import contextlib
import errno
import math
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fairtransport._text import one_line
from fairtransport.stream.live_page._page_data import PageData, to_json
from fairtransport.stream.live_page._page_files import page_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LivePage", "serve_page"]

_ADDRESS = "127.0.0.1"
_MAX_VIEWERS = 16  # open pages; each needs a thread
_MAX_CONNECTIONS = 32  # of viewers and of other requests
_REQUEST_SECONDS = 10.0  # for a request, from the connection to its last header
_INTERVAL = 1.0  # seconds between two snapshots
_KEEP_ALIVE = 5.0  # seconds without a change after which an event is sent nevertheless
_CLOSE_TIMEOUT = 2.0  # seconds to send the last event to open pages

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def serve_page(snapshot: Callable[[], Mapping[str, Any]], port: int = 0) -> LivePage:
    """Serve the live page of a stream on the loopback address.

    Parameters
    ----------
    snapshot : callable
        Returns the content of the page, as `ContinualAdjuster.snapshot` does. It is called from another thread, about
        once a second while the page is open.
    port : int, default=0
        From 1 to 65535; 0 selects a free port.

    Returns
    -------
    LivePage
        Open its ``url`` in a browser on this machine; ``close()`` stops the server.

    Raises
    ------
    OSError
        If the port is in use or not permitted.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> with serve_page(lambda: {"title": "Scores", "rows": 0}) as page:
    ...     urlopen(page.url).status
    200
    """
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port must be an integer; got a {type(port).__name__}.")
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be from 1 to 65535, or 0 for a free port; got {port}.")
    try:
        server = _Server((_ADDRESS, port), PageData(snapshot))
    except PermissionError as error:
        raise PermissionError(
            error.errno, f"Port {port} is not permitted for this user; choose one above 1023, or 0 for a free port"
        ) from error
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(
            error.errno, f"Port {port} is in use by another program; choose another, or 0 for a free port"
        ) from error
    return LivePage(server)


class LivePage:
    """A running server of the live page; `serve_page` starts one.

    Attributes
    ----------
    url : str
        Address of the page.
    port : int
        Port of the server.
    """

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, args=(0.1,), name="fairtransport-page", daemon=True
        )
        self._thread.start()
        self.port: int = server.server_address[1]
        self.url = f"http://{_ADDRESS}:{self.port}/"

    def close(self, message: str = "") -> None:
        """Inform open pages that the stream has ended, and stop the server; further calls do nothing.

        Parameters
        ----------
        message : str
            Reason to show on the page, in one line and without personal data.
        """
        if self._server.ended.is_set():
            return
        self._server.end(one_line(message))
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_CLOSE_TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """HTTP server with the data of the page, a limited number of connections, and the number of its viewers."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], data: PageData) -> None:
        super().__init__(address, _Handler)
        self.data = data
        self.files = page_files()
        self.hosts = {f"{name}:{self.server_address[1]}" for name in (_ADDRESS, "localhost")}
        if self.server_address[1] == 80:
            self.hosts |= {_ADDRESS, "localhost"}
        self.ended = threading.Event()
        self.message = ""
        self.viewers = 0
        self.changed = threading.Condition()
        self._limit = _connection_limit()
        self._deadlines: dict[socket.socket, float] = {}  # of open connections; infinite once a request is complete
        self._mutex = threading.Lock()

    # ---------------------------------------------------------------- connections

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; without file descriptors, wait instead of trying again at once."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(0.1)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread, unless there are too many connections."""
        with self._mutex:
            admitted = len(self._deadlines) < self._limit
            if admitted:
                self._deadlines[request] = time.monotonic() + _REQUEST_SECONDS
            else:  # make room for the next one
                self._disconnect(min(self._deadlines, key=self._deadlines.__getitem__))
        if admitted:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def request_complete(self, request: socket.socket) -> None:
        """Note that all of a request was received."""
        with self._mutex:
            if request in self._deadlines:
                self._deadlines[request] = math.inf

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._mutex:
            self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Disconnect those whose request takes too long; called ten times per second."""
        with self._mutex:
            for request, deadline in self._deadlines.items():
                if deadline < time.monotonic():
                    self._disconnect(request)

    def _disconnect(self, request: socket.socket) -> None:
        """Let the thread of a connection that waits for its request see the end of it."""
        if self._deadlines[request] < math.inf:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    # ---------------------------------------------------------------- viewers

    def enter(self) -> bool:
        """Count one more viewer; return False if there are too many."""
        with self.changed:
            if self.viewers >= _MAX_VIEWERS or self.ended.is_set():
                return False
            self.viewers += 1
            return True

    def leave(self) -> None:
        with self.changed:
            self.viewers -= 1
            self.changed.notify_all()

    def end(self, message: str) -> None:
        """Inform the viewers that the stream has ended, and wait for them, but not long."""
        self.message = message
        self.ended.set()
        with self.changed:
            self.changed.wait_for(lambda: self.viewers == 0, timeout=_CLOSE_TIMEOUT)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a browser that disconnects is not an error of the stream."""


class _Handler(BaseHTTPRequestHandler):
    """Handler of one request."""

    server: _Server
    timeout = 10  # seconds for a page that does not read
    _routes: ClassVar[dict[str, str]] = {"/events": "_events", "/snapshot.json": "_snapshot"}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):  # any other HTTP method
            return self._not_allowed
        raise AttributeError(name)

    def parse_request(self) -> bool:
        """Read the headers; a body is never read."""
        is_valid = super().parse_request()
        self.server.request_complete(self.connection)
        return is_valid

    def do_GET(self) -> None:
        """Respond with a file of the page, the snapshot or the events."""
        self._answer_path()

    def do_HEAD(self) -> None:
        """Respond as to GET, without the content."""
        self._answer_path()

    def _answer_path(self) -> None:
        path = self.path.partition("?")[0]
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            self._text(403, "This page is available on this machine only: open it as 127.0.0.1.\n")
        elif path in self.server.files:
            kind, content = self.server.files[path]
            self._send(200, kind, content)
        elif path in self._routes:
            getattr(self, self._routes[path])()
        else:
            self._text(404, "Page not found.\n")

    def _snapshot(self) -> None:
        self._send(200, "application/json", self.server.data.current().encode())

    def _events(self) -> None:
        """Send every change until the stream ends or the browser disconnects."""
        if self.command == "HEAD":
            self._send(200, "text/event-stream", b"")
        elif not self.server.enter():
            self._text(503, "Too many pages are open, or the stream is ending; close one and reload.\n")
        else:
            try:
                self._send_events()
            finally:
                self.server.leave()

    def _send_events(self) -> None:
        self._head(200, "text/event-stream; charset=utf-8")
        last, unchanged = "", 0.0
        while True:
            ended = self.server.ended.is_set()
            now = self.server.data.current(fresh=ended)
            if now != last:
                self._event("snapshot", now)
                last, unchanged = now, 0.0
            elif unchanged >= _KEEP_ALIVE:
                self._event("alive", "{}")
                unchanged = 0.0
            if ended:
                self._event("end", to_json({"message": self.server.message}))
                return
            self.server.ended.wait(_INTERVAL)
            unchanged += _INTERVAL

    def _event(self, name: str, data: str) -> None:
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    # ------------------------------------------------------------------ responses

    def _not_allowed(self) -> None:
        self._text(405, "This page is read-only: use GET or HEAD.\n", {"Allow": "GET, HEAD"})

    def _text(self, status: int, text: str, more: Mapping[str, str] | None = None) -> None:
        self._send(status, "text/plain; charset=utf-8", text.encode(), more)

    def _send(self, status: int, kind: str, content: bytes, more: Mapping[str, str] | None = None) -> None:
        self._head(status, kind, {"Content-Length": str(len(content)), **(more or {})})
        if self.command != "HEAD":
            self.wfile.write(content)

    def _head(self, status: int, kind: str, more: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **_HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def version_string(self) -> str:
        """Return the name of the program, without the versions of Python and its library."""
        return "fairtransport"

    def log_message(self, *_: Any) -> None:
        """Do nothing: standard error belongs to the stream."""


def _connection_limit() -> int:
    """Return the number of connections that leaves the stream most of the file descriptors of this process."""
    try:
        import resource  # noqa: PLC0415 - not available on Windows
    except ImportError:  # pragma: no cover
        return _MAX_CONNECTIONS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAX_CONNECTIONS if most == resource.RLIM_INFINITY else max(2, min(_MAX_CONNECTIONS, most // 4))
