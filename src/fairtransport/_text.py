"""Names and numbers as people read them: one line each, nothing that a terminal or a page would act on."""

from __future__ import annotations

import unicodedata

__all__ = ["count_word", "isolated", "one_line", "percent", "plain", "score_text", "shorten", "three_digits"]

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


def percent(share: float) -> str:
    """Write a share as per cent with one decimal: ``"12.5%"``.

    Parameters
    ----------
    share : float

    Returns
    -------
    str
    """
    return f"{100 * share:.1f}%"


def score_text(value: float) -> str:
    """Write a score: three decimals for shares, fewer for large numbers.

    Parameters
    ----------
    value : float

    Returns
    -------
    str

    Examples
    --------
    >>> score_text(0.25), score_text(612.5), score_text(2500.0)
    ('0.250', '612.5', '2,500')
    """
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def isolated(name: object, width: int = 40) -> str:
    """Return a name for use inside a sentence, between the signs that keep its direction of writing to itself.

    Parameters
    ----------
    name : object
    width : int, default=40

    Returns
    -------
    str
        One line, between U+2068 and U+2069; a page turns these into ``<bdi>``, `plain` leaves them out.
    """
    return f"\u2068{shorten(name, width)}\u2069"


def plain(text: str) -> str:
    """Return a sentence without the signs of `isolated`.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    return text.replace("\u2068", "").replace("\u2069", "")
