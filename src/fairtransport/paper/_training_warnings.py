"""The warnings of training that reproducing the paper provokes on purpose."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

from fairtransport._warnings import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ignore_training_warnings"]


@contextlib.contextmanager
def ignore_training_warnings() -> Iterator[None]:
    """Ignore what the tables and figures report anyway: what parity costs, and that training was interrupted.

    Python's filters belong to the whole process, so this is entered once, around all threads that train, and never
    inside one of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.filterwarnings("ignore", message="Training was interrupted")
        yield
