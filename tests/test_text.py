import pytest

from fairtransport._text import one_line, shorten


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


def test_names_that_begin_alike_are_cut_to_different_texts():
    names = [f"Bachelor of Arts, {sex}, {place}" for sex in ("Female", "Male") for place in ("North", "South")]
    names += ["x" * 30 + end + "y" * 30 for end in "ab"]
    cut = [shorten(name, 20, names) for name in names]
    assert len(set(cut)) == len(names)
    assert max(map(len, cut)) <= 20
    assert cut[0] == "Bachelor of Arts,… 1"
    assert shorten(names[0], 20, names[:2]) == "Bachelor o…le, North"
    assert shorten(names[0], 20, ["z", names[0]]) == "Bachelor of Arts, F…"
    assert shorten("abc", 3) == "abc"
