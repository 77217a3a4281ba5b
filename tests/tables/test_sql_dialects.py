"""The repair as SQL: databases return the scores of the library, whatever names and groups contain."""

import itertools
import math
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import fairtransport as ft
from fairtransport.tables import count_table

from .databases import start_database

DIALECTS = ("sqlite", "duckdb", "postgresql", "mysql")
SERVERS = {"postgresql", "mysql"}

#: Groups that quoting, escapes, patterns, loose collations or conversions could change.
GROUPS = (
    "a", "a ", " a", "b\\", "c\\'", "\\n", "d\nd", "e\te", "'", "''", '"', "`", "%", "_", "é", "e\u0301", "ß", "ss",
    "🎈", "NULL", "true",
    "0", "0.0", "; DROP TABLE scores; --", "/* x", "$$", "E'x'", ":a", "?", "{}", "x" * 300, "İ",
    "\\", "\\\\", "\r\n", "\ufeff",
)  # fmt: skip
#: Groups that the repair has not seen, and that a loose comparison would find.
UNSEEN = ("A", "a  ", "É", "SS", "Null", "TRUE", "00", "0.00", "X" * 300, "i", "b", "n")
NAMES = (
    "s", "a b", 'q"q', "b`b", "c\\", "%s", "d;d", "n\nn", "é", "--", "group", "select", "x'x", "a.b", "$1", "?", "[x]",
)  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.engines) if name in SERVERS else name for name in DIALECTS],
)
def database(request):
    with closing(start_database(request.param)) as database:
        yield database


def fitted(groups, *, repeats=8, n_bins=64):
    """Fit a repair to groups whose scores differ."""
    rng = np.random.default_rng(0)
    group = [value for value in groups for _ in range(repeats)]
    shift = np.repeat(np.arange(len(groups)) / len(groups), repeats)
    scores = np.clip(0.5 * rng.random(len(group)) + 0.5 * shift, 0, 1)
    columns = {"s": scores.tolist(), "g": group}
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1))
    counts = count_table(pa.table(columns), score="s", sensitive_features="g", n_bins=n_bins)
    return repair.fit_counts(counts), columns


numbers = itertools.count()


def scored(database, repair, columns, kind, *, score="s", group="g", rows=None, before=None):
    """Put rows into the database, run the script there, and return the result for each row."""
    rows = rows or f"scores {next(numbers)}"
    kinds = {score: "DOUBLE PRECISION", group: kind}
    database.create(rows, kinds, [(i, *row) for i, row in enumerate(zip(*columns.values(), strict=True))])
    names = {"score": score, "sensitive_features": group, "rows": rows, "table": f"{rows} lookup"[-60:]}
    script = repair.lookup().to_sql(**names, output="fair", dialect=database.dialect)
    found = database.run(script, "fair", **({} if before is None else {"before": before}))
    assert len(found) == len(columns["s"])  # a join that matches twice would repeat rows
    return [found[index] for index in range(len(found))]


def text_kind(database):
    return "VARCHAR(400)" if database.dialect in SERVERS else "VARCHAR"


def check(found, repair, columns):
    expected = repair.transform(np.array(columns["s"]), sensitive_features={"g": columns["g"]})
    np.testing.assert_allclose(np.array(found, dtype=float), expected, rtol=0, atol=1e-12)


def test_any_text_can_be_a_group(database):
    groups = (*GROUPS, "a\0b") if database.dialect == "sqlite" else GROUPS
    repair, columns = fitted(groups)
    check(scored(database, repair, columns, text_kind(database)), repair, columns)


def test_text_that_only_resembles_a_group_is_unknown(database):
    repair, _ = fitted(GROUPS)
    others = {"s": [0.5] * len(UNSEEN), "g": list(UNSEEN)}
    assert scored(database, repair, others, text_kind(database)) == [None] * len(UNSEEN)


def test_columns_that_ignore_case_are_compared_exactly(database):
    kinds = {
        "sqlite": "TEXT COLLATE NOCASE",
        "duckdb": "VARCHAR COLLATE NOCASE",
        "postgresql": "CHAR(3)",
        "mysql": "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
    }
    repair, columns = fitted(["a", "A", "é", "b"])
    check(scored(database, repair, columns, kinds[database.dialect]), repair, columns)


@pytest.mark.parametrize(
    ("groups", "kind"),
    [([-5, 0, 7, 2**62], "BIGINT"), ([0.1, -2.5, 1e300, 1e-300, 3.0], "DOUBLE PRECISION"), ([False, True], "BOOLEAN")],
    ids=["integers", "numbers", "booleans"],
)
def test_numbers_and_booleans_can_be_groups(database, groups, kind):
    repair, columns = fitted(groups)
    check(scored(database, repair, columns, kind), repair, columns)


def test_missing_and_extreme_scores(database):
    repair, _ = fitted(["a", "b"])
    columns = {"s": [None, -3.0, 7.0, 0.0, 1.0, 0.5], "g": ["a", "a", "b", "a", "b", None]}
    found = scored(database, repair, columns, text_kind(database))
    assert found[0] is None
    assert found[5] is None
    clamped = repair.transform(np.array([0.0, 1.0, 0.0, 1.0]), sensitive_features={"g": ["a", "b", "a", "b"]})
    np.testing.assert_allclose(found[1:5], clamped, rtol=0, atol=1e-12)
    if database.dialect == "duckdb":
        nan = scored(database, repair, {"s": [math.nan, math.inf], "g": ["a", "a"]}, "VARCHAR")
        assert nan[0] is None
        assert nan[1] == pytest.approx(repair.transform([1.0], sensitive_features={"g": ["a"]})[0], abs=1e-12)


def test_any_name_of_a_column_and_a_table(database):
    repair, columns = fitted(["a", "b"])
    for number, name in enumerate(NAMES):
        names = {"score": name, "group": NAMES[number - 1], "rows": f"{name} {number}"}
        check(scored(database, repair, columns, text_kind(database), **names), repair, columns)


def test_other_ranges(database):
    rng = np.random.default_rng(0)
    columns = {"s": (300 + 550 * rng.random(200)).tolist(), "g": rng.choice(["a", "b"], 200).tolist()}
    counts = count_table(pa.table(columns), score="s", sensitive_features="g", range=(300, 850), n_bins=110)
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)).fit_counts(counts)
    check(scored(database, repair, columns, text_kind(database)), repair, columns)


@pytest.mark.parametrize(
    ("dialect", "setting"),
    [
        ("postgresql", "SET standard_conforming_strings = off; SET backslash_quote = off;\n"),
        ("mysql", "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT';\n"),
        ("mysql", "SET NAMES latin1;\n"),
    ],
    ids=["strings with escapes", "no escapes", "another character set"],
)  # fmt: skip
@pytest.mark.engines
def test_settings_of_the_server_do_not_matter(dialect, setting):
    with closing(start_database(dialect)) as database:
        repair, columns = fitted(GROUPS)
        check(scored(database, repair, columns, "VARCHAR(400)", before=setting), repair, columns)


@pytest.mark.parametrize(
    ("dialect", "options", "message"),
    [
        ("postgresql", {"output": "x" * 64}, "longer than the 63 that a name may have in PostgreSQL"),
        ("postgresql", {"output": "é" * 32}, "longer than the 63"),
        ("mysql", {"output": "x" * 65}, "longer than the 64 that a name may have in MySQL"),
        ("duckdb", {"output": "a\0b"}, "DuckDB has no column or table named"),
        ("sqlite", {"table": ""}, "SQLite has no column or table named ''"),
        ("oracle", {}, "dialect must be"),
        ("duckdb", {"sensitive_features": ["a", "b"]}, "names 2 columns; the repair was fitted with column 'g'"),
    ],
)
def test_what_a_database_does_not_have_is_refused(dialect, options, message):
    repair, _ = fitted(["a", "b"])
    with pytest.raises(ValueError, match=message):
        repair.lookup().to_sql(score="s", dialect=dialect, **options)


def test_values_that_a_database_does_not_have_are_refused():
    with pytest.raises(ValueError, match="whole numbers beyond 64 bits"):
        fitted(np.array([2**63, 1], dtype=np.uint64))[0].lookup().to_sql(score="s")
    repair, _ = fitted(["a\0b", "c"])
    with pytest.raises(ValueError, match=r"the character U\+0000, which PostgreSQL does not have") as caught:
        repair.lookup().to_sql(score="s")
    assert "a\0b" not in str(caught.value)
