"""Names and numbers as people read them: one line each, nothing that a terminal or a page would act on."""

from __future__ import annotations

import unicodedata

__all__ = ["count_word", "one_line", "shorten", "three_digits"]

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def one_line(text: object) -> str:
    r"""Return text as one line, without control characters, escapes or changes of direction.

    Parameters
    ----------
    text : object
        Anything; ``str`` of it is taken.

    Returns
    -------
    str

    Notes
    -----
    Characters of the Unicode classes "other" (control, format, surrogate, private, unassigned) and the line
    and paragraph separators become spaces, and neighbouring spaces one.

    Examples
    --------
    >>> one_line("two\nlines, \x1b[31mred")
    'two lines, [31mred'
    """
    seen = (" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in str(text))
    return " ".join("".join(seen).split())


def shorten(text: object, width: int) -> str:
    """Return text as one line of at most ``width`` signs.

    Parameters
    ----------
    text : object
        Anything.
    width : int
        How many signs there is room for.

    Returns
    -------
    str

    Examples
    --------
    >>> shorten("Continuous optimal transport", 12)
    'Continuous…'
    """
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1].rstrip(" ,") + "…"


def count_word(number: int) -> str:
    """Spell a count up to twelve: ``"four"``, and ``"13"`` beyond.

    Parameters
    ----------
    number : int
        Zero or more.

    Returns
    -------
    str
    """
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def three_digits(value: float) -> str:
    """Write a metric with three decimals, as every table here does.

    Parameters
    ----------
    value : float

    Returns
    -------
    str
    """
    return f"{value:.3f}"
