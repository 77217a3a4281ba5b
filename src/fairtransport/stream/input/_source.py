"""What the loop of a stream needs to know about its input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Source"]


class Source(Protocol):
    """Lines in batches, with a position from which a resumed run continues.

    Attributes
    ----------
    lines : int
        Number of lines taken so far.
    seekable : bool
        Whether lines that were read can be read again.
    reproducible : bool
        Whether the lines alone decide where a full batch ends.
    ended : bool
        Whether the end of the input was reached.
    header : bytes or None
        Header of CSV; None if it is the first line.
    max_line_bytes : int
        Longer lines are rejected.
    """

    lines: int
    seekable: bool
    reproducible: bool
    ended: bool
    header: bytes | None
    max_line_bytes: int

    @property
    def incomplete(self) -> bool:
        """Whether the input ended in the middle of a line, which is not taken."""

    @property
    def settings(self) -> dict[str, Any]:
        """Options that a resumed run must repeat."""

    def take(self, n_lines: int, *, wait: float | None = None) -> list[bytes]:
        """Return the next lines; fewer at the end, when stopped, or after ``wait`` seconds."""

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint stores."""

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Continue after the lines that a checkpoint says were taken."""

    def repeat(self, entry: Mapping[str, Any]) -> None:
        """Let the next batch be the one of a journal entry."""

    def batch_end(self) -> dict[str, Any]:
        """Return what the journal says about the end of the last batch, besides its number of lines."""

    def locate(self, line: int) -> dict[str, int]:
        """Say where a line of the last batch is."""

    def checkpointed(self) -> None:
        """Note that a checkpoint was written."""
