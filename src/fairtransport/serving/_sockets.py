"""Listening sockets, with errors that say what to do."""

from __future__ import annotations

import errno
import socket

__all__ = ["is_loopback", "listen"]

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Parameters
    ----------
    host : str
        Name or address of an interface of this machine.
    port : int
        From 1 to 65535; 0 selects a free port.

    Returns
    -------
    socket.socket

    Raises
    ------
    OSError
        If the port is in use or not permitted, or if the machine has no such address.

    Examples
    --------
    >>> with listen("127.0.0.1", 0) as one:
    ...     one.getsockname()[1] > 0
    True
    """
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
