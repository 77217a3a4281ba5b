"""The live page of a stream: read-only, on this machine only, from a thread of its own.

A browser opens ``/`` once and is told of every change through ``/events`` (server-sent events). Nothing that a
browser sends changes anything: only GET and HEAD are answered, nothing of a request but its path, its ``Host`` and its
method is looked at. The ``Host`` must be this machine's, or a web site whose name is pointed at 127.0.0.1 could read
the page (DNS rebinding).
"""

from __future__ import annotations

import errno
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fairtransport._text import one_line
from fairtransport.stream.live_page._page_data import Board
from fairtransport.stream.live_page._page_files import page_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LivePage", "serve_page"]

_ADDRESS = "127.0.0.1"
_MOST_VIEWERS = 16  # open pages; each holds a thread
_EVERY = 1.0  # seconds between two looks
_SILENCE = 5.0  # seconds after which a page is told that we are still here
_GOODBYE = 2.0  # seconds that open pages have to hear that the stream has ended

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
        Returns what is to be shown, as `ContinualAdjuster.snapshot` does. It is called from another thread, at most
        about once a second and only while somebody looks.
    port : int, default 0
        From 1 to 65535; 0 takes one that is free.

    Returns
    -------
    LivePage
        Its ``url`` is to be opened in a browser on this machine; ``close()`` ends it.

    Raises
    ------
    OSError
        When the port is in use, or not allowed.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> with serve_page(lambda: {"title": "Scores", "rows": 0}) as page:
    ...     urlopen(page.url).status
    200
    """
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port must be a whole number, not {type(port).__name__}.")
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be from 1 to 65535, or 0 for one that is free; got {port}.")
    try:
        server = _Server((_ADDRESS, port), Board(snapshot))
    except PermissionError as error:
        raise PermissionError(
            error.errno, f"Port {port} is not allowed for this user; choose one above 1023, or 0 for one that is free"
        ) from error
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(
            error.errno, f"Port {port} is in use by another program; choose another, or 0 for one that is free"
        ) from error
    return LivePage(server)


class LivePage:
    """A page that is being served. Use `serve_page` to make one.

    Attributes
    ----------
    url : str
        Address of the page.
    port : int
    """

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, args=(0.1,), name="fairtransport-page", daemon=True
        )
        self._thread.start()
        self.port: int = server.server_address[1]
        self.url = f"http://{_ADDRESS}:{self.port}/"

    def close(self, told: str = "") -> None:
        """Tell open pages that the stream has ended, and stop serving. A second call does nothing.

        Parameters
        ----------
        told : str
            Why it has ended, for the reader: one line, without anybody's data.
        """
        if self._server.ended.is_set():
            return
        self._server.end(one_line(told))
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_GOODBYE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """Knows the board, who looks at it, and whether the stream has ended."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], board: Board) -> None:
        super().__init__(address, _Handler)
        self.board = board
        self.files = page_files()
        self.hosts = {f"{name}:{self.server_address[1]}" for name in (_ADDRESS, "localhost")}
        if self.server_address[1] == 80:
            self.hosts |= {_ADDRESS, "localhost"}
        self.ended = threading.Event()
        self.told = ""
        self.viewers = 0
        self.changed = threading.Condition()

    def enter(self) -> bool:
        """Let one more viewer in, if there is room."""
        with self.changed:
            if self.viewers >= _MOST_VIEWERS or self.ended.is_set():
                return False
            self.viewers += 1
            return True

    def leave(self) -> None:
        with self.changed:
            self.viewers -= 1
            self.changed.notify_all()

    def end(self, told: str) -> None:
        """Say that the stream has ended; wait until all viewers have heard it, but not long."""
        self.told = told
        self.ended.set()
        with self.changed:
            self.changed.wait_for(lambda: self.viewers == 0, timeout=_GOODBYE)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: a browser that goes away is no error of the stream."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server
    timeout = 10  # seconds that a request, or a page that does not read, may take
    _routes: ClassVar[dict[str, str]] = {"/events": "_events", "/snapshot.json": "_snapshot"}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):  # any method that is not defined below
            return self._not_allowed
        raise AttributeError(name)

    def do_GET(self) -> None:
        """Answer with a page file, the snapshot or the events."""
        self._answer_path()

    def do_HEAD(self) -> None:
        """Answer as GET does, without the contents."""
        self._answer_path()

    def _answer_path(self) -> None:
        path = self.path.partition("?")[0]
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            self._text(403, "This page is for this machine only: open it by its address, 127.0.0.1.\n")
        elif path in self.server.files:
            kind, content = self.server.files[path]
            self._send(200, kind, content)
        elif path in self._routes:
            getattr(self, self._routes[path])()
        else:
            self._text(404, "There is no such page.\n")

    def _snapshot(self) -> None:
        self._send(200, "application/json", self.server.board.look().encode())

    def _events(self) -> None:
        """Tell of every change until the stream ends or the browser goes."""
        if self.command == "HEAD":
            self._send(200, "text/event-stream", b"")
        elif not self.server.enter():
            self._text(503, "Too many pages are open, or the stream is ending; close one and load again.\n")
        else:
            try:
                self._tell()
            finally:
                self.server.leave()

    def _tell(self) -> None:
        self._head(200, "text/event-stream; charset=utf-8")
        last, silence = "", 0.0
        while True:
            ended = self.server.ended.is_set()
            now = self.server.board.look(fresh=ended)
            if now != last:
                self._event("snapshot", now)
                last, silence = now, 0.0
            elif silence >= _SILENCE:
                self._event("here", "{}")
                silence = 0.0
            if ended:
                self._event("end", self.server.board.words(self.server.told))
                return
            self.server.ended.wait(_EVERY)
            silence += _EVERY

    def _event(self, name: str, data: str) -> None:
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    # ------------------------------------------------------------------ plain answers

    def _not_allowed(self) -> None:
        self._text(405, "This page can only be read: GET and HEAD.\n", {"Allow": "GET, HEAD"})

    def _text(self, status: int, words: str, more: Mapping[str, str] | None = None) -> None:
        self._send(status, "text/plain; charset=utf-8", words.encode(), more)

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
        """Name the program, not the versions of Python and its library."""
        return "fairtransport"

    def log_message(self, *_: Any) -> None:
        """Write nothing: standard error belongs to the stream."""
