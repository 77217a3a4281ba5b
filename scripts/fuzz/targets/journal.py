"""The journal of a store: it ends at the first line that is not complete."""

from __future__ import annotations

import zlib

from fairtransport.stream._store import complete_entries, journal_line

SHARE = 1


class CutError(ValueError):
    """Lines were left out."""


REFUSALS = (CutError,)


def seeds() -> list[bytes]:
    """Return lines that are complete, truncated, and without a checksum."""
    lines = [journal_line({"batch": k, "sizes": [1.0, 2.0], "operator": "CANARY7"}) for k in range(3)]
    return [b"\0" + b"".join(lines), b"\0" + b"".join(lines)[:-5], b'\1{"batch":1}\n[1]\n', b"\1" + b"[" * 60 + b"\n"]


def case(data: bytes) -> None:
    """Read the lines, with correct checksums if the first byte is odd."""
    lines = data[1:].splitlines(keepends=True)
    if data[:1] and data[0] % 2:
        lines = [_with_checksum(line.rstrip(b"\n")) for line in lines]
    entries = complete_entries(lines)
    again = complete_entries([journal_line(entry) for entry in entries])
    if again != entries:
        raise RuntimeError("Entries differ after writing them again.")
    if len(entries) < len(lines):
        raise CutError(f"{len(lines) - len(entries)} lines are cut.")


def _with_checksum(text: bytes) -> bytes:
    return text[:-1] + b',"check":"%08x"}\n' % zlib.crc32(text[:-1] + b"}")
