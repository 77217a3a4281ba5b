import pytest

from fairtransport._text import count_word, one_line, shorten, three_digits


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a\x1b[2Jb", "a [2Jb"),
        ("a\r\n\tb", "a b"),
        ("a\u202eb\u2028c\x00", "a b c"),
        ("  two  words ", "two words"),
        (3, "3"),
        ("日本", "日本"),
    ],
)
def test_one_line(given, expected):
    assert one_line(given) == expected


def test_shorten_keeps_what_fits():
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"


def test_numbers():
    assert [count_word(number) for number in (0, 4, 12, 13, 1000)] == ["no", "four", "twelve", "13", "1,000"]
    assert three_digits(0.14751) == "0.148"
