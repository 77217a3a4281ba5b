"""A limit on the decompressed size of files, checked while the engine reads.

The engine decompresses as a stream, so a decompression bomb costs neither memory nor disk, but it may take days, and
its header need not state its size. A second reader, which only counts bytes, runs in parallel and is several times
faster.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.tables.files.paths import FoundFile

__all__ = ["ALWAYS_ALLOWED", "MOST_EXPANSION", "DecompressionGuard"]

#: Largest allowed ratio of decompressed to compressed size.
MOST_EXPANSION = 200.0
#: Decompressed bytes that are always allowed.
ALWAYS_ALLOWED = 1 << 30

_MOST_GZIP = 1032  # largest ratio that gzip can reach
_CHUNK = 1 << 20
_POLL = 0.1


class DecompressionGuard:
    """Thread that decompresses files and counts the bytes.

    Parameters
    ----------
    files : sequence of FoundFile
    most : float
        Refuse a file of which some leading part decompresses to more than `ALWAYS_ALLOWED` bytes and to more than
        ``most`` times its size.
    """

    def __init__(self, files: Sequence[FoundFile], most: float = MOST_EXPANSION) -> None:
        self.most = most
        self.error: ValueError | None = None
        self._files = [file for file in files if _can_exceed(file, most)]
        self._stopped = threading.Event()
        self._ended = threading.Event()
        if self._files:
            threading.Thread(target=self._read, daemon=True, name="decompression guard").start()
        else:
            self._ended.set()

    def check(self, *, wait: bool) -> None:
        """Raise where a file exceeded the limit; with ``wait``, after all files have been counted."""
        while wait and not self._ended.wait(_POLL):
            pass
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Stop counting."""
        self._stopped.set()
        self._ended.wait()

    def _read(self) -> None:
        try:
            for file in self._files:
                if self.error is None and not self._stopped.is_set():
                    self._read_file(file)
        finally:
            self._ended.set()

    def _read_file(self, file: FoundFile) -> None:
        arrow: Any = load_extra("pyarrow")
        n_bytes = 0
        try:
            with arrow.OSFile(str(file.path)) as raw, arrow.CompressedInputStream(raw, file.compression) as stream:
                while not self._stopped.is_set():
                    size = stream.read_buffer(_CHUNK).size
                    n_bytes += size
                    if size == 0:
                        return
                    if n_bytes > ALWAYS_ALLOWED and n_bytes > self.most * raw.tell():
                        self.error = ValueError(
                            f"{file.path} decompresses to more than {self.most:g} times its size and more than "
                            f"{ALWAYS_ALLOWED / 2**30:.3g} GiB, as a file made to do harm would. If you trust it, "
                            "raise max_expansion=."
                        )
                        return
        except (arrow.ArrowException, OSError):  # the engine reports damaged files
            return


def _can_exceed(file: FoundFile, most: float) -> bool:
    if file.compression is None:
        return False
    if file.compression != "gzip":
        return True
    return most < _MOST_GZIP and file.path.stat().st_size * _MOST_GZIP > ALWAYS_ALLOWED
