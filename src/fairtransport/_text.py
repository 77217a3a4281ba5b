"""Names and numbers formatted for terminals and pages, without control characters."""

from __future__ import annotations

import textwrap
import unicodedata

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def one_line(text: object) -> str:
    """Return text as one line, without control characters, escape sequences or direction marks."""
    # Unicode's "other" (control, format, surrogate, private use, unassigned) and "separator" become spaces.
    safe = (" " if unicodedata.category(character)[0] in "CZ" else character for character in str(text))
    return " ".join("".join(safe).split())


def shorten(text: object, width: int) -> str:
    """Return text as one line of at most ``width`` characters."""
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1].rstrip(" ,") + "…"


def wrap(text: str, width: int = 80) -> list[str]:
    """Return text as lines of at most ``width`` characters, broken between words."""
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
    """Format a score: three decimals for small numbers, fewer for large ones, powers of ten for extreme ones."""
    size = abs(value)
    if 0 < size < 0.001 or size >= 1e8:
        return f"{value:.3g}"
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 1000 else f"{value:,.0f}"


def number_text(value: float) -> str:
    """Format a number as `score_text` does, whole numbers without decimals."""
    if value == int(value) and abs(value) < 1e8:
        return f"{value:,.0f}"
    text = score_text(value)
    return text if "e" in text or "." not in text else text.rstrip("0").rstrip(".")


def isolated(name: object, width: int = 40) -> str:
    """Return a name for use in a sentence, isolated from the sentence's writing direction."""
    return f"\u2068{shorten(name, width)}\u2069"


def plain(text: str) -> str:
    """Return a sentence without the direction marks of `isolated`."""
    return text.replace("\u2068", "").replace("\u2069", "")
