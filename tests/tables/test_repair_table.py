"""TableRepair: equal to the repair of arrays for scores on the grid, within the stated bound for others."""

import json

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import fairtransport as ft

from .conftest import columns_of_scores, table_repair

COLUMNS = {"score": "s", "sensitive_features": ["race", "sex"]}
ONE = {"score": "s", "sensitive_features": "g", "n_bins": 4}


def repair_of_rows(*arguments, **options):
    """A repair of arrays in which each group has maps of its own, however small it is."""
    return ft.QuantileRepair(*arguments, groups=ft.GroupPolicy(min_size=1, **options))


def groups_of(columns):
    return {name: columns[name] for name in ("race", "sex")}


def repaired(native, order="id", output="repaired"):
    frame = nw.from_native(native).lazy().collect()
    return frame.sort(order)[output].to_numpy().astype(float)


@pytest.mark.parametrize("target", ["barycenter", "barycenter_w2", "pooled", ("W", "F"), [0.25, 0.5, 0.75]])
@pytest.mark.parametrize("amount", [1.0, 0.4])
def test_on_the_grid_it_is_the_repair_of_arrays(target, amount):
    columns = columns_of_scores(grid=64)
    table = pl.LazyFrame(columns)
    exact = repair_of_rows(target, amount).fit(columns["s"], sensitive_features=groups_of(columns))
    found = ft.repair.TableRepair(repair_of_rows(target, amount), **COLUMNS, n_bins=64).fit(table)
    rng = np.random.default_rng(1)
    new = {"id": np.arange(500), "s": rng.random(500), **groups_of(columns_of_scores(500, seed=2))}
    direct = exact.transform(new["s"], sensitive_features=groups_of(new))
    np.testing.assert_allclose(found.repair_.transform(new["s"], sensitive_features=groups_of(new)), direct, atol=1e-12)
    np.testing.assert_allclose(repaired(found.transform(pl.LazyFrame(new))), direct, atol=1e-12)
    np.testing.assert_allclose(found.repair_.target_, exact.target_, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_engine_learns_and_repairs_alike(to_table, weighted):
    columns = columns_of_scores(grid=64)
    table = to_table(columns)
    found = table_repair(**COLUMNS, n_bins=64, weight="w" if weighted else None).fit(table)
    weights = columns["w"] if weighted else None
    exact = repair_of_rows().fit(columns["s"], sensitive_features=groups_of(columns), sample_weight=weights)
    direct = exact.transform(columns["s"], sensitive_features=groups_of(columns))
    result = found.transform(table)
    assert type(result) is type(table)
    assert nw.from_native(result).collect_schema().names() == [*columns, "repaired"]
    np.testing.assert_allclose(repaired(result), direct, atol=1e-12)


@pytest.mark.parametrize("n_bins", [20, 300, 1 << 14])
def test_off_the_grid_it_keeps_the_stated_bound(n_bins):
    """T(a - h) <= T'(s) <= T(b) + h, with a and b the nearest nodes of the group's rows around s."""
    columns = columns_of_scores(600)
    exact = repair_of_rows().fit(columns["s"], sensitive_features=groups_of(columns))
    found = table_repair(**COLUMNS, n_bins=n_bins).fit(pl.DataFrame(columns))
    points, width = np.random.default_rng(3).random(2000), 1 / n_bins
    for rows_map, counts_map in zip(exact.maps_, found.repair_.maps_, strict=True):
        nodes = counts_map.knots
        place = np.searchsorted(nodes, points)
        below, above = nodes[np.maximum(place - 1, 0)], nodes[np.minimum(place, nodes.size - 1)]
        image = counts_map(points)
        assert np.all(image >= rows_map(below - width) - 1e-9)
        assert np.all(image <= rows_map(above) + width + 1e-9)
    fine = np.abs(
        found.repair_.transform(columns["s"], sensitive_features=groups_of(columns))
        - exact.transform(columns["s"], sensitive_features=groups_of(columns))
    )
    if n_bins == 1 << 14:
        assert np.median(fine) <= width


def test_lazy_stays_lazy_and_eager_keeps_its_order(to_table):
    columns = columns_of_scores(grid=64)
    found = table_repair(**COLUMNS, n_bins=64).fit(pl.DataFrame(columns))
    mixed = {name: column[np.random.default_rng(0).permutation(400)] for name, column in columns.items()}
    result = nw.from_native(found.transform(to_table(mixed)))
    if isinstance(result, nw.DataFrame):
        assert result["id"].to_list() == mixed["id"].tolist()
    else:
        assert result.collect().shape == (400, 8)


def test_what_is_clamped_and_what_gets_no_score(to_table):
    fitted = {"id": [0, 1, 2, 3], "s": [0.0, 0.5, 0.5, 1.0], "g": ["a", "a", "b", "b"]}
    found = table_repair(**ONE).fit(to_table(fitted))
    new = {
        "id": list(range(8)),
        "s": [-3.0, 0.0, 1.0, 7.5, None, 0.5, 0.5, -1.0],
        "g": ["a", "a", "b", "b", "a", None, "c", "c"],
    }
    result = repaired(found.transform(to_table(new)))
    assert result[:4].tolist() == [0.25, 0.25, 0.75, 0.75]
    assert np.isnan(result[4:]).all()
    counts = {"rows": 8, "clamped": 2, "no score": 1, "no group": 1, "unknown group": 2}
    assert found.check(to_table(new)) == counts
    assert found.set_aside_ == {}


def test_other_ranges_and_names(to_table):
    rng = np.random.default_rng(0)
    columns = {"id": np.arange(300), "points": rng.integers(300, 851, 300), "who": rng.integers(0, 2, 300)}
    found = table_repair(score="points", sensitive_features="who", range=(300, 850), n_bins=550).fit(to_table(columns))
    unit = (columns["points"] - 300) / 550
    exact = repair_of_rows().fit(unit, sensitive_features=columns["who"])
    direct = 300 + 550 * exact.transform(unit, sensitive_features=columns["who"])
    renamed = {"id": columns["id"], "bin": columns["points"], "start": columns["who"]}
    result = found.transform(to_table(renamed), score="bin", sensitive_features=["start"], output="base")
    np.testing.assert_allclose(repaired(result, output="base"), direct, atol=1e-9)
    np.testing.assert_allclose(
        found.repair_.transform(columns["points"], sensitive_features=columns["who"]), direct, atol=1e-9
    )


def test_the_parquet_file_says_all(tmp_path):
    columns = columns_of_scores()
    found = table_repair(**COLUMNS, n_bins=128).fit(pl.DataFrame(columns))
    path = found.lookup().to_parquet(tmp_path / "repair.parquet")
    lookup = pq.read_table(path)
    assert lookup.column_names == ["race", "sex", "bin", "start", "base", "slope"]
    assert lookup.num_rows == 6 * 129
    about = json.loads(lookup.schema.metadata[b"fairtransport"])
    rows = pl.DataFrame(columns).with_columns(
        bin=((pl.col("s") - about["low"]) * about["scale"] - about["slack"]).ceil().cast(pl.Int64)
    )
    joined = rows.join(pl.DataFrame(lookup), on=["race", "sex", "bin"], how="left").sort("id")
    image = joined.select(pl.col("base") + (pl.col("s") - pl.col("start")) * pl.col("slope")).to_series()
    direct = found.repair_.transform(columns["s"], sensitive_features=groups_of(columns))
    np.testing.assert_allclose(image.to_numpy(), direct, atol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_lookup_is_a_frame_of_any_library(library):
    columns = columns_of_scores(grid=64)
    repair = table_repair(**COLUMNS, n_bins=16).fit(pl.DataFrame(columns))
    frame = nw.from_native(repair.lookup().to_frame(library))
    assert frame.implementation.value == library
    assert frame.columns == ["race", "sex", "bin", "start", "base", "slope"]
    assert frame.shape == (6 * 17, 6)
    with pytest.raises(ValueError, match="library must be one of"):
        repair.lookup().to_frame("excel")


def test_a_repair_is_cloned_by_fit_and_a_fitted_one_needs_none():
    table = pl.DataFrame(columns_of_scores(grid=64))
    plain = repair_of_rows()
    unfitted = ft.repair.TableRepair(plain, **COLUMNS, n_bins=64)
    with pytest.raises(NotFittedError):
        unfitted.transform(table)
    with pytest.raises(NotFittedError):
        ft.repair.TableRepair(**COLUMNS).check(table)
    fitted = clone(unfitted).fit(table)
    assert not hasattr(plain, "maps_")
    again = ft.repair.TableRepair(fitted.repair_, **COLUMNS)
    assert np.array_equal(repaired(again.transform(table)), repaired(fitted.transform(table)))


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"g": ["a", "a", None, "b"]}, {}, "missing values in 1 row of column 'g'"),
        ({"g": ["a"] * 4}, {}, r"1 group\(s\) of column 'g'; at least 2 needed"),
        ({"w": [0.0, 0.0, 1.0, 1.0]}, {"weight": "w"}, "1 of 2 groups have total weight 0"),
        ({"s": [0.5] * 4}, {}, "All 4 scores fall into one bin"),
        ({"s": [0.5, 2.0, 3.0, 0.1]}, {}, "'s' has 2 of 4 values outside"),
    ],
)
def test_tables_that_cannot_be_learned_from(columns, options, message):
    table = pl.DataFrame({"s": [0.1, 0.2, 0.3, 0.4], "g": ["a", "a", "b", "b"], **columns})
    with pytest.raises(ValueError, match=message):
        table_repair(score="s", sensitive_features="g", **options).fit(table)


def test_other_refusals():
    table = pl.DataFrame({"s": [0.1, 0.2, 0.3, 0.4], "g": ["a", "a", "b", None], "h": [1, 2, 1, 2]})
    of_arrays = repair_of_rows().fit([0.1, 0.2, 0.3, 0.4], sensitive_features=list("aabb"))
    with pytest.raises(ValueError, match="fitted to arrays; a lookup table needs maps of counts"):
        ft.repair.TableRepair(of_arrays, score="s", sensitive_features="g").transform(table)
    with pytest.raises(ValueError, match="do not overlap"):
        table_repair(repair_of_rows(crossed=False), score="s", sensitive_features=["g", "h"]).fit(table.drop_nulls())
    missing = table_repair(repair_of_rows(missing="group"), score="s", sensitive_features="g").fit(table)
    assert missing.repair_.transform([0.4], sensitive_features=[None]).shape == (1,)
    with pytest.raises(ValueError, match="is that of missing values, and a join does not find these"):
        missing.transform(table)
    found = table_repair(score="s", sensitive_features="g").fit(table.drop_nulls())
    with pytest.raises(ValueError, match="has a column 'h' already"):
        found.transform(table, output="h")
    with pytest.raises(ValueError, match="sensitive_features names 2 columns; the repair was fitted with column 'g'"):
        found.transform(table, sensitive_features=["g", "h"])
    with pytest.raises(ValueError, match="no column 'gg'; close to it: 'g'"):
        found.check(table, sensitive_features="gg")


def test_pandas_keeps_its_index():
    columns = columns_of_scores(grid=64)
    frame = pd.DataFrame(columns, index=np.arange(400)[::-1] * 3)
    found = table_repair(**COLUMNS).fit(frame)
    assert found.transform(frame).index.equals(frame.index)
    objects = frame.astype({"race": object, "sex": "category"})
    assert np.array_equal(found.transform(objects)["repaired"], found.transform(frame)["repaired"])


def test_nan_is_no_score(to_table):
    fitted = {"s": [0.0, 0.5, 0.5, 1.0, np.nan, None], "g": [1.0, 1.0, 2.0, 2.0, 2.0, 1.0]}
    found = table_repair(**ONE).fit(to_table(fitted))
    assert found.set_aside_ == {"no score": 2}
    new = {"id": [0, 1, 2], "s": [np.nan, 0.5, 0.5], "g": [1.0, np.nan, 2.0]}
    result = repaired(found.transform(to_table(new)))
    assert np.isnan(result).tolist() == [True, True, False]
    counts = found.check(to_table(new))
    assert (counts["no score"], counts["no group"], counts["unknown group"]) == (1, 1, 0)


def test_a_column_of_another_type_is_refused_before_the_engine_quotes_a_group(to_table):
    rows = {"s": [0.0, 0.5, 0.5, 1.0], "g": ["canary", "canary", "b", "b"]}
    repair = table_repair(**ONE).fit(to_table(rows))
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
    repair = table_repair(**ONE).fit(to_table({"s": [0.0, 0.5, 0.5, 1.0], "g": fitted}))
    table = to_table({"id": [0, 1, 2], "s": [0.5, 0.5, 0.5], "g": given})
    frame = nw.from_native(repair.transform(table)).lazy().collect().sort("id")
    found = [None if value is None or value != value else value for value in frame["repaired"].to_list()]
    assert found == [0.75, 0.25, None if given[-1] == 1.5 else 0.25]
    assert repair.check(table)["unknown group"] == (given[-1] == 1.5)


def test_names_that_spark_and_duckdb_hold_for_the_same(to_table):
    rows = {"s": [0.0, 0.5, 0.5, 1.0], "g": ["a", "a", "b", "b"]}
    table = to_table(rows)
    repair = table_repair(**ONE).fit(table)
    engine = nw.from_native(table).implementation
    if engine.is_duckdb() or engine.is_pyspark():
        with pytest.raises(ValueError, match="The table has a column 'S' already"):
            repair.transform(table, output="S")
    else:
        found = nw.from_native(repair.transform(table, output="S"))
        assert found.collect_schema().names() == ["s", "g", "S"]
