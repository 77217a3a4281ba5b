"""Errors of scikit-learn without the cells that they quote: a cell may be somebody's name."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["unquoted"]

_TEXT = "X has text; encode it as numbers first, for instance with OneHotEncoder."
_UNKNOWN = (
    "X has categories{where} that were not there in fit. Drop these rows, or let the encoder take them "
    "(handle_unknown='ignore' or 'infrequent_if_exist')."
)
_LABELS = "y has labels that are not the two classes of the model, or not of their type."
_COLUMN = re.compile(r" in column (\d+) ")


@contextmanager
def unquoted() -> Iterator[None]:
    """Raise errors of scikit-learn that are known to quote values without these values.

    What another library's model says of its data is its own business; these are the texts of scikit-learn's
    validation, encoders and imputers.

    Examples
    --------
    >>> with unquoted():
    ...     float("Jane Doe")
    Traceback (most recent call last):
    ValueError: X has text; encode it as numbers first, for instance with OneHotEncoder.
    """
    try:
        yield
    except ValueError as error:
        told = _plain(error)
        if told is None:
            raise
        raise ValueError(told) from None


def _plain(error: BaseException | None) -> str | None:
    """Return what may be said in place of an error, and of those behind it; None when it can stand."""
    while error is not None:
        text = str(error)
        if "could not convert" in text:
            return _TEXT
        if "Found unknown categories" in text or "unknown value" in text:
            column = _COLUMN.search(text[text.rfind("]") :])
            return _UNKNOWN.format(where=f" of column {column[1]}" if column else "")
        if "previously unseen labels" in text or "Mix of label input types" in text:
            return _LABELS
        error = error.__cause__ or error.__context__
    return None
