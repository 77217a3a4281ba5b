"""Access control: host names of this machine, and a bearer token."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BearerToken", "LocalHosts", "SecurityHeaders", "local_names"]

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


class LocalHosts:
    """Middleware that refuses requests for other hosts than this machine.

    Otherwise a web site whose name resolves to 127.0.0.1 could read the pages (DNS rebinding).

    Parameters
    ----------
    app : ASGI application
    hosts : collection of str
        Permitted values of ``Host``; see `local_names`.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1 or hosts[0] not in self._hosts:
                refusal = "This server is available on this machine only: address it as 127.0.0.1.\n"
                await PlainTextResponse(refusal, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def local_names(port: int) -> set[str]:
    """Return the values of ``Host`` that mean this machine."""
    names = ("127.0.0.1", "localhost", "[::1]")
    return {f"{name}:{port}" for name in names} | ({*names} if port == 80 else set())


class SecurityHeaders:
    """Middleware that adds a strict content security policy and related headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class BearerToken:
    """Middleware that refuses requests without the token, ``Authorization: Bearer TOKEN``.

    Parameters
    ----------
    app : ASGI application
    token : str
    open_paths : collection of str
        Paths that need no token.
    """

    def __init__(self, app: ASGIApp, token: str, open_paths: Collection[str] = ()) -> None:
        self._app, self._open = app, frozenset(open_paths)
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http" and scope["path"] not in self._open and not self._permits(scope):
            refusal = JSONResponse(
                {"error": "The request needs the token of this server: Authorization: Bearer TOKEN."},
                401,
                {"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _permits(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)
