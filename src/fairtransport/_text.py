"""Names and numbers formatted for terminals and pages, without control characters."""

from __future__ import annotations

import textwrap
import unicodedata

_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def one_line(text: object) -> str:
    r"""Return text as one line, without control characters, escape sequences or direction marks.

    Parameters
    ----------
    text : object
        Converted by ``str``.

    Returns
    -------
    str

    Notes
    -----
    Characters of the Unicode categories "other" (control, format, surrogate, private use, unassigned) and "separator"
    become spaces, and runs of spaces become one.

    Examples
    --------
    >>> one_line("two\nlines, \x1b[31mred")
    'two lines, [31mred'
    """
    safe = (" " if unicodedata.category(character)[0] in "CZ" else character for character in str(text))
    return " ".join("".join(safe).split())


def shorten(text: object, width: int) -> str:
    """Return text as one line of at most ``width`` characters.

    Parameters
    ----------
    text : object
        Converted by ``str``.
    width : int
        The largest number of characters, including the ellipsis.

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


def wrap(text: str, width: int = 80) -> list[str]:
    """Return text as lines of at most ``width`` characters, broken between words.

    Parameters
    ----------
    text : str
    width : int, default=80

    Returns
    -------
    list of str

    Examples
    --------
    >>> wrap("Continuous optimal transport", 20)
    ['Continuous optimal', 'transport']
    """
    return textwrap.wrap(text, width, break_on_hyphens=False)


def count_word(number: int) -> str:
    """Spell out a non-negative count up to twelve: ``"four"``, but ``"13"``."""
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def three_digits(value: float) -> str:
    """Format a metric with three decimals: ``"0.125"``."""
    return f"{value:.3f}"


def percent(share: float) -> str:
    """Format a share as a percentage with one decimal: ``"12.5%"``."""
    return f"{100 * share:.1f}%"


def score_text(value: float) -> str:
    """Format a score: three decimals for small numbers, fewer for large ones, powers of ten for extreme ones.

    Examples
    --------
    >>> score_text(0.25), score_text(612.5), score_text(2500.0)
    ('0.250', '612.5', '2,500')
    >>> score_text(1.25e-6), score_text(3.21e9)
    ('1.25e-06', '3.21e+09')
    """
    size = abs(value)
    if 0 < size < 0.001 or size >= 1e8:
        return f"{value:.3g}"
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 1000 else f"{value:,.0f}"


def number_text(value: float) -> str:
    """Format a number as `score_text` does, whole numbers without decimals.

    Examples
    --------
    >>> number_text(9.0), number_text(0.5), number_text(52_000.0), number_text(1 / 3)
    ('9', '0.5', '52,000', '0.333')
    """
    if value == int(value) and abs(value) < 1e8:
        return f"{value:,.0f}"
    text = score_text(value)
    return text if "e" in text or "." not in text else text.rstrip("0").rstrip(".")


def isolated(name: object, width: int = 40) -> str:
    """Return a name for use in a sentence, isolated from the sentence's writing direction.

    Parameters
    ----------
    name : object
    width : int, default=40
        The largest number of characters.

    Returns
    -------
    str
        One line between U+2068 and U+2069. Pages turn these into ``<bdi>``; `plain` removes them.
    """
    return f"\u2068{shorten(name, width)}\u2069"


def plain(text: str) -> str:
    """Return a sentence without the direction marks of `isolated`."""
    return text.replace("\u2068", "").replace("\u2069", "")
