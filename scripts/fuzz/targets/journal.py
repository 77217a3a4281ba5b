"""The journal of a store: whole lines are entries, anything else ends it."""

from __future__ import annotations

import zlib

from fairtransport.stream._journal import complete_entries, journal_line

SHARE = 1


class CutError(ValueError):
    """Lines were left out."""


REFUSALS = (CutError,)


def seeds() -> list[bytes]:
    """Return lines that are whole, torn, and signed by somebody else."""
    lines = [journal_line({"batch": k, "sizes": [1.0, 2.0], "operator": "CANARY7"}) for k in range(3)]
    return [b"\0" + b"".join(lines), b"\0" + b"".join(lines)[:-5], b'\1{"batch":1}\n[1]\n', b"\1" + b"[" * 60 + b"\n"]


def case(data: bytes) -> None:
    """Let the first byte say whether the lines get a checksum that fits."""
    lines = data[1:].splitlines(keepends=True)
    if data[:1] and data[0] % 2:
        lines = [_signed(line.rstrip(b"\n")) for line in lines]
    entries = complete_entries(lines)
    again = complete_entries([journal_line(entry) for entry in entries])
    if again != entries:
        raise RuntimeError("Entries that were written again are others.")
    if len(entries) < len(lines):
        raise CutError(f"{len(lines) - len(entries)} lines are cut.")


def _signed(text: bytes) -> bytes:
    return text[:-1] + b',"check":"%08x"}\n' % zlib.crc32(text[:-1] + b"}")
