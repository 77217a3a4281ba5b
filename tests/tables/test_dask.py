"""Dask tables without a cluster: partitions, index and divisions. tests/engines has the cluster."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import fairtransport as ft
from fairtransport import GroupPolicy
from fairtransport.tables import count_table

from .conftest import table_repair

CANARY = "canary-value"
# Dask reads Parquet with an argument that pandas 3.1 is going to drop.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword:pandas.errors.Pandas4Warning")


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    race = rng.choice(["B", "W", "X"], n)
    scores = np.round(rng.beta(2, 3, n) * (1 - 0.3 * (race == "B")) * 64) / 64
    return pd.DataFrame({"s": scores, "race": race}, index=pd.Index(np.arange(n) * 2 + 7, name="id"))


def in_parts(frame, kind):
    """Make the groups of a frame of one kind of column."""
    if kind == "categories that differ by partition":
        parts = (frame.iloc[:100], frame.iloc[100:])
        return dd.concat([dd.from_pandas(part.astype({"race": "category"}), npartitions=1) for part in parts])
    table = dd.from_pandas(frame, npartitions=3)
    return {
        "text": lambda: table,
        "known categories": lambda: dd.from_pandas(frame.astype({"race": "category"}), npartitions=3),
        "categorized": lambda: table.categorize("race"),
        "unknown categories": lambda: table.assign(race=table["race"].astype("category")),
        "object": lambda: table.assign(race=table["race"].astype(object)),
    }[kind]()


@pytest.mark.parametrize(
    "kind",
    ["text", "known categories", "categorized", "unknown categories", "categories that differ by partition", "object"],
)
def test_groups_of_any_kind_of_column(kind):
    frame = rows()
    frame.loc[frame.index[:4], "race"] = None
    frame.loc[frame.index[104:], "race"] = frame.loc[frame.index[104:], "race"].where(lambda r: r != "B", "W")
    table = in_parts(frame, kind)
    options = {"score": "s", "sensitive_features": "race", "n_bins": 64, "groups": GroupPolicy(missing="set_aside")}
    found, direct = count_table(table, **options), count_table(frame, **options)
    assert found.histograms.groups.labels == ("B", "W", "X")
    assert np.array_equal(found.histograms.masses, direct.histograms.masses)
    assert found.set_aside == direct.set_aside == {"no group": 4}
    repair = table_repair(score="s", sensitive_features="race", n_bins=64).fit(frame.iloc[4:])
    repaired = repair.transform(table).compute()
    beside = repair.transform(frame)
    assert np.array_equal(repaired["repaired"], beside["repaired"], equal_nan=True)
    assert repaired["repaired"].isna().sum() == 4
    assert repair.check(table)["no group"] == 4


@pytest.mark.parametrize(
    "groups", [[False, True, None], [1, 2, None], [1.5, 2.5, np.nan], ["x", "y", None], [1, "a", None]]
)
def test_object_columns_hold_values_of_any_type(groups):
    """Dask makes text of such columns unless configured otherwise; then they compare as they are."""
    frame = pd.DataFrame({"s": [0.0, 0.5, 0.25] * 4, "g": pd.Series(groups * 4, dtype=object)})
    with dask.config.set({"dataframe.convert-string": False}):
        table = dd.from_pandas(frame, npartitions=3)
        assert table.dtypes["g"] == "object"
        repair = table_repair(score="s", sensitive_features="g", n_bins=4).fit(table.dropna())
        assert repair.repair_.groups_.labels == tuple(groups[:2])
        found = repair.transform(table).compute()["repaired"]
        counts = repair.check(table)
    np.testing.assert_array_equal(found, [0.25, 0.25, np.nan] * 4)
    assert (counts["no group"], counts["unknown group"]) == (4, 0)


def test_the_index_and_the_partitions_stay():
    frame = rows()
    table = dd.from_pandas(frame, npartitions=4)
    repair = table_repair(score="s", sensitive_features="race", n_bins=64).fit(table)
    found = repair.transform(table)
    assert isinstance(found, dd.DataFrame)
    assert found.divisions == table.divisions
    assert found._meta.index.name == "id"
    beside = repair.transform(frame)
    pd.testing.assert_frame_equal(found.compute().astype({"race": "str"}), beside.astype({"race": "str"}))
    unknown = repair.transform(table.clear_divisions())
    assert unknown.compute().index.equals(frame.index)


def counting(table, seen):
    """Note the length of each partition that is computed."""

    def look(part):
        seen.append(len(part))
        return part

    return table.map_partitions(look, meta=table._meta)


def test_a_repair_computes_nothing_until_it_is_asked_for():
    seen = []
    table = counting(dd.from_pandas(rows(), npartitions=3), seen)
    repair = table_repair(score="s", sensitive_features="race", n_bins=64).fit(rows())
    result = repair.transform(table)
    assert seen == []
    assert len(result.partitions[1].compute()) == 100
    assert seen == [100]


def test_identifiers_are_looked_for_in_as_few_partitions_as_hold_enough_rows(monkeypatch):
    monkeypatch.setattr("fairtransport.tables.column_roles.PROBED", 150)
    seen = []
    table = counting(dd.from_pandas(rows().reset_index(), npartitions=30), seen)
    with pytest.raises(
        ValueError, match="sensitive_features has at least 160 groups in column 'id'; max_groups is 100"
    ):
        count_table(table, score="s", sensitive_features="id", groups=GroupPolicy(max_groups=100))
    assert seen == [10] * (1 + 4 + 16)


def test_values_in_the_text_of_a_failed_task_are_not_passed_on():
    frame = pd.DataFrame({"s": ["0.5", CANARY, "0.25"], "g": ["a", "b", "b"]})
    table = dd.from_pandas(frame, npartitions=1)
    table = table.assign(s=table["s"].astype(float))
    with pytest.raises(RuntimeError, match="Dask could not compute the columns of the table: ValueError") as caught:
        ft.audit_table(table, score="s", sensitive_features="g")
    assert CANARY not in str(caught.value)
    assert caught.value.__suppress_context__
