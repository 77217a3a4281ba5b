"""Types in which known groups and the values of a column are compared on every engine."""

from __future__ import annotations

import narwhals as nw
import pytest

import fairtransport as ft
from fairtransport.tables._group_join import common_kind


@pytest.mark.parametrize(
    ("kind", "values", "common"),
    [
        (nw.String(), ["a"], nw.String()),
        (nw.Categorical(), ["a"], nw.String()),
        (nw.Enum(["a", "b"]), ["a"], nw.String()),
        (nw.Object(), ["a", 1], nw.Object()),
        (nw.Boolean(), [True], nw.Boolean()),
        (nw.Boolean(), [0, 1], nw.Int64()),
        (nw.Int8(), [True], nw.Int64()),
        (nw.Int8(), [0, 256], nw.Int64()),  # as Int8, the two would be one
        (nw.Int8(), [0.5, 1.0], nw.Float64()),  # and so would 0.5 and 0
        (nw.UInt64(), [1, 2], nw.UInt64()),
        (nw.UInt64(), [-1, 2], nw.Float64()),
        (nw.Int64(), [1, 1 << 63], nw.Float64()),
        (nw.Int128(), [1, 2], nw.Float64()),
        (nw.Float32(), [1, 2], nw.Float64()),
        (nw.Decimal(10, 2), [1, 2], nw.Float64()),
    ],
)
def test_the_type_in_which_they_are_compared(kind, values, common):
    assert common_kind("g", kind, values) == common


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (nw.Int64(), ["a", "b"], "Int64; the repair was fitted to groups that are text"),
        (nw.String(), [1, 2], "String; .* whole numbers"),
        (nw.String(), [True], "String; .* booleans"),
        (nw.String(), ["a", 1.5], "String; .* numbers and text"),
        (nw.Date(), ["2024-01-01"], "Date; .* text"),
        (nw.Enum(["canary"]), [1], "Enum; .* whole numbers"),
    ],
)
def test_types_that_do_not_compare(kind, values, said):
    with pytest.raises(TypeError, match=f"Column 'g' contains {said}") as caught:
        common_kind("g", kind, values)
    assert "canary" not in str(caught.value)


def test_a_column_of_another_type_is_refused_before_the_engine_quotes_a_group(to_table):
    rows = {"s": [0.0, 0.5, 0.5, 1.0], "g": ["canary", "canary", "b", "b"]}
    repair = ft.TableRepair(ft.QuantileRepair(min_group_size=1), score="s", sensitive_features="g", n_bins=4).fit(
        to_table(rows)
    )
    other = to_table({**rows, "g": [1, 1, 2, 2]})
    for call in (repair.transform, repair.check):
        with pytest.raises(TypeError, match="the repair was fitted to groups that are text") as caught:
            call(other)
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("fitted", "given"),
    [([0, 0, 1, 1], [False, True, True]), ([False, False, True, True], [0, 1, 1]), ([0, 0, 1, 1], [0.0, 1.0, 1.5])],
)
def test_numbers_of_other_types_are_matched_by_value(to_table, fitted, given):
    """A repair that was fitted to 0 and 1 knows False, True and 1.0; 1.5 is no group of it, and no 1."""
    repair = ft.TableRepair(ft.QuantileRepair(min_group_size=1), score="s", sensitive_features="g", n_bins=4).fit(
        to_table({"s": [0.0, 0.5, 0.5, 1.0], "g": fitted})
    )
    table = to_table({"id": [0, 1, 2], "s": [0.5, 0.5, 0.5], "g": given})
    frame = nw.from_native(repair.transform(table)).lazy().collect().sort("id")
    found = [None if value is None or value != value else value for value in frame["repaired"].to_list()]
    assert found == [0.75, 0.25, None if given[-1] == 1.5 else 0.25]
    assert repair.check(table)["unknown group"] == (given[-1] == 1.5)


def test_names_that_spark_and_duckdb_hold_for_the_same(to_table):
    rows = {"s": [0.0, 0.5, 0.5, 1.0], "g": ["a", "a", "b", "b"]}
    table = to_table(rows)
    repair = ft.TableRepair(ft.QuantileRepair(min_group_size=1), score="s", sensitive_features="g", n_bins=4).fit(table)
    engine = nw.from_native(table).implementation
    if engine.is_duckdb() or engine.is_pyspark():
        with pytest.raises(ValueError, match="The table has a column 'S' already"):
            repair.transform(table, output="S")
    else:
        found = nw.from_native(repair.transform(table, output="S"))
        assert found.collect_schema().names() == ["s", "g", "S"]
