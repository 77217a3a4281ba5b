"""The workbench in the browser (extra: ``app``): audit, choose, repair and train without writing code."""

import errno
import re
from importlib import resources

_LINES = resources.files("fairtransport.app").joinpath("templates", "texts.txt").read_text(encoding="utf-8")
#: Every English text of the workbench, by name.
TEXTS: dict[str, str] = dict(line.split(" = ", 1) for line in _LINES.splitlines())
_CODE = re.compile(r"(?<![\w'])(?:\w+=|\w+_\w*\b|[A-Z]\w*[a-z][A-Z]|slack\b|converged\b)")  # columns are quoted


def say_plainly(text: str, *, keep: bool = False) -> str:
    """Leave out remarks in brackets that name what Python has, and unless they are to ``keep``, such clauses."""
    text = re.sub(r" \((?:[^()]|\([^()]*\))*\)", lambda one: "" if _CODE.search(one[0]) else one[0], text)
    clauses = re.split(r"(?<=[.;]) ", re.sub(r"\bmin_size=(?=\d)", "", text))
    return re.sub(";$", ".", " ".join(one for one in clauses if keep or not _CODE.search(one)))


def say_error(error: Exception) -> str:
    """Return what went wrong, without values of rows."""
    code = errno.ENOMEM if isinstance(error, MemoryError) else getattr(error, "errno", None) or 0
    known = {errno.ENOSPC: "error_disk", errno.EDQUOT: "error_disk", errno.ENOMEM: "error_memory"}.get(code)
    if known:
        return TEXTS[known]
    from fairtransport.serving import describe_error  # noqa: PLC0415 - only the process that serves has loaded it

    text = re.sub("If it marks a missing value.*", TEXTS["error_numbers"], describe_error(error))
    text = re.sub("give its encoding=.*", TEXTS["error_encoding"], text)
    return say_plainly(text, keep=True)
