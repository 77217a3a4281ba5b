"""SIGTERM and SIGHUP end a command like Ctrl-C, so that it removes its temporary files and unfinished outputs."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Terminated", "termination_as_exception"]


class Terminated(KeyboardInterrupt):
    """A signal has asked the process to end.

    Attributes
    ----------
    number : int
        Number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def termination_as_exception() -> Iterator[None]:
    """Raise `Terminated` in the block when the first of these signals arrives; a second one ends the process at once.

    A signal that is ignored, as under ``nohup``, stays ignored.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, _frame: Any) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_DFL)
        raise Terminated(number)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
