"""Listening sockets and limited connections, with errors that say what to do."""

from __future__ import annotations

import errno
import socket
from operator import attrgetter
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address."""
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port must be an integer; got a {type(port).__name__}.")
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be from 1 to 65535, or 0 for a free port; got {port}.")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # Connections inherit it: an answer in two parts would wait for the client's delayed acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except PermissionError as error:
        raise PermissionError(
            error.errno, f"Port {port} is not permitted for this user; choose one above 1023, or 0 for a free port"
        ) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"Port {port} is in use by another program; choose another, or 0 for a free port"
        elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            message = "This machine has no such address to listen on; use 127.0.0.1 for itself, 0.0.0.0 for all others"
        else:
            raise
        raise OSError(error.errno, message) from error
    return listening


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to an address."""
    return host in {"localhost", "::1"} or host.startswith("127.")


# Limits on connections that uvicorn does not have: their number, and how long a client may make the server wait.


def make_config(
    app: Any, max_connections: int, options: Any, *, seconds: float = 10.0, read_seconds: float = 30.0, grace: float
) -> Any:
    """Return uvicorn's configuration, with limits on connections, and on the seconds for headers and unread answers."""
    limits = {"max_connections": max_connections, "seconds": seconds, "read_seconds": read_seconds}
    return uvicorn.Config(
        app,
        http=type("LimitedProtocol", (_Limits,), {**limits, "linger": min(1.0, grace / 4)}),
        ws="none",
        log_config=None,
        log_level="critical",  # messages of uvicorn may quote a request
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, int(grace) - 2),  # the rest is for the store
        **options,
    )


class _Limits(H11Protocol):
    max_connections: int
    seconds: float
    read_seconds: float
    linger: float
    waits_since = 0.0
    _stopping = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._deadlines: dict[str, Any] = {}
        transport.set_write_buffer_limits(0)  # so that writing is paused as long as anything is not sent
        self.waits_since = self.loop.time()
        self._expect("headers", self.seconds)
        if len(self.connections) > self.max_connections:
            others: Any = self.connections
            min((one for one in others if one.waits_for_client), key=attrgetter("waits_since")).transport.abort()

    @property
    def waits_for_client(self) -> bool:
        """True if a request, or the rest of it, is yet to come."""
        idle = self.cycle is None or self.cycle.response_complete or self.cycle.more_body
        return idle and not self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect("headers", self.seconds)
        else:
            self._has_come("headers")
            if self._stopping:
                self._close_after_answer()

    def on_response_complete(self) -> None:
        self.waits_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect("reader", self.read_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._has_come("reader")

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_come("headers")
        self._has_come("reader")
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection after its answer; one that is kept, after the requests that are on their way."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._close_after_answer()
        elif self._stopping:
            super().shutdown()
        else:
            self._stopping = True
            self.loop.call_later(self.linger, self.shutdown)

    def _close_after_answer(self) -> None:
        self.cycle.keep_alive = False
        headers: Any = self.cycle.scope["headers"]
        headers.append((b"connection", b"close"))  # uvicorn repeats it in the answer

    def _expect(self, what: str, seconds: float) -> None:
        if what not in self._deadlines:
            self._deadlines[what] = self.loop.call_later(seconds, self.transport.abort)

    def _has_come(self, what: str) -> None:
        if what in self._deadlines:
            self._deadlines.pop(what).cancel()
