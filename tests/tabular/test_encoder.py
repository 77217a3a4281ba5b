"""TableEncoder: raw columns of any library become the expected numbers."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairtransport.tables import open_files
from fairtransport.tabular import TableEncoder, collect_file, describe_columns, guess_roles

CANARY = "Zebulon Quux"


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "pay": [None if k % 9 == 0 else round(float(v), 3) for k, v in enumerate(rng.lognormal(3, 1, n))],
            "job": rng.choice(["cook", "smith", None, "judge"], n),
            "joined": [dt.date(2020, 1, 1) + dt.timedelta(days=int(k)) for k in rng.integers(0, 900, n)],
            "flag": rng.random(n) > 0.3,
        }
    )


def as_text(frame):
    """The same table as a CSV file shows it."""
    return frame.with_columns(pl.all().cast(pl.String))


LIBRARIES = {
    "polars": lambda frame: frame,
    "text": as_text,
    "pandas": lambda frame: frame.to_pandas(),
    "text in pandas": lambda frame: as_text(frame).to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
    "text in pyarrow": lambda frame: as_text(frame).to_arrow(),
    "dict of lists": lambda frame: frame.to_dict(as_series=False),
    "dict of arrays": lambda frame: {name: frame[name].to_numpy() for name in frame.columns},
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_and_plain_text_give_the_same_numbers(library):
    encoder = TableEncoder().fit(rows())
    given_rows = LIBRARIES[library](rows())
    np.testing.assert_allclose(encoder.transform(given_rows), encoder.transform(rows()), atol=1e-9)
    again = TableEncoder().fit(given_rows)
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    np.testing.assert_allclose(again.transform(rows()), encoder.transform(rows()), atol=1e-9)


def test_numbers_and_words_are_what_scikit_learn_makes_of_them():
    frame = rows()
    encoder = TableEncoder().fit(frame.select("age", "job"))
    words = frame["job"].fill_null("~").to_numpy().reshape(-1, 1)
    expected = np.hstack(
        [
            StandardScaler().fit_transform(frame["age"].to_numpy().reshape(-1, 1).astype(float)),
            OneHotEncoder(sparse_output=False).fit_transform(words),
        ]
    )
    np.testing.assert_allclose(encoder.transform(frame), expected, atol=1e-12)
    assert encoder.get_feature_names_out().tolist() == ["age", "job=cook", "job=judge", "job=smith", "job missing"]


def test_dates_become_what_the_calendar_says():
    when = [dt.datetime(2024, 1, 1, 6, tzinfo=dt.UTC) + dt.timedelta(days=k, hours=k % 5) for k in range(60)]
    encoder = TableEncoder().fit({"t": [str(one) for one in when]})
    assert encoder.get_feature_names_out().tolist() == ["t days", "t month", "t weekday", "t hour"]
    scaled = encoder.transform({"t": when})
    plan = encoder.plans_[0]
    read = scaled * plan.scale + plan.centre
    np.testing.assert_allclose(read[:, 1], [one.month for one in when], atol=1e-9)
    np.testing.assert_allclose(read[:, 2], [one.isoweekday() for one in when], atol=1e-9)
    np.testing.assert_allclose(read[:, 3], [one.hour for one in when], atol=1e-5)
    assert read[1, 0] - read[0, 0] == pytest.approx(1 + 1 / 24)


@pytest.mark.parametrize(
    ("pattern", "written"), [("", "%Y-%m-%d"), ("%d.%m.%Y", "%d.%m.%Y"), ("%d/%m/%Y", "%d/%m/%Y"), ("%Y/%m/%d",) * 2]
)
def test_dates_as_people_write_them(pattern, written):
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=7 * k) for k in range(50)]
    encoder = TableEncoder().fit({"t": [one.strftime(written) for one in days]})
    assert encoder.plans_[0].pattern == pattern
    np.testing.assert_allclose(
        encoder.transform({"t": days}), encoder.transform({"t": [d.strftime(written) for d in days]})
    )


def test_what_is_of_no_use_is_left_out_and_why():
    n = 60
    rng = np.random.default_rng(0)
    table = {
        "id": [f"P{k:05d}" for k in range(n)],
        "row": rng.permutation(n) + 7,
        "empty": [None] * n,
        "marked": ["?", "NA", " - "] * (n // 3),
        "same": ["x"] * n,
        "five": [5.0] * n,
        "rare": [f"w{k // 4}" for k in range(n)],
        "lists": pl.Series([[k] for k in range(n)]),
        "huge": [1e308, -1e308] * (n // 2),
        "age": rng.integers(18, 80, n),
    }
    encoder = TableEncoder().fit(table)
    assert encoder.names == ["age"]
    assert encoder.left_out_ == {
        "id": "almost every row has a text of its own",
        "row": "it numbers the rows",
        "empty": "no values",
        "marked": "no values",
        "same": "one value only",
        "five": "one value only",
        "rare": "no text occurs in 5 rows",
        "lists": "lists or records",
        "huge": "its numbers are too large",
    }


def test_rare_words_share_a_column_and_new_ones_join_them():
    table = {"job": ["cook"] * 20 + ["smith"] * 10 + ["a", "b", "c"]}
    encoder = TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["job=cook", "job=smith", "job other"]
    new = {"job": ["never seen", None, " cook "]}
    assert encoder.transform(new).tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert [*encoder.transform_noted(new)[1]] == [("rare or unseen category", "job")]
    few = TableEncoder(max_categories=1).fit(table)
    assert few.get_feature_names_out().tolist() == ["job=cook", "job other"]


def test_a_few_odd_cells_are_taken_for_missing_and_counted():
    cells = [str(k % 37) for k in range(200)]
    cells[3], cells[77] = "about 20", "unknown"
    encoder = TableEncoder().fit({"hours": cells})
    assert (encoder.plans_[0].kind, encoder.unreadable_) == ("number", {"hours": 2})
    matrix, replaced = encoder.transform_noted({"hours": ["12", "dozen", "inf", None]})
    assert matrix[1:, 0].tolist() == [0.0, 0.0, 0.0]
    assert replaced["unreadable", "hours"].tolist() == [False, True, False, False]


def test_codes_are_words():
    table = {"zip": [f"0{k % 7}100" for k in range(70)], "grade": [k % 3 for k in range(70)]}
    encoder = TableEncoder(categorical=["grade"]).fit(table)
    assert [plan.kind for plan in encoder.plans_] == ["words", "words"]
    assert encoder.transform({"zip": ["03100"], "grade": [2.0]})[0].sum() == 2.0


def test_columns_are_matched_by_name_and_a_missing_one_is_named():
    encoder = TableEncoder().fit(rows())
    shuffled = rows().select("flag", "joined", "job", "pay", "age").with_columns(more=pl.lit(1))
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(rows()))
    with pytest.raises(ValueError, match=r"The table has no columns 'pay', 'flag', which the model was trained with"):
        encoder.transform(rows().drop("pay", "flag"))


def test_sparse_is_the_same_matrix():
    dense, sparse = (TableEncoder(sparse_output=flag).fit_transform(rows()) for flag in (False, True))
    assert issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), dense)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_names_the_columns(library):
    encoder = TableEncoder().set_output(transform=library)
    frame = encoder.fit_transform(rows().to_pandas() if library == "pandas" else rows())
    kind = pd.DataFrame if library == "pandas" else pl.DataFrame
    assert isinstance(frame, kind)
    assert list(frame.columns) == encoder.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"min_frequency": 0}, "min_frequency"),
        ({"max_categories": 1.5}, "max_categories"),
        ({"decimal": ";"}, "decimal"),
        ({"sparse_output": 1}, "sparse_output"),
        ({"categorical": ["nope"]}, "categorical names column 'nope'"),
    ],
)
def test_wrong_parameters(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        TableEncoder(**options).fit(rows())


@pytest.mark.parametrize("table", [{}, {"a": []}, {"a": [1, 2], "b": [1]}, pl.LazyFrame({"a": [1]}), np.zeros(3)])
def test_no_table(table):
    with pytest.raises((ValueError, TypeError)):
        TableEncoder().fit(table)


def test_errors_hold_no_cell():
    table = {"name": [f"{CANARY} {k}" for k in range(30)], "mixed": [CANARY, 3, None] * 10}
    with pytest.raises(ValueError, match="None of the 1 columns") as caught:
        TableEncoder().fit({"name": table["name"]})
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(TableEncoder().fit({**table, "age": [1, 2, 3] * 10}))


@given(st.lists(st.one_of(st.none(), st.text(max_size=3), st.floats(), st.integers(-5, 5)), min_size=1, max_size=40))
def test_any_column_is_encoded_or_left_out(cells):
    table = {"cells": cells, "age": [*range(len(cells))]}
    try:
        encoder = TableEncoder(min_frequency=2).fit(table)
    except ValueError as error:
        assert "can be used" in str(error)  # noqa: PT017 - either is right
        return
    matrix = encoder.transform(table)
    assert matrix.shape == (len(cells), len(encoder.get_feature_names_out()))
    assert np.isfinite(matrix).all()


@pytest.mark.trust
@parametrize_with_checks([TableEncoder()])
def test_generated_checks(estimator, check):
    if getattr(check, "func", check).__name__ != "check_array_api_input":  # it skips itself
        check(estimator)


def test_row_numbers_with_gaps_are_distinguished_from_measurements():
    rng = np.random.default_rng(0)
    kept_rows = np.sort(rng.permutation(2000)[:1500])
    table = {
        "row": kept_rows,
        "age": rng.integers(0, 90, 1500),
        "pay": rng.integers(0, 10**6, 1500),
        "x": rng.random(1500),
    }
    assert TableEncoder().fit(table).left_out_ == {"row": "it numbers the rows"}


@pytest.mark.parametrize("written", [pd.DataFrame.to_csv, pd.DataFrame.to_parquet])
def test_the_index_of_a_pandas_table_is_no_feature_and_proposed_to_be_left_out(written, tmp_path):
    """Its labels have gaps too large to be row numbers; CSV files have no name for it."""
    index = pd.Index(np.random.default_rng(0).permutation(10_000)[:400])
    frame = pd.DataFrame({"age": np.arange(400) % 60, "sex": ["F", "M"] * 200}, index=index)
    written(frame, tmp_path / "people")
    kind = "csv" if written is pd.DataFrame.to_csv else "parquet"
    with open_files(tmp_path / "people", format=kind) as file:
        read = collect_file(file, guess=True)
    name = "" if kind == "csv" else "__index_level_0__"
    for table in (read, read.rename_columns(["Unnamed: 0" if one == name else one for one in read.column_names])):
        columns = describe_columns(table)
        left_out = {one["name"]: one["left_out"] for one in columns if one["left_out"]}
        assert [*left_out.values()] == ["in files of pandas, a column of this name is the index of the rows"]
        assert guess_roles(columns)[0]["drop"] == [*left_out] == [*TableEncoder().fit(table).left_out_]


def test_absurd_numbers_stay_finite():
    encoder = TableEncoder().fit({"x": np.linspace(-1e-3, 1e-3, 50)})
    assert encoder.transform({"x": ["1e308", "-1e308", "1e999"]})[:, 0].tolist() == [1e6, -1e6, 0.0]


def test_decimal_comma():
    encoder = TableEncoder(decimal=",").fit({"x": [f"{k},5" for k in range(30)] * 2})
    plan = encoder.plans_[0]
    assert (plan.kind, plan.centre.tolist()) == ("number", [15.0])


def test_a_decimal_comma_that_is_not_read_is_named():
    left_out = TableEncoder().fit({"x": [f"{k},25" for k in range(60)], "y": [0.5, 1.5] * 30}).left_out_
    assert "decimal comma" in left_out["x"]


@pytest.mark.parametrize("decimal", [".", ","])
def test_identifiers_are_not_taken_for_numbers_with_a_decimal_comma(decimal):
    table = {"id": [f"{k:06d}" for k in range(60)], "y": [0.5, 1.5] * 30}
    assert TableEncoder(decimal=decimal).fit(table).left_out_ == {"id": "almost every row has a text of its own"}
