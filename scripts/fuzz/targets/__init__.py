"""The fuzz targets, one file for each reader.

To add a target, add a file with four names::

    SHARE = 1                     # its share of the time, relative to the others
    REFUSALS = (ModelFileError,)  # expected errors; any other error is a finding

    def seeds() -> list[bytes]:   # initial cases
        ...

    def case(data: bytes) -> None:  # one case; REFUSALS decides whether an error is expected
        ...

``make fuzz`` runs all of them with atheris, and ``tests/security/test_fuzz_targets.py`` runs them with hypothesis in
``make test``. What commands say of errors must not reveal a person's value either: put `CANARY` into a seed, and a
refusal that quotes it is a finding. Where errors may quote part of a case, such as the names of columns,
``quotable(data)`` returns that part.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol, cast

from fairtransport._validation import describe_error

__all__ = ["CANARY", "Target", "attempt", "load_target", "target_names"]

#: Stands for a person's value in the seeds. No error may quote it.
CANARY = "CANARY7"


class Target(Protocol):
    """The interface of a target."""

    SHARE: float
    REFUSALS: tuple[type[Exception], ...]

    def seeds(self) -> list[bytes]:
        """Return the initial cases."""

    def case(self, data: bytes) -> None:
        """Run one case."""


def target_names() -> list[str]:
    """Return the names of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load_target(name: str) -> Target:
    """Return the target with a given name."""
    return cast("Target", importlib.import_module(f"{__name__}.{name}"))


def attempt(target: Target, data: bytes) -> bool:
    """Run one case, and return whether it was accepted.

    Raises
    ------
    Exception
        A finding: an error that is not among the target's refusals, or a refusal that quotes a person's value.
    """
    try:
        target.case(data)
    except target.REFUSALS as refusal:
        quotable = getattr(target, "quotable", lambda _: b"")(data)
        if CANARY.encode() not in quotable and CANARY in describe_error(refusal):
            raise AssertionError("A refusal quotes a person's value.") from refusal
        return False
    return True
