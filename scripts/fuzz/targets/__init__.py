"""What is fuzzed: one file for each reader, found by its name.

A new target is a file here with four names, and nothing else has to be told of it::

    SHARE = 1                     # of the time, as weights
    REFUSALS = (ModelFileError,)  # errors that are an answer; any other is a finding

    def seeds() -> list[bytes]:   # cases to begin with
        ...

    def case(data: bytes) -> None:  # one case; what it raises is judged by REFUSALS
        ...

``make fuzz`` runs all of them with atheris, and ``tests/security/test_fuzz_targets.py`` runs them with hypothesis in
``make test``. A person's value must not come out either: put `CANARY` into a seed, and a refusal that repeats it is a
finding. Where errors may tell part of a case, such as the names of columns, ``told(data)`` returns that part.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CANARY", "Target", "attempt", "load_target", "target_names"]

#: Stands for a person's value in the seeds. No error may repeat it.
CANARY = "CANARY7"


class Target(Protocol):
    """What a file of this folder has."""

    SHARE: float
    REFUSALS: tuple[type[Exception], ...]

    def seeds(self) -> list[bytes]:
        """Return cases to begin with."""

    def case(self, data: bytes) -> None:
        """Try one case."""


def target_names() -> list[str]:
    """Return the names of all targets."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__))


def load_target(name: str) -> Target:
    """Return the target of that name."""
    return cast("Target", importlib.import_module(f"{__name__}.{name}"))


def attempt(target: Target, data: bytes) -> bool:
    """Try one case, and return whether it was accepted.

    Raises
    ------
    Exception
        A finding: an error that is not among the target's refusals, or a refusal that tells a person's value.
    """
    try:
        target.case(data)
    except target.REFUSALS as refusal:
        told = getattr(target, "told", lambda _: b"")(data)
        if CANARY.encode() not in told and any(CANARY in text for text in _texts_of(refusal)):
            raise AssertionError("A refusal tells a person's value.") from refusal
        return False
    return True


def _texts_of(error: BaseException | None) -> Iterator[str]:
    """Yield what a traceback would print of an error and of those that it shows as its causes."""
    while error is not None:
        yield f"{error} {getattr(error, '__notes__', '')}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
