"""The workbench in the browser (extra: ``app``): audit, choose, repair and train without writing code."""

import errno
from importlib import resources

from fairtransport._validation import describe_error

_LINES = resources.files("fairtransport.app").joinpath("templates", "texts.txt").read_text(encoding="utf-8")
#: Every English text of the workbench, by name.
TEXTS: dict[str, str] = dict(line.split(" = ", 1) for line in _LINES.splitlines())


def say_error(error: Exception) -> str:
    """Return what went wrong, without values of rows."""
    full = getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}
    known = "error_disk" if full else "error_memory" if isinstance(error, MemoryError) else ""
    return TEXTS[known] if known else describe_error(error)
