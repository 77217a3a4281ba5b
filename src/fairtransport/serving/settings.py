"""Settings of a server, checked, and who may access it."""

from __future__ import annotations

import hmac
import html
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from fairtransport._validation import check_choice, check_count, check_real

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server of one model.

    Attributes
    ----------
    model : path
        Model file, as `fairtransport.save` or ``fairtransport train`` writes it.
    verify : path, bytes or key, optional
        Public key that the file, and each later version of it, must be signed for; see `fairtransport.load`.
    unknown_group, features, score
        Treatment of unknown groups and names of columns; see `fairtransport.tabular.RowScorer`.
    max_bytes, max_rows : int, default=16 MiB and 100,000
        Largest body and number of rows of a request.
    timeout : float, default=30
        Seconds in which the body of a request must arrive, in which it must be answered, and its answer be read.
    max_connections : int, default=1000
        Connections that a process holds open; for a further one, the one that has made it wait for longest is closed.
    token : str, optional
        Requests must have the header ``Authorization: Bearer TOKEN``; those for ``/healthz`` and ``/readyz`` need not.
    reload_every : float, default=2
        Seconds between two checks for a new version of the model file.
    min_group_rows : int, default=30
        Groups with fewer rows are not shown in ``/metrics``.
    store : path, optional
        Store of a stream: the model is adjusted to the rows that it scores.
    batch, remembered : int, default=500 and 10,000
        With a store, rows of waiting requests that are adjusted to at once, and answers that are kept (64 MiB at most).
    frozen : bool, default=False
        With a store, monitor without adjusting.
    hosts : tuple of str, default=()
        Permitted values of the header ``Host``; empty for any.
    """

    model: Path
    verify: Any = None
    unknown_group: str = "error"
    features: tuple[str, ...] | None = None
    score: str = "score"
    max_bytes: int = 16 * 2**20
    max_rows: int = 100_000
    timeout: float = 30.0
    max_connections: int = 1000
    token: str | None = None
    reload_every: float = 2.0
    min_group_rows: int = 30
    store: Path | None = None
    batch: int = 500
    frozen: bool = False
    remembered: int = 10_000
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", Path(self.model))
        check_choice(self.unknown_group, ("error", "pooled", "common"), name="unknown_group")
        for name in ("max_bytes", "max_rows", "max_connections", "batch", "remembered", "min_group_rows"):
            check_count(getattr(self, name), name=name)
        check_real(self.timeout, name="timeout", strict=True)
        check_real(self.reload_every, name="reload_every", strict=True)
        if self.token is not None and (not self.token or not self.token.isascii() or not self.token.isprintable()):
            raise ValueError("The token must be a text of printable ASCII characters, and not empty.")


# Access control: host names of this machine, a bearer token, and a token that works once.

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
    """Middleware that adds a strict content security policy and related headers, unless a response has its own."""

    def __init__(self, app: ASGIApp, changes: Mapping[str, str] | None = None) -> None:
        self._app = app
        headers = {**_HEADERS, **(changes or {})}
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                added = (header for header in self._headers if header[0] not in known)
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class BearerToken:
    """Middleware that refuses requests without the token, ``Authorization: Bearer TOKEN``."""

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


class OneTimeToken:
    """Middleware that admits one browser of this machine, the first with the token, which is exchanged for a cookie.

    Requests for other hosts, from other pages or without the cookie are refused.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app, self._hosts, self._token = app, local_names(port), token
        self._name, self._cookie = f"fairtransport-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            await (self._answer(Request(scope)) or self._app)(scope, receive, send)

    def _answer(self, request: Request) -> Response | None:
        """Return a refusal, or the answer that sets the cookie; None for a request that is admitted."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        site, token = request.headers.get("sec-fetch-site", "none"), request.query_params.get("token", "")
        foreign = host not in self._hosts or origin not in {None, f"http://{host}"}
        if request.method != "GET":
            foreign = foreign or origin is None or site not in {"none", "same-origin"}
        if foreign or (site in {"cross-site", "same-site"} and not token):
            return PlainTextResponse("Requests from other pages are refused.", 403)
        if self._token and hmac.compare_digest(token.encode(), self._token.encode()):
            self._token = ""
            # Not a redirect: the first request after one from another site would have no strict cookie.
            path = html.escape("/" + request.url.path.lstrip("/"))
            answer = HTMLResponse(f'<meta http-equiv="refresh" content="0;url={path}">')
            answer.set_cookie(self._name, self._cookie, httponly=True, samesite="strict")
            return answer
        if hmac.compare_digest(request.cookies.get(self._name, "").encode(), self._cookie.encode()):
            return None
        advice = "Use the address that the program printed when it started; it works once."
        return PlainTextResponse(f"This address has no valid token. {advice}", 403)
