"""Server of the live page alone: read-only, on this machine only, in a thread of its own.

The stream must not suffer from its page: the number of connections is limited, and with it that of file descriptors; a
request must arrive within ten seconds, and bodies of requests are not read.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from fairtransport._text import one_line
from fairtransport.serving._access import LocalHosts, SecurityHeaders, local_names
from fairtransport.serving._connections import limited_protocol
from fairtransport.serving._sockets import listen
from fairtransport.serving.live_page._routes import LiveView

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

__all__ = ["LivePage", "serve_page"]

_ADDRESS = "127.0.0.1"
_MAX_CONNECTIONS = 32
_REQUEST_SECONDS = 10.0  # for the headers of a request
_CLOSE_TIMEOUT = 2.0  # seconds to send the last event to open pages


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
    ...     with urlopen(page.url) as response:
    ...         response.status
    200
    """
    return LivePage(LiveView(snapshot), listen(_ADDRESS, port))


class LivePage:
    """A running server of the live page; `serve_page` starts one.

    Attributes
    ----------
    url : str
        Address of the page.
    port : int
        Port of the server.
    view : LiveView
    """

    def __init__(self, view: LiveView, listener: socket.socket) -> None:
        self.view = view
        self.port: int = listener.getsockname()[1]
        self.url = f"http://{_ADDRESS}:{self.port}/"
        self.limit = _connection_limit()
        hosts = Middleware(LocalHosts, hosts=local_names(self.port))
        app = Starlette(routes=view.routes(), middleware=[Middleware(SecurityHeaders), hosts])
        protocol: Any = limited_protocol(max_connections=self.limit, seconds=_REQUEST_SECONDS)
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # standard error belongs to the stream
            server_header=False,
            headers=[("Server", "fairtransport")],
            proxy_headers=False,
            timeout_graceful_shutdown=int(_CLOSE_TIMEOUT),
        )
        self._server = uvicorn.Server(config)
        self._listener = listener
        self._closed = False
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="fairtransport-page", daemon=True
        )
        self._thread.start()

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._server.server_state.connections)

    def close(self, message: str = "") -> None:
        """Inform open pages that the stream has ended, and stop the server; further calls do nothing.

        Parameters
        ----------
        message : str
            Reason to show on the page, in one line and without personal data.
        """
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + _CLOSE_TIMEOUT
        while not self._server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._server.started:
            loop = self._server.servers[0].get_loop()
            loop.call_soon_threadsafe(self.view.end, one_line(message))
            while self.view.viewers and time.monotonic() < deadline:
                time.sleep(0.01)
        self._server.should_exit = True
        self._thread.join(2 * _CLOSE_TIMEOUT)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connection_limit() -> int:
    """Return the number of connections that leaves the stream most of the file descriptors of this process."""
    try:
        import resource  # noqa: PLC0415 - not available on Windows
    except ImportError:  # pragma: no cover
        return _MAX_CONNECTIONS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAX_CONNECTIONS if most == resource.RLIM_INFINITY else max(2, min(_MAX_CONNECTIONS, most // 4))
