"""Listening sockets and limited connections, with errors that say what to do."""

from __future__ import annotations

import errno
import socket
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address."""
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port must be an integer; got a {type(port).__name__}.")
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be from 1 to 65535, or 0 for a free port; got {port}.")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
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


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to an address."""
    return host in {"localhost", "::1"} or host.startswith("127.")


# Limits on connections that uvicorn does not have: their number, and the time that a request may take to arrive.


def limited_protocol(*, max_connections: int, seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with a limit on connections and on the time for a request's headers."""
    if find_spec("httptools") is not None:
        base = import_module("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol
    else:
        base = import_module("uvicorn.protocols.http.h11_impl").H11Protocol
    limits = {"max_connections": max_connections, "seconds": seconds}
    return type("LimitedProtocol", (_Limits, base), limits)


class _Limits:
    """Methods that extend those of a protocol of uvicorn."""

    max_connections: int
    seconds: float
    connections: Any  # of the protocol
    cycle: Any
    loop: Any
    transport: Any
    _deadline: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        if len(self.connections) > self.max_connections:
            transport.close()
        else:
            self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)  # type: ignore[misc]
        if self.cycle is None or self.cycle.response_complete:
            self._expect_headers()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)  # type: ignore[misc]

    def _expect_headers(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
