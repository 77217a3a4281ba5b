"""Names and numbers formatted for terminals and pages, without control characters."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def one_line(text: object) -> str:
    """Return text as one line, without control characters, escape sequences or direction marks."""
    # Unicode's "other" (control, format, surrogate, private use, unassigned) and "separator" become spaces.
    safe = (" " if unicodedata.category(character)[0] in "CZ" else character for character in str(text))
    return " ".join("".join(safe).split())


def shorten(text: object, width: int, among: Iterable[object] = ()) -> str:
    """Return text as one line of at most ``width`` characters, not that of another one of several."""
    line = one_line(text)
    if len(line) <= width:
        return line
    others = {one_line(other) for other in among} | {line}
    for end in (0, (width - 1) // 2):  # the start alone, or the start and the end
        cuts = [_without_middle(other, width - 1 - end, end) for other in (line, *others)]
        if cuts.count(cuts[0]) == 2:
            return cuts[0]
    number = f"… {sorted(others).index(line) + 1}"
    return line[: width - len(number)] + number


def _without_middle(line: str, start: int, end: int) -> str:
    return f"{line[:start].rstrip(' ,')}…{line[len(line) - end :].lstrip(' ,')}"


def wrap(text: str, width: int = 80) -> list[str]:
    """Return text as lines of at most ``width`` characters, broken between words."""
    return textwrap.wrap(text, width, break_on_hyphens=False)


def count_word(number: int) -> str:
    """Spell out a non-negative count up to twelve: ``"four"``, but ``"13"``."""
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def three_digits(value: float) -> str:
    """Format a metric with three decimals: ``"0.125"``; a last bit does not decide a tie."""
    return f"{round(value, 12):.3f}"


def percent(share: float) -> str:
    """Format a share as a percentage with one decimal: ``"12.5%"``."""
    return f"{100 * share:.1f}%"


def score_text(value: float) -> str:
    """Format a score: three decimals for small numbers, fewer for large ones, powers of ten for extreme ones."""
    size = abs(value)
    if 0 < size < 0.001 or size >= 1e8:
        return f"{value:.3g}"
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 1000 else f"{value:,.0f}"


def interval_text(low: float, high: float, show: Callable[[float], str]) -> str:
    """Format an interval; a lower limit above 0 is not shown as 0."""
    start, least = show(low), re.sub(r"0(\D*)$", r"1\1", show(0.0))
    if low > 0 and (start == show(0.0) or low < 1e-6 * high):
        start = f"<{least}"
    return f"{start} to {'∞' if math.isinf(high) else show(high)}"


def number_text(value: float) -> str:
    """Format a number as `score_text` does, whole numbers without decimals."""
    if value == int(value) and abs(value) < 1e8:
        return f"{value:,.0f}"
    text = score_text(value)
    return text if "e" in text or "." not in text else text.rstrip("0").rstrip(".")


def isolated(name: object, width: int = 40, among: Iterable[object] = ()) -> str:
    """Return a name for use in a sentence, isolated from the sentence's writing direction."""
    return f"\u2068{shorten(name, width, among)}\u2069"


def plain(text: str) -> str:
    """Return a sentence without the direction marks of `isolated`."""
    return text.replace("\u2068", "").replace("\u2069", "")
