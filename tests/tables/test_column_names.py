"""Columns are addressed literally: a name is never a pattern, an expression, or another column's name in other case."""

from functools import cache, partial

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.worlds import write_table

import fairtransport as ft
from fairtransport import GroupPolicy
from fairtransport.tables import Columns, count_table, open_files, open_table
from fairtransport.tables.files import table_writer
from fairtransport.tabular import TableModel
from fairtransport.tabular.column_plans import read_table

from .conftest import table_repair
from .nasty_names import DECOYS, NASTY

ROLES = ("score", "sensitive_features", "label", "strata", "weight")
N = 60


def tame_columns():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], N)
    scores = np.round((rng.random(N) * (1 - 0.4 * (group == "a"))) * 64) / 64
    return {
        "score": scores,
        "sensitive_features": group,
        "label": (rng.random(N) < scores).astype(int),
        "strata": rng.choice(["n", "o"], N),
        "weight": rng.integers(1, 5, N) / 4,
    }


def renamed(names):
    """Return the columns under other names, the named ones first, beside decoys of the same type."""
    columns = {names[role]: values for role, values in tame_columns().items()}
    first = columns[names["score"]]
    folded = {name.casefold() for name in columns}
    return {**columns, **{decoy: first[::-1] for decoy in DECOYS if decoy.casefold() not in folded}}


def in_role(name, role):
    """Return tame names of all roles but one."""
    return {**{other: f"tame {other}" for other in ROLES}, role: name}


def summarized(counts):
    by_stratum = {name: counts.strata[name].by_group.tolist() for name in counts.strata}
    return counts.histograms.by_group.tolist(), counts.histograms.masses.tolist(), by_stratum, counts.set_aside


@cache
def expected():
    names = {role: role for role in ROLES}
    return summarized(count_table(pa.table(tame_columns()), **names, n_bins=64))


def has_names(table, names):
    """DuckDB renames some columns as it takes over a table, and then does not have the name."""
    return {*names} <= {*open_table(table).names}


def coarser(request, step):
    """Clusters take seconds for what others do in milliseconds: they try fewer names."""
    return max(step, 20) if request.node.get_closest_marker("engines") else step


SHIFTS = [(0, 10), *(pytest.param(shift, 5, marks=pytest.mark.trust) for shift in (1, 3))]


@pytest.mark.parametrize(("shift", "step"), SHIFTS)
def test_counts_are_those_of_the_named_columns(request, to_table, shift, step):
    n_refused = 0
    for start in range(0, len(NASTY), coarser(request, step)):
        names = dict(zip(ROLES, np.roll((NASTY + NASTY)[start : start + len(ROLES)], shift).tolist(), strict=True))
        table = to_table(renamed(names))
        if has_names(table, names.values()):
            assert summarized(count_table(table, **names, n_bins=64)) == expected(), names
        else:
            n_refused += 1
            with pytest.raises(ValueError, match="The table has no column"):
                count_table(table, **names, n_bins=64)
    assert n_refused <= 3


@pytest.mark.parametrize("step", [20, pytest.param(3, marks=pytest.mark.trust)])
def test_repairs_are_those_of_the_named_columns(request, to_table, step):
    columns, step = tame_columns(), coarser(request, step)
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1))
    expected = repair.fit_transform(columns["score"], sensitive_features=columns["sensitive_features"])
    for score, group in zip(NASTY[::step], NASTY[7::step], strict=False):
        names = {**in_role(score, "score"), "sensitive_features": group}
        native = to_table({**renamed(names), "order": np.arange(N)})
        if not has_names(native, (score, group)):
            continue
        known = open_table(native).names
        table = ft.repair.TableRepair(repair, score=score, sensitive_features=group, n_bins=64).fit(native)
        assert table.check(native) == {"rows": N, "clamped": 0, "no score": 0, "no group": 0, "unknown group": 0}
        repaired = open_table(table.transform(native))
        assert repaired.names == (*known, "repaired")
        found = repaired.frame.collect().sort(repaired.keys["order"])
        np.testing.assert_allclose(found[repaired.keys["repaired"]].to_numpy(), expected, rtol=0, atol=1e-12)
        for name, values in {score: columns["score"], group: columns["sensitive_features"]}.items():
            assert found[repaired.keys[name]].to_list() == values.tolist(), repr(name)


def test_a_table_of_the_user_is_not_taken_for_the_lookup_table():
    connection = duckdb.connect()
    for name in ("repair_lookup", "scored", "unused", "lookup"):
        connection.execute(f"CREATE TABLE {name} AS SELECT 42 AS answer")
    names = in_role("s", "score")
    native = connection.from_arrow(pa.table(renamed(names)))
    task = {"score": "s", "sensitive_features": names["sensitive_features"], "n_bins": 64}
    repair = table_repair(**task).fit(native)
    assert repair.check(native)["unknown group"] == 0
    assert repair.transform(native).filter("repaired IS NULL").fetchall() == []
    assert connection.sql("SELECT * FROM scored").fetchall() == [(42,)]
    assert connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == []


def test_two_columns_of_one_name_are_refused():
    relation = duckdb.sql("SELECT .5 AS s, .7 AS s, 'a' AS g")
    with pytest.raises(ValueError, match="Two columns of the table have the same name"):
        count_table(relation, score="s", sensitive_features="g")


def test_numbers_as_names_of_pandas_columns_stay():
    columns = tame_columns()
    frame = pd.DataFrame({0: columns["score"], "s": columns["score"], "g": columns["sensitive_features"]})
    frame.columns.name = "kind"
    repair = table_repair(score="s", sensitive_features="g").fit(frame)
    repaired = repair.transform(frame)
    assert repaired.columns.tolist() == [0, "s", "g", "repaired"]
    assert repaired.columns.name == "kind"
    with pytest.raises(ValueError, match="The table has no column '0'"):
        count_table(frame, score="0", sensitive_features="g")


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame, pa.table, dict])
def test_groups_of_frames(library):
    columns = tame_columns()
    beside = ft.make_groups(columns["sensitive_features"])
    for name in NASTY:
        groups = ft.make_groups(library({name: columns["sensitive_features"]}))
        assert groups.columns == (name,)
        assert groups.codes.tolist() == beside.codes.tolist()


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame, pa.table, dict])
def test_raw_tables_with_nasty_names(library):
    """A model whose columns have nasty names scores as the model of the same columns with tame names."""
    columns = tame_columns()
    tame = {"y": columns["label"], "g": columns["sensitive_features"], "x0": columns["score"], "x1": columns["weight"]}
    estimator = ft.TransportClassifier(distance="discrete", parity_weight=0.1)
    scores = TableModel(estimator, label="y", sensitive_features=["g"]).fit(tame).score_rows(tame).scores
    for start in range(0, len(NASTY) - 3, 20):
        names = dict(zip(tame, NASTY[start:], strict=False))
        table = library({names[name]: values for name, values in tame.items()})
        model = TableModel(estimator, label=names["y"], sensitive_features=[names["g"]]).fit(table)
        assert model.columns == [names["x0"], names["x1"]]
        np.testing.assert_array_equal(model.score_rows(table).scores, scores)


def test_names_that_are_equal_as_text_are_refused():
    twice = {1: [0.5], "1": [0.7]}
    for read, table, of in (
        (read_table, twice, "the table"),
        (read_table, pd.DataFrame(twice), "the table"),
        (ft.make_groups, pd.DataFrame(twice), "sensitive_features"),
    ):
        with pytest.raises(ValueError, match=f"Two columns of {of} are named '1'"):
            read(table)


FORMATS = ("csv", "tsv", "jsonl", "parquet", "feather")
write = partial(write_table, quote_style="always")


def stored_name(name, ending):
    """Return the name under which a file has a column; None where the format cannot have it."""
    if ending == "jsonl":
        return name or None
    if ending in {"csv", "tsv"}:
        return name.strip() or None if name != "\ufeffh" else name
    return name


@pytest.mark.parametrize("step", [12, pytest.param(3, marks=pytest.mark.trust)])
@pytest.mark.parametrize("ending", FORMATS)
def test_files_are_counted_by_the_named_columns(tmp_path, ending, step):
    for start in range(0, len(NASTY) - len(ROLES), step):
        names = dict(zip(ROLES, NASTY[start:], strict=False))
        folded = {stored_name(name, ending) and stored_name(name, ending).casefold() for name in names.values()}
        if None in folded or len(folded) < len(names):
            continue
        path = write(tmp_path / f"x.{ending}", renamed(names))
        columns = Columns.named(**{role: stored_name(name, ending) for role, name in names.items()})
        with open_files([path], threads=1) as table:
            found = table.run(count_table, columns, n_bins=64, groups=GroupPolicy(max_groups=10))
        assert found.histograms.by_group.tolist() == expected()[0], names
        assert [found.strata[name].by_group.tolist() for name in found.strata] == list(expected()[2].values())


@pytest.mark.parametrize("ending", FORMATS)
def test_rows_of_files_keep_their_names(tmp_path, ending):
    names = [name for name in NASTY if stored_name(name, ending) == name]
    names = list({name.casefold(): name for name in names}.values())
    frame = pl.DataFrame({name: [number, number + 1] for number, name in enumerate(names)})
    path = write(tmp_path / f"x.{ending}", frame)
    copy = tmp_path / f"copy.{ending}"
    with open_files([path], threads=1) as table:
        assert table.names == tuple(names)
        batches = table.batches()
        with table_writer(copy, batches.schema) as put:
            for rows, _ in batches:
                put(rows)
    with open_files([copy], threads=1) as table:
        assert table.names == tuple(names)
        rows = next(iter(table.batches()))[0]
    assert [int(column[0].as_py()) for column in rows.columns] == list(range(len(names)))


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_empty_names_that_the_engine_cannot_address_are_refused(tmp_path, ending):
    path = write(tmp_path / f"x.{ending}", {"": [0.5], "C0": [0.5], "g": ["a"]})
    with pytest.raises(ValueError, match="a column whose name is empty"):
        open_files([path])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "feather"])
@pytest.mark.parametrize("folder", ["~", "~root", "file:", "[a]", "*", "a?", "a\\b", "it's; DROP", "{x}", 'a"b'])
def test_files_and_folders_are_named_literally(tmp_path, monkeypatch, ending, folder):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("home", "a", folder):
        (tmp_path / name).mkdir()
        right = name == folder
        rows = {"s": [0.25, 0.5], "g": ["c", "d"] if right else ["wrong", "wrong"]}
        for stem in ("x", name):
            write(tmp_path / name / f"{stem}.{ending}", rows)
    used = Columns.named(score="s", sensitive_features="g")
    for stem in ("x", folder):
        with open_files([f"{folder}/{stem}.{ending}"], threads=1) as table:
            assert table.run(count_table, used).histograms.groups.names == ("c", "d")
            assert [row.as_py() for row in next(iter(table.batches()))[0]["g"]] == ["c", "d"]


def test_a_struct_is_not_looked_into(to_table):
    names = in_role("h.i", "score")
    columns = renamed(names)
    columns["h"] = pa.array([{"i": 0.5}] * N)
    assert summarized(count_table(to_table(columns), **names, n_bins=64)) == expected()
