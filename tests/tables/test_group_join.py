"""Types in which known groups and the values of a column are compared on every engine."""

from __future__ import annotations

import narwhals as nw
import pytest

from .conftest import table_repair


def test_a_column_of_another_type_is_refused_before_the_engine_quotes_a_group(to_table):
    rows = {"s": [0.0, 0.5, 0.5, 1.0], "g": ["canary", "canary", "b", "b"]}
    repair = table_repair(score="s", sensitive_features="g", n_bins=4).fit(to_table(rows))
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
    repair = table_repair(score="s", sensitive_features="g", n_bins=4).fit(
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
    repair = table_repair(score="s", sensitive_features="g", n_bins=4).fit(table)
    engine = nw.from_native(table).implementation
    if engine.is_duckdb() or engine.is_pyspark():
        with pytest.raises(ValueError, match="The table has a column 'S' already"):
            repair.transform(table, output="S")
    else:
        found = nw.from_native(repair.transform(table, output="S"))
        assert found.collect_schema().names() == ["s", "g", "S"]
