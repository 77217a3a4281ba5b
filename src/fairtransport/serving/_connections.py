"""Limits on connections that uvicorn does not have: their number, and the time that a request may take to arrive."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = ["limited_protocol"]


def limited_protocol(*, max_connections: int, seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with a limit on connections and on the time for a request's headers.

    Parameters
    ----------
    max_connections : int
        Further connections are closed at once.
    seconds : float
        A connection is closed if the headers of a request do not arrive within this time, however slowly they come.

    Returns
    -------
    type
        For ``http=`` of `uvicorn.Config`; on httptools if it is installed, otherwise on h11.
    """
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
