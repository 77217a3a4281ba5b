"""Redaction of scikit-learn's error messages, which quote cells: a cell may contain a person's name."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["redacted_errors"]

_TEXT = "X has text; encode it as numbers first, for instance with OneHotEncoder."
_UNKNOWN = (
    "X has categories{where} that were not seen in fit. Drop these rows, or let the encoder accept them "
    "(handle_unknown='ignore' or 'infrequent_if_exist')."
)
_LABELS = "y has labels that are not the two classes of the model, or not of their type."
_COLUMN = re.compile(r" in column (\d+) ")


@contextmanager
def redacted_errors() -> Iterator[None]:
    """Replace errors of scikit-learn that quote values by errors that do not.

    Only the messages of scikit-learn's validation, encoders and imputers are known; errors of other libraries pass
    unchanged.

    Examples
    --------
    >>> with redacted_errors():
    ...     float("Jane Doe")
    Traceback (most recent call last):
    ValueError: X has text; encode it as numbers first, for instance with OneHotEncoder.
    """
    try:
        yield
    except ValueError as error:
        message = _redacted_message(error)
        if message is None:
            raise
        raise ValueError(message) from None


def _redacted_message(error: BaseException | None) -> str | None:
    """Return the message that replaces an error's, or None if neither it nor its causes quote a value."""
    while error is not None:
        text = str(error)
        if "could not convert" in text:
            return _TEXT
        if "Found unknown categories" in text or "unknown value" in text:
            column = _COLUMN.search(text[text.rfind("]") :])
            return _UNKNOWN.format(where=f" in column {column[1]}" if column else "")
        if "previously unseen labels" in text or "Mix of label input types" in text:
            return _LABELS
        error = error.__cause__ or error.__context__
    return None
