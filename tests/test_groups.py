"""What groups.py promises: the same groups from any table library, and no group value in any error."""

import datetime as dt
import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtransport import GroupPolicy, _columns
from fairtransport.groups import Groups, make_groups

SEX = ["M", "F", "F", "M", "F", "M"]
RACE = ["W", "B", "W", "W", "A", "B"]
ROWS = list(zip(RACE, SEX, strict=True))
TABLE = {"race": RACE, "sex": SEX}
NAMELESS = ("sensitive_feature_0", "sensitive_feature_1")
WITH_MISSING, EACH = GroupPolicy(missing="group"), GroupPolicy(crossed=False)
both = pytest.mark.parametrize("policy", [GroupPolicy(), EACH], ids=["crossed", "each"])

ONE_COLUMN = {
    "list": SEX,
    "tuple": tuple(SEX),
    "numpy text": np.array(SEX),
    "numpy object": np.array(SEX, dtype=object),
    "numpy column": np.array(SEX)[:, None],
    "pandas": pd.Series(SEX),
    "pandas object": pd.Series(SEX, dtype=object),
    "pandas string": pd.Series(SEX, dtype="string"),
    "pandas categorical": pd.Series(pd.Categorical(SEX, categories=["unused", "M", "F"])),
    "pandas bare categorical": pd.Categorical(SEX),
    "pandas index": pd.Index(SEX),
    "pandas odd index": pd.Series(SEX, index=[9, 9, 1, 0, 3, 2]),
    "polars": pl.Series(SEX),
    "polars categorical": pl.Series(SEX, dtype=pl.Categorical),
    "polars enum": pl.Series(SEX, dtype=pl.Enum(["unused", "M", "F"])),
    "pyarrow array": pa.array(SEX),
    "pyarrow chunked": pa.chunked_array([SEX[:2], SEX[2:]]),
    "pyarrow dictionary": pa.array(SEX).dictionary_encode(),
    "pyarrow chunked dictionary": pa.chunked_array(
        [pa.array(SEX[:2]).dictionary_encode(), pa.array(SEX[2:]).dictionary_encode()]
    ),
}
NAMED_TABLES = {
    "dict of lists": TABLE,
    "dict of kinds": {"race": pd.Series(RACE), "sex": pa.array(SEX)},
    "pandas": pd.DataFrame(TABLE),
    "pandas categorical": pd.DataFrame(TABLE).astype("category"),
    "polars": pl.DataFrame(TABLE),
    "pyarrow": pa.table(TABLE),
}
NAMELESS_TABLES = {
    "list of tuples": ROWS,
    "list of lists": [list(row) for row in ROWS],
    "list of arrays": [np.array(row) for row in ROWS],
    "numpy text": np.array(ROWS),
    "numpy object": np.array(ROWS, dtype=object),
    "numpy fortran": np.asfortranarray(np.array(ROWS)),
}


@pytest.mark.parametrize("data", ONE_COLUMN.values(), ids=ONE_COLUMN)
def test_one_column_is_the_same_from_any_container(data):
    groups = make_groups(data)
    assert groups.labels == groups.names == ("F", "M")
    assert [type(label) for label in groups.labels] == [str, str]
    assert [rows.tolist() for rows in groups.rows] == [[1, 2, 4], [0, 3, 5]]
    assert [rows.dtype for rows in groups.rows] == [np.int64, np.int64]
    assert (groups.n_rows, groups.columns) == (6, NAMELESS[:1])
    assert groups == make_groups(SEX)


@pytest.mark.parametrize("data", [*NAMED_TABLES.values(), *NAMELESS_TABLES.values()])
@both
def test_tables_are_the_same_from_any_container(data, policy):
    groups = make_groups(data, policy)
    named = any(data is one for one in NAMED_TABLES.values())
    assert groups == make_groups(TABLE if named else ROWS, policy)
    assert groups.columns == (("race", "sex") if named else NAMELESS)
    assert named or make_groups(data).labels == make_groups(TABLE).labels


def test_crossed_groups_have_the_rows_of_their_labels():
    groups = make_groups(TABLE)
    assert groups.labels == (("A", "F"), ("B", "F"), ("B", "M"), ("W", "F"), ("W", "M"))
    assert groups.names == ("A, F", "B, F", "B, M", "W, F", "W, M")
    assert groups.counts.tolist() == [1, 1, 1, 1, 2]
    assert groups.counts.dtype == groups.codes.dtype == np.int64
    assert groups.codes.tolist() == [4, 1, 3, 4, 0, 2]
    assert (len(groups), groups.overlapping, groups.grouping, groups.missing) == (5, False, "crossed", "error")


def test_each_value_of_each_column_is_a_group():
    groups = make_groups(TABLE, EACH)
    assert groups.labels == (("race", "A"), ("race", "B"), ("race", "W"), ("sex", "F"), ("sex", "M"))
    assert groups.names == ("race=A", "race=B", "race=W", "sex=F", "sex=M")
    assert [rows.tolist() for rows in groups.rows] == [[4], [1, 5], [0, 2, 3], [1, 2, 4], [0, 3, 5]]
    assert groups.overlapping
    assert groups.encode({"race": ["A"], "sex": ["M"]}).counts.tolist() == [1, 0, 0, 0, 1]  # each column by itself
    with pytest.raises(ValueError, match="no single code"):
        _ = groups.codes


def test_equal_numbers_are_one_group():
    assert make_groups([1, 1.0, True, np.int8(2)]).counts.tolist() == [3, 1]
    assert make_groups([0, 1]).encode(np.array([1.0, 0.0, 1.0])).counts.tolist() == [1, 2]
    assert make_groups([2**53, 2**53 + 1]).counts.tolist() == [1, 1]
    large = pd.Series([2**53, 2**53 + 1, None], dtype="Int64")
    assert make_groups(large, WITH_MISSING).counts.tolist() == [1, 1, 1]


def test_order_is_numbers_text_others_missing():
    day = dt.date(2020, 1, 2)
    values = [None, "b", day, 10, "a", 2.5, b"x", -1, False]
    groups = make_groups(values, WITH_MISSING)
    assert groups.labels == (-1, False, 2.5, 10, "a", "b", b"x", day, None)
    assert groups.names == ("-1", "False", "2.5", "10", "a", "b", "b'x'", "2020-01-02", "missing")
    assert make_groups(values[::-1], WITH_MISSING).labels == groups.labels


def test_names_differ_when_values_look_alike():
    groups = make_groups([1, "1", None, "missing", "", "1 (2)"], WITH_MISSING)
    assert groups.labels == (1, "", "1", "1 (2)", "missing", None)
    assert groups.names == ("1", "(empty)", "1 (2)", "1 (2) (2)", "missing", "missing (2)")
    assert [groups.index_of(label) for label in groups.labels] == list(range(6))


@pytest.mark.parametrize(
    "data",
    [
        np.array(["2020-01-02", "2019-01-01", "NaT"], dtype="datetime64[ns]"),
        pd.Series(pd.to_datetime(["2020-01-02", "2019-01-01", None])),
        *(
            pl.Series([dt.datetime(2020, 1, 2), dt.datetime(2019, 1, 1), None], dtype=pl.Datetime(unit))  # noqa: DTZ001
            for unit in ("ms", "us", "ns")
        ),
    ],
)
def test_dates(data):
    groups = make_groups(data, WITH_MISSING)
    assert groups.labels == (dt.datetime(2019, 1, 1), dt.datetime(2020, 1, 2), None)  # noqa: DTZ001
    assert groups.codes.tolist() == [1, 0, 2]


def plain_groups(values):
    """Labels and codes by Python's own dict and sort."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    labels = sorted(set(plain))
    return labels, [labels.index(value) for value in plain]


NUMBERS = {
    "negative": np.array([-3, 7, -3, 0, -128, 7], dtype=np.int64),
    "int8": np.array([-128, 127, 0, -1, -128, 127], dtype=np.int8),
    "uint8": np.array([255, 0, 3, 255, 0, 0], dtype=np.uint8),
    "uint64": np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 1, 0], dtype=np.uint64),
    "huge range": np.array([-(2**63), 2**63 - 1, 0, -(2**63), 1, 0], dtype=np.int64),
    "big endian": np.array([258, 1, 258, -2, 1, 1], dtype=">i4"),
    "bool": np.array([True, False, True, True, False, True]),
    "float32": np.array([0.5, -0.5, 0.1, 0.5, 0.1, 0.1], dtype=np.float32),
    "float": np.array([1.0, 2.0, 4.0, 1.0, 1e300, -1e-300]),
    "float16": np.array([1, 2, 4, 1, 2, 0], dtype=np.float16),
    "long float": np.array([1, 2, 4, 1, 2, 0.1], dtype=np.longdouble),
    "zeros": np.array([0.0, -0.0, 1.0, -0.0, 0.0, 1.0]),
    "text": np.array(["é", "", "ab", "abcdefg", "é", "ab"]),
    "bytes": np.array([b"x", b"", b"abc", b"x", b"abc", b""]),
    "strided": np.arange(24).reshape(6, 4)[:, 1] // 9,
    "reversed": (np.arange(6) // 2)[::-1],
}


@pytest.mark.parametrize("column", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize(("times", "few"), [(1, 10), (5000, 0)], ids=["few rows", "by a compiled loop"])
def test_arrays_are_coded_as_python_would(column, times, few, monkeypatch):
    monkeypatch.setattr(_columns, "FEW_ROWS", few)
    labels, codes = plain_groups(column)
    groups = make_groups(np.tile(column, times))
    assert groups.labels == tuple(labels)
    assert groups.codes.tolist() == codes * times
    assert groups.counts.tolist() == [times * codes.count(code) for code in range(len(labels))]


@pytest.mark.parametrize("n_values", [4095, 4096, 4097, 9000])
@pytest.mark.parametrize("kind", ["int64", "U6", "float64"])
def test_more_values_than_the_table_of_hashes_holds(n_values, kind, monkeypatch):
    monkeypatch.setattr(_columns, "FEW_ROWS", 0)
    values = (np.random.default_rng(0).permutation(n_values) * 7).astype(kind)
    groups = make_groups(np.tile(values, 2), groups=GroupPolicy(max_groups=n_values))
    labels, codes = np.unique(values, return_inverse=True)
    assert groups.labels == tuple(labels.tolist())
    assert np.array_equal(groups.codes, np.tile(codes, 2))
    assert groups.counts.tolist() == [2] * n_values
    with pytest.raises(ValueError, match=f"has {n_values} groups"):
        make_groups(values)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from([0, 1, None, float("nan")]), st.booleans()),
        min_size=1,
        max_size=50,
    )
)
def test_crossed_rows_partition_the_table(rows):
    groups = make_groups(rows, WITH_MISSING)
    assert np.array_equal(np.sort(np.concatenate(groups.rows)), np.arange(len(rows)))
    assert all(np.all(np.diff(members) > 0) for members in groups.rows)
    assert groups.counts.sum() == len(rows)
    for row, code in zip(rows, groups.codes, strict=True):
        assert groups.labels[code] == (row[0], row[1] if row[1] in (0, 1) else None, row[2])
    for code, members in enumerate(groups.rows):
        assert np.all(groups.codes[members] == code)
    assert groups.encode(rows) == groups
    assert make_groups(np.array(rows, dtype=object), WITH_MISSING) == groups


MISSING = {
    "list": ["M", None, "F"],
    "numpy object": np.array(["M", np.nan, "F"], dtype=object),
    "numpy NA": np.array(["M", pd.NA, "F"], dtype=object),
    "numpy NaT": np.array(["M", pd.NaT, "F"], dtype=object),
    "numpy masked": np.ma.MaskedArray(["M", "X", "F"], mask=[False, True, False]),
    "pandas": pd.Series(["M", None, "F"]),
    "pandas string": pd.Series(["M", None, "F"], dtype="string"),
    "pandas categorical": pd.Series(["M", None, "F"], dtype="category"),
    "polars": pl.Series(["M", None, "F"]),
    "polars categorical": pl.Series(["M", None, "F"], dtype=pl.Categorical),
    "pyarrow": pa.array(["M", None, "F"]),
    "pyarrow dictionary": pa.array(["M", None, "F"]).dictionary_encode(),
}
MISSING_NUMBERS = {
    "list": [2, float("nan"), 1],
    "numpy": np.array([2, np.nan, 1]),
    "pandas": pd.Series([2, np.nan, 1]),
    "pandas Int64": pd.Series([2, None, 1], dtype="Int64"),
    "pandas categorical": pd.Series([2, None, 1], dtype="category"),
    "pandas arrow": pd.Series([2, None, 1], dtype="int64[pyarrow]"),
    "polars null": pl.Series([2, None, 1]),
    "polars NaN": pl.Series([2.0, float("nan"), 1.0]),
    "pyarrow null": pa.array([2, None, 1]),
    "pyarrow NaN": pa.array([2.0, float("nan"), 1.0]),
}


@pytest.mark.parametrize("data", [*MISSING.values(), *MISSING_NUMBERS.values()], ids=[*MISSING, *MISSING_NUMBERS])
def test_missing_values_raise_or_make_a_group(data):
    with pytest.raises(ValueError, match=r"1 row of column 'sensitive_feature_0'.*missing=\"group\""):
        make_groups(data)
    groups = make_groups(data, WITH_MISSING)
    assert groups.labels in (("F", "M", None), (1, 2, None))
    assert groups.names[-1] == "missing"
    assert groups.codes.tolist() == [1, 2, 0]


def test_missing_values_in_several_columns():
    table = {"race": ["B", None, "W", None], "sex": ["F", "F", None, None]}
    with pytest.raises(ValueError, match="2 rows of column 'race' and 2 rows of column 'sex'"):
        make_groups(table)
    groups = make_groups(table, WITH_MISSING)
    assert groups.labels == (("B", "F"), ("W", None), (None, "F"), (None, None))
    assert groups.names == ("B, F", "W, missing", "missing, F", "missing, missing")
    assert make_groups(table, groups=replace(EACH, missing="group")).names[2] == "race=missing"


def test_encode_keeps_labels_and_leaves_absent_groups_empty():
    groups = make_groups(SEX).encode(pl.Series(["M", "M"]))
    assert groups.labels == ("F", "M")
    assert [rows.tolist() for rows in groups.rows] == [[], [0, 1]]
    assert groups.rows[0].dtype == np.int64
    assert groups.n_rows == 2


def test_spec_round_trip():
    table = {"race": ["B", None, "W"], "age": [1.5, 2, True]}
    for policy in (WITH_MISSING, replace(EACH, missing="group")):
        groups = make_groups(table, policy)
        again = Groups.from_spec(json.loads(json.dumps(groups.to_spec(), allow_nan=False)))
        assert (len(again), again.n_rows, again.counts.sum()) == (len(groups), 0, 0)
        assert again.names == groups.names
        assert again.encode(table) == groups
        assert again.to_spec() == groups.to_spec()
    one = make_groups(["a", None], WITH_MISSING)
    assert Groups.from_spec(one.to_spec()).encode(["a", None]) == one


def test_spec_refuses_what_json_cannot_represent():
    for value in (dt.date(2020, 1, 1), b"x", float("inf")):
        with pytest.raises(TypeError, match="cannot be stored"):
            make_groups([value]).to_spec()


@pytest.mark.parametrize(
    "change",
    [
        {"labels": None},
        {"labels": []},
        {"labels": ["a", "a"]},
        {"labels": [["a", "b"]]},
        {"labels": [["a", ["b"]]]},
        {"columns": ["a", "b"]},
        {"columns": []},
        {"grouping": "both"},
        {"grouping": "each"},
        {"missing": 3},
        {"pooled": ["x"]},
        {"pools": ["a"]},
        {"pooled": ["x"], "pools": ["y"]},
        {"pooled": ["a"], "pools": ["b"]},
        {"dropped": ["a"]},
        {"dropped": [["x", "y"]]},
        {"dropped": 3},
    ],
)
def test_spec_is_checked(change):
    spec = make_groups(["a", "b"]).to_spec() | change
    with pytest.raises(ValueError, match=r"spec|must be one of"):
        Groups.from_spec(spec)
    with pytest.raises(ValueError, match="spec"):
        Groups.from_spec({})


@both
def test_select_renumbers_rows(policy):
    groups = make_groups(TABLE, policy)
    mask = np.array([True, False, True, True, False, True])
    by_mask = groups.select(mask)
    assert by_mask == groups.select(np.flatnonzero(mask))
    kept = {name: [value for value, keep in zip(column, mask, strict=True) if keep] for name, column in TABLE.items()}
    assert by_mask == groups.encode(kept)
    drawn = [5, 0, 0, -1]
    assert groups.select(drawn) == groups.encode({name: np.array(column)[drawn] for name, column in TABLE.items()})
    nothing = groups.select([])
    assert (nothing.n_rows, len(nothing), nothing.counts.sum()) == (0, len(groups), 0)


@both
def test_shuffled_keeps_sizes_and_overlaps(policy):
    rng = np.random.default_rng(1)
    table = {"a": rng.integers(0, 3, 200), "b": rng.integers(0, 4, 200)}
    groups = make_groups(table, policy)
    shuffled = groups.shuffled(np.random.default_rng(0))
    assert shuffled == groups.shuffled(np.random.default_rng(0))
    assert shuffled != groups
    np.testing.assert_array_equal(shuffled.counts, groups.counts)
    np.testing.assert_array_equal(overlaps(shuffled), overlaps(groups))


def overlaps(groups):
    return [[np.intersect1d(one, other).size for other in groups.rows] for one in groups.rows]


@both
def test_encode_matches_columns_by_name_or_position(policy):
    groups = make_groups(TABLE, policy)
    other = pd.DataFrame({"age": range(6), "sex": SEX, "race": RACE})
    assert make_groups(groups) is groups
    assert groups.encode(other) == groups.encode(ROWS) == groups.encode(groups) == groups
    for wrong, found in (
        ({"sex": SEX}, "column 'sex'"),
        (SEX, "column"),
        (np.array([(*row, "x") for row in ROWS]), ""),
    ):
        with pytest.raises(ValueError, match=f"must have columns 'race', 'sex'; it has {found}"):
            groups.encode(wrong)


def test_index_of_takes_labels_and_names():
    groups = make_groups(TABLE)
    assert groups.index_of(("W", "F")) == groups.index_of(["W", np.str_("F")]) == groups.index_of("W, F") == 3
    assert make_groups([1, 2]).index_of(np.float64(2)) == 1
    assert make_groups([1, None], WITH_MISSING).index_of(float("nan")) == 1
    assert make_groups(TABLE, EACH).index_of("race=B") == 1


MANY = [np.arange(1001), [f"id{i}" for i in range(1001)], pl.Series(np.arange(1001) / 7)]
CROSSED = {"a": np.arange(50).repeat(50), "b": np.tile(np.arange(50), 50)}


def test_as_many_groups_as_are_allowed():
    assert [len(make_groups(data, GroupPolicy(max_groups=1001))) for data in MANY] == [1001] * 3
    assert len(make_groups(CROSSED, EACH)) == 100


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_groups(make_groups(TABLE, EACH), at_least=99), "at least 99"),
        (lambda: make_groups(["a", "a"], at_least=2), "into 1 group(s) of column 'sensitive_feature_0'; at least 2"),
        (lambda: make_groups(TABLE).require(6), "into 5 group(s) of columns 'race', 'sex'; at least 6"),
        (lambda: make_groups(TABLE).encode({"race": ["A"], "sex": ["F"]}).require(), "into 1 group"),
        (lambda: make_groups(TABLE).encode(make_groups(TABLE, EACH)), "cannot be matched"),
        (
            lambda: make_groups(TABLE).encode({"race": ["A", "W", "Q"], "sex": ["M", "M", "F"]}),
            "2 of 3 rows whose value, or combination of values, in columns 'race', 'sex' is none of the 5 known",
        ),
        (
            lambda: make_groups(TABLE, EACH).encode({"race": ["A", "W"], "sex": ["M", "Q"]}),
            "1 of 2 rows whose value, or combination of values, in column 'sex' is none",
        ),
        (lambda: make_groups(TABLE).encode({"race": ["A"], "sex": [None]}), "missing values"),
        (lambda: make_groups(["a", "b"], WITH_MISSING).encode([None]), "none of the 2 known"),
        (lambda: make_groups(SEX).select([True, False]), "2 entries, but there are 6 rows"),
        (lambda: make_groups(SEX).select([0.5]), "row indices"),
        (lambda: make_groups(SEX).select([[True]]), "row indices"),
        (lambda: make_groups(SEX).select([6]), "out of bounds"),
        (lambda: make_groups(TABLE).index_of("Q"), "None of the 5 groups of columns 'race', 'sex'"),
        *(
            (partial(make_groups, data), "1001 groups in column 'sensitive_feature_0'; max_groups is 1000")
            for data in MANY
        ),
        (lambda: make_groups(CROSSED), "2500 groups in columns 'a', 'b'"),
        (lambda: make_groups(CROSSED, GroupPolicy(crossed=False, max_groups=99)), "100 groups in columns 'a', 'b'"),
    ],
)
def test_what_groups_refuse(call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "empty"),
        ({}, "empty"),
        ({"a": []}, "empty"),
        ([[], []], "empty"),
        (np.empty((3, 0)), "empty"),
        (np.empty((0, 3)), "empty"),
        (pd.DataFrame({"a": []}), "empty"),
        (pd.DataFrame(index=[0, 1]), "empty"),
        (pl.Series([]), "empty"),
        (pa.array([]), "empty"),
        (pa.chunked_array([], type=pa.string()), "empty"),
        (np.zeros((2, 2, 2)), "dimensions; it has 3"),
        (np.array("CANARY"), "dimensions; it has 0"),
        ([[["CANARY"]]], "its rows contain lists"),
        ([("a", "CANARY"), ("CANARY",)], "2 different lengths"),
        (["a", ["CANARY"]], "2 different lengths"),
        ({"a": ["x", "CANARY"], "b": ["CANARY"]}, "'a': 2, 'b': 1"),
        ({"a": [("x", "CANARY")]}, "Column 'a' of the dict has 2 columns"),
        (pd.DataFrame([["x", "CANARY"]], columns=["a", "a"]), "have the same name"),
        (pd.DataFrame([["x", "CANARY"]], columns=[1, "1"]), "are named '1'"),
        ({1: ["CANARY"], "1": ["x"]}, "are named '1'"),
        (pl.LazyFrame({"a": ["CANARY"]}), "collect"),
        (None, "got NoneType"),
        ("CANARY", "the column itself, not its name"),
        ({"CANARY"}, "got set"),
        ({"a": "CANARY"}, "the column itself, not its name"),
        ([{"a": "CANARY"}], "Column 'sensitive_feature_0' contains lists"),
        (pd.Series([["CANARY"]], name="a"), "Column 'a' contains lists"),
        (pl.Series("a", [["CANARY"]]), "Column 'a' contains lists"),
        (pl.Series("a", [{"b": "CANARY"}]), "Column 'a' contains lists"),
    ],
)
def test_errors_do_not_contain_values(data, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        make_groups(data)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"crossed": "no"}, {"missing": "drop"}, {"small": "merge"}, {"min_size": 0}, {"new": "pool"}, {"max_groups": 0}],
)
def test_a_policy_is_checked(options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        GroupPolicy(**options)
    with pytest.raises(TypeError, match="groups must be a GroupPolicy"):
        make_groups(SEX, options)


def test_rows_without_a_value_are_set_aside():
    values = {"sex": ["F", None, "M", "F"], "race": ["B", "W", None, "W"]}
    groups = make_groups(values, GroupPolicy(missing="set_aside"))
    assert groups.labels == (("F", "B"), ("F", "W"))
    assert groups.codes.tolist() == [0, 2, 2, 1]
    each = make_groups(values, GroupPolicy(crossed=False, missing="set_aside"))
    assert each.names == ("sex=F", "race=B", "race=W")
    assert [codes.tolist() for codes in each.memberships] == [[0, 3, 3, 0], [1, 3, 3, 2]]
    with pytest.raises(ValueError, match="missing values in 1 row of column 'sex'"):
        groups.encode({"sex": [None], "race": ["W"]})


def test_adopt_appends_new_groups():
    known = make_groups({"sex": ["M", "F"], "age": [1, 2]})
    wider = known.adopt({"age": [1, 2, 1], "sex": ["A", "F", "M"]})
    assert wider.labels == (("F", 2), ("M", 1), ("A", 1))
    assert wider.codes.tolist() == [2, 0, 1]
    assert wider.names[:2] == known.names
    assert known.labels == (("F", 2), ("M", 1))
    assert known.adopt({"sex": ["F"], "age": [2]}).labels == known.labels
    assert Groups.from_spec(wider.to_spec()).encode({"sex": ["A"], "age": [1]}).codes.tolist() == [2]
    each = make_groups({"sex": ["M", "F"]}, EACH).adopt({"sex": ["X", "M"]})
    assert each.labels == (("sex", "F"), ("sex", "M"), ("sex", "X"))
    with pytest.raises(ValueError, match="max_groups is 3"):
        make_groups(["a", "b"]).adopt(["c", "d"], max_groups=3)
    with pytest.raises(ValueError, match="must have columns"):
        known.adopt({"sex": ["F"], "race": ["B"]})


@both
def test_adopt_makes_no_group_of_missing_values(policy):
    known = make_groups({"sex": ["M", "F", "F"]}, policy)
    rows = {"sex": ["X", None, "M"]}
    with pytest.raises(ValueError, match="missing values"):
        known.adopt(rows)
    pooled = known.adopt(rows, unknown_group="pooled")
    assert (len(pooled), pooled.memberships[0].tolist()) == (3, [2, 3, 1])
    common = known.adopt(rows, unknown_group="common", sizes=[2, 1])
    assert common.memberships[0].tolist() == [2, 0, 1]
    with_missing = make_groups({"sex": ["M", "F"]}, replace(policy, missing="group"))
    assert len(with_missing.adopt(rows, unknown_group="pooled")) == 4
