"""Counts of a table on any engine equal those of NumPy; missing values are counted by reason."""

from decimal import Decimal

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtransport import GroupPolicy
from fairtransport.histograms import count_scores
from fairtransport.tables import count_table, open_table

from .conftest import columns_of_scores

CANARY = "canary-value"


def counted(table, **options):
    """Counts of the scores ``s`` of the groups ``g``, unless said otherwise; rows without a group are set aside."""
    policy = GroupPolicy(missing="set_aside")
    return count_table(table, **{"score": "s", "sensitive_features": "g", "groups": policy, **options})


def with_gaps(columns, **gaps):
    return {
        name: [None if row in gaps.get(name, ()) else value for row, value in enumerate(column.tolist())]
        for name, column in columns.items()
    }


@pytest.mark.parametrize("grouping", ["crossed", "each"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_counts_are_those_of_numpy(to_table, weighted, grouping):
    columns, policy = columns_of_scores(), GroupPolicy(crossed=grouping == "crossed")
    own = {name: columns[name] for name in ("race", "sex")}
    weights = columns["w"] if weighted else None
    options = {"label": "y", "strata": "region", "weight": "w" if weighted else None}
    counts = counted(to_table(columns), sensitive_features=[*own], groups=policy, **options)
    direct = count_scores(columns["s"], columns["y"], sensitive_features=own, sample_weight=weights, groups=policy)
    found = counts.histograms
    assert found.groups.labels == direct.groups.labels
    assert np.array_equal(found.group_rows, direct.group_rows)
    np.testing.assert_allclose(found.by_class, direct.by_class, rtol=1e-14, atol=0)
    np.testing.assert_allclose(found.squares_by_class, direct.squares_by_class, rtol=1e-14, atol=0)
    assert counts.set_aside == {}
    assert list(counts.strata) == ["n", "o"]
    for name, part in counts.strata.items():
        mine = columns["region"] == name
        direct = count_scores(
            columns["s"][mine],
            sensitive_features=direct.groups.encode({key: column[mine] for key, column in own.items()}),
            sample_weight=None if weights is None else weights[mine],
        )
        np.testing.assert_allclose(part.by_group, direct.by_group, rtol=1e-14, atol=0)
        assert np.array_equal(part.group_rows, direct.group_rows)


ROWS = st.tuples(
    st.none() | st.floats(0, 1) | st.just(np.nan),
    st.none() | st.sampled_from(["a", "b", "", "missing"]),
    st.none() | st.booleans(),
)


@given(st.lists(ROWS, min_size=1, max_size=30), st.integers(1, 40))
@pytest.mark.trust
def test_every_row_is_counted_or_set_aside(rows, n_bins):
    scores, groups, labels = (list(column) for column in zip(*rows, strict=True))
    kept = [(s, g, y) for s, g, y in rows if s is not None and s == s and g is not None and y is not None]
    types = {"s": pa.float64(), "g": pa.string(), "y": pa.bool_()}
    columns = zip(types.items(), (scores, groups, labels), strict=True)
    table = pa.table({name: pa.array(column, kind, from_pandas=False) for (name, kind), column in columns})
    for engine in (table, table.to_pandas(), pl.LazyFrame(pl.DataFrame(table))):
        if not kept:
            refused(engine, ValueError, "No row of the table can be counted", label="y", n_bins=n_bins)
            continue
        counts = counted(engine, label="y", n_bins=n_bins)
        known, of_groups, positive = zip(*kept, strict=True)
        direct = count_scores(known, [*map(int, positive)], sensitive_features=of_groups, n_bins=n_bins)
        assert counts.histograms.groups.labels == direct.groups.labels
        assert np.array_equal(counts.histograms.masses, direct.masses)
        assert counts.histograms.rows.sum() + sum(counts.set_aside.values()) == len(rows)


@pytest.mark.parametrize("score_range", [(0.0, 1.0), (300.0, 850.0), (-3.0, 0.5)])
def test_every_engine_computes_the_nodes_of_numpy(to_table, score_range):
    """Nodes, their neighbours among the floats, and numbers between; the ends of the range belong to it."""
    low, high = score_range
    nodes = low + (high - low) * np.arange(101) / 100
    near = np.concatenate(
        [nodes, np.nextafter(nodes, low), np.nextafter(nodes, high), np.random.default_rng(0).uniform(low, high, 200)]
    )
    columns = {"s": near, "g": np.arange(near.size) % 2}
    found = counted(to_table(columns), range=score_range, n_bins=100).histograms
    direct = count_scores(near, sensitive_features=columns["g"], range=score_range, n_bins=100)
    assert np.array_equal(found.by_group, direct.by_group)


@pytest.mark.parametrize("kind", [pa.table, lambda columns: pl.LazyFrame(pl.DataFrame(pa.table(columns)))])
def test_scores_that_are_decimals(kind):
    scores = pa.array([Decimal("0.25"), Decimal("0.50"), None], type=pa.decimal128(5, 2))
    counts = counted(kind({"s": scores, "g": ["a", "b", "b"]}), n_bins=4)
    assert counts.histograms.by_group.tolist() == [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert counts.set_aside == {"no score": 1}


@pytest.mark.parametrize(
    "labels",
    [[0, 1, 1, 0], [False, True, True, False], ["no", "yes", "yes", "no"], [-1, 1, 1, -1], [0.0, 1.0, 1.0, 0.0]],
)
def test_the_larger_label_is_the_positive_one(to_table, labels):
    columns = {"s": [0.0, 0.5, 1.0, 0.5], "g": ["a", "a", "b", "b"], "y": labels}
    masses = counted(to_table(columns), label="y", n_bins=2).histograms.masses
    assert masses.tolist() == [[[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]]]
    turned = counted(to_table(columns), pos_label=labels[0], label="y", n_bins=2).histograms
    assert turned.masses[0].tolist() == [[0, 1, 0], [0, 0, 1]]


def test_what_is_missing_is_counted_by_reason(to_table):
    """Each row once, under the first reason: score, weight, group, label. Missing strata are a stratum."""
    columns = with_gaps(columns_of_scores(), s=(0, 1, 2), w=(2, 3), race=(0, 4, 5), sex=(5, 6), y=(6, 7), region=(8,))
    options = {"sensitive_features": ["race", "sex"], "label": "y", "strata": "region", "weight": "w"}
    counts = counted(to_table(columns), **options)
    assert counts.set_aside == {"no score": 3, "no weight": 1, "no group": 3, "no label": 1}
    assert counts.histograms.rows.sum() == 400 - 8
    assert list(counts.strata) == ["n", "o", "missing"]
    assert counts.strata["missing"].rows.sum() == 1
    assert sum(part.rows.sum() for part in counts.strata.values()) == 400 - 8


def test_nan_is_missing_too(to_table):
    columns = {"s": [0.0, np.nan, 1.0, 0.5], "g": [1.0, 1.0, 2.0, np.nan], "w": [1.0, 1.0, 1.0, 1.0]}
    assert counted(to_table(columns), weight="w").set_aside == {"no score": 1, "no group": 1}
    weighted = counted(to_table({**columns, "w": [1.0, 1.0, np.nan, 1.0]}), weight="w")
    assert weighted.set_aside == {"no score": 1, "no weight": 1, "no group": 1}


def test_missing_groups_may_be_a_group(to_table):
    columns = {"s": [0.0, 1.0, 1.0], "g": ["a", "b", None]}
    refused(to_table(columns), ValueError, "sensitive_features has missing values in 1 row of column 'g'")
    both = {**columns, "h": ["a", "b", "b"]}
    with pytest.raises(ValueError, match=r"missing values in 1 row of column 'g'\."):
        count_table(to_table(both), score="s", sensitive_features=["h", "g"])
    counts = counted(to_table(columns), groups=GroupPolicy(missing="group"), n_bins=1)
    assert counts.set_aside == {}
    assert counts.histograms.groups.labels == ("a", "b", None)
    assert counts.histograms.by_group.tolist() == [[1, 0], [0, 1], [0, 1]]


def refused(table, error, message, **options):
    with pytest.raises(error, match=message) as caught:
        count_table(table, **{"score": "s", "sensitive_features": "g", **options})
    assert CANARY not in str(caught.value)
    return str(caught.value)


def test_scores_outside_need_a_range(to_table):
    columns = {"s": [0.5, 1.5, -0.25, np.inf, None, np.nan], "g": ["a", "b", CANARY, "a", "b", "a"]}
    refused(
        to_table(columns), ValueError, r"'s' has 3 of 6 values outside \[0, 1\]. Give the range .* range=\(low, high\)"
    )
    columns["s"][3] = 1.0
    assert counted(to_table(columns), range=(-1, 2)).histograms.rows.sum() == 4


REFUSED = [
    ({"w": [-1.0, np.inf, 1.0]}, {"weight": "w"}, ValueError, "'w' has 2 of 3 values that are negative or infinite"),
    ({"s": ["0.5", CANARY, "1"]}, {}, TypeError, "Column 's' contains .*, not numbers"),
    ({"s": [True, False, True]}, {}, TypeError, "Column 's' contains .*, not numbers"),
    ({"s": pa.array([], pa.float64()), "g": pa.array([], pa.string())}, {}, ValueError, "The table has no rows"),
    (
        {"s": pa.array([None, 0.5, None], pa.float64()), "g": pa.array(["a", None, "b"], pa.string())},
        {},
        ValueError,
        "No row of the table can be counted: 2 with no score, 1 with no group",
    ),
    ({"y": ["u", CANARY, "v"]}, {"label": "y"}, ValueError, "'y' has at least 3 different labels; two are needed"),
    ({"y": ["u"] * 3}, {"label": "y"}, ValueError, "'y' has one label only"),
    (
        {"y": [CANARY, "u", "u"]},
        {"label": "y", "pos_label": "w"},
        ValueError,
        "Column 'y' has two labels, and pos_label is neither of them",
    ),
]


@pytest.mark.parametrize(("columns", "options", "error", "message"), REFUSED)
def test_tables_that_are_refused(to_table, columns, options, error, message):
    refused(to_table({"s": [0.5] * 3, "g": ["a", "b", "b"], **columns}), error, message, **options)


def test_no_such_column_shows_close_names(to_table):
    table = to_table({"score_2024": [0.5], "Race": ["a"], "y": [0]})
    assert "close to it: 'score_2024'" in refused(table, ValueError, "no column 'scores_2024'", score="scores_2024")
    assert "'Race'" in refused(table, ValueError, "no column 'race'", score="score_2024", sensitive_features="race")
    message = refused(table, ValueError, "no column 'zzz'", score="score_2024", sensitive_features="Race", label="zzz")
    assert "it has 'score_2024', 'Race', 'y'." in message


def test_an_identifier_is_stopped_early(to_table):
    """100,000 groups: refused with their number, from the first rows, before the group-by; on Dask, of one part."""
    n = 100_000
    table = to_table({"s": np.full(n, 0.5), "g": np.arange(n), "h": np.arange(n) % 150, "i": np.arange(n) % 151})
    n_seen = 33334 if nw.from_native(table).implementation.is_dask() else n
    refused(table, ValueError, f"sensitive_features has at least {n_seen} groups in column 'g'; max_groups is 1000")
    refused(table, ValueError, f"strata has at least {n_seen} strata in column 'g'", sensitive_features="h", strata="g")
    refused(table, ValueError, "at least 22650 groups in columns 'h', 'i'", sensitive_features=["h", "i"])
    refused(table, ValueError, f"'g' has at least {n_seen} different labels", sensitive_features="h", label="g")


def test_the_limit_is_exact(to_table):
    """Missing values are no groups, nulls or NaN, unless they are said to be one."""
    columns = {"s": np.full(12, 0.5), "g": [*map(str, range(11)), None], "h": ["x"] * 12, "f": [*range(11), np.nan]}
    table = to_table(columns)
    at_least = "sensitive_features has at least 11 groups in column"
    for sensitive in ("g", ["g", "h"], "f"):
        refused(table, ValueError, at_least, sensitive_features=sensitive, groups=GroupPolicy(max_groups=10))
        policy = GroupPolicy(missing="set_aside", max_groups=11)
        assert len(counted(table, sensitive_features=sensitive, groups=policy).histograms.groups) == 11
    policy = GroupPolicy(missing="group", max_groups=11)
    refused(table, ValueError, "sensitive_features has 12 groups in column 'g'; max", groups=policy)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"score": 3}, TypeError, "score must be the name of a column; got a int"),
        ({"sensitive_features": []}, ValueError, "sensitive_features must name at least one column"),
        ({"sensitive_features": ["g", "g"]}, ValueError, "each once"),
        ({"sensitive_features": {"g"}}, TypeError, "sensitive_features must be the name of a column or a list"),
        ({"strata": [1]}, TypeError, "strata must be the name"),
        ({"sensitive_features": "l"}, TypeError, "'l' contains List: lists and structs"),
        ({"groups": "each"}, TypeError, "groups must be a GroupPolicy"),
        ({"range": (1, 0)}, ValueError, "the lower one first"),
    ],
)
def test_options_that_are_refused(options, error, message):
    refused(pl.DataFrame({"s": [0.5], "g": ["a"], "l": [["a"]]}), error, message, **options)


@pytest.mark.parametrize("frame", [np.zeros((3, 2)), {"s": [0.5]}, pl.Series([0.5]), "scores.csv"])
def test_what_is_no_table(frame):
    with pytest.raises(TypeError, match=r"frame must be a table of .*; got a .* fairtransport.audit"):
        open_table(frame)


def test_rows_stay_on_the_engine():
    """What is collected has at most one row for each combination of group and bin."""
    n = 50_000
    rng = np.random.default_rng(0)
    heights = []

    def look(frame):
        heights.append(frame.height)
        return frame

    table = pl.LazyFrame({"s": rng.random(n), "g": rng.integers(0, 3, n)})
    collect = pl.LazyFrame.collect

    def spy(self, *args, **kwargs):
        return look(collect(self, *args, **kwargs))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.LazyFrame, "collect", spy)
        count_table(table, score="s", sensitive_features="g", n_bins=100)
    assert len(heights) >= 2
    assert max(heights) <= 3 * 101


def test_categories_are_groups_as_text_is():
    columns = {"s": [0.0, 0.5, 1.0], "g": ["b", "a", "b"]}
    text = count_table(pl.DataFrame(columns), score="s", sensitive_features="g", n_bins=2).histograms
    for table in (
        pl.DataFrame(columns).with_columns(pl.col("g").cast(pl.Categorical)),
        pl.LazyFrame(columns).with_columns(pl.col("g").cast(pl.Enum(["c", "b", "a"]))),
        pl.DataFrame(columns).to_pandas().astype({"g": "category"}),
        pa.table({**columns, "g": pa.array(columns["g"]).dictionary_encode()}),
    ):
        found = count_table(table, score="s", sensitive_features="g", n_bins=2).histograms
        assert found.groups.labels == text.groups.labels == ("a", "b")
        assert np.array_equal(found.masses, text.masses)
