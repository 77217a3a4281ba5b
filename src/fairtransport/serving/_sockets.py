"""Listening sockets and limited connections, with errors that say what to do."""

from __future__ import annotations

import errno
import socket
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import uvicorn

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


# Limits on connections that uvicorn does not have: their number, and the time that a request may take to arrive.


def make_config(app: Any, max_connections: int, *, seconds: float = 10.0, grace: float, **options: Any) -> Any:
    """Return uvicorn's configuration, with a limit on connections and on the seconds for a request's headers."""
    kind = "httptools" if find_spec("httptools") is not None else "h11"
    module = import_module(f"uvicorn.protocols.http.{kind}_impl")
    base = module.HttpToolsProtocol if kind == "httptools" else module.H11Protocol
    limits = {"max_connections": max_connections, "seconds": seconds}
    return uvicorn.Config(
        app,
        http=type("LimitedProtocol", (_Limits, base), limits),
        ws="none",
        log_config=None,
        log_level="critical",  # messages of uvicorn may quote a request
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, int(grace)),
        **options,
    )


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
