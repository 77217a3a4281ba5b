"""Errors that become responses."""

from __future__ import annotations

__all__ = ["RequestError"]


class RequestError(Exception):
    """A request that cannot be answered.

    Parameters
    ----------
    status : int
        HTTP status of the response.
    message : str
        What is wrong and what to do, without any value of a row.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
