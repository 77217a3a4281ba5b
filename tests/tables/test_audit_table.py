"""Audits of tables: the same figures on every engine as from the rows; invalid tables are refused."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.auditing.errors.regression import REGRESSION_FIGURES
from fairtransport.histograms import DEFAULT_BINS
from fairtransport.strata import make_strata
from fairtransport.tables import count_table

from .conftest import columns_of_scores

QUICK = {"inference": Inference(n_bootstrap=50, n_permutations=50, random_state=0)}
RESULTS = {}


def both(to_table, columns, *, group="race", strata="region", weighted=False, n_bins=DEFAULT_BINS, **options):
    """The audit of a table, and that of its rows."""
    roles = {"strata": strata} if strata else {}
    exact = ft.audit(
        np.asarray(columns["s"]),
        np.asarray(columns["y"]),
        sensitive_features={group: np.asarray(columns[group])},
        sample_weight=columns["w"] if weighted else None,
        **{role: columns[name] for role, name in roles.items()},
        **options,
        **QUICK,
    )
    roles |= {"score": "s", "sensitive_features": group, "label": "y", "weight": "w" if weighted else None}
    return ft.audit_table(to_table(columns), **roles, n_bins=n_bins, **options, **QUICK), exact


@pytest.mark.parametrize("weighted", [False, True])
def test_on_the_grid_it_is_the_audit_of_the_rows(to_table, weighted):
    found, exact = both(to_table, columns_of_scores(500, grid=256), weighted=weighted, thresholds=[0.25, 0.5])
    ours, theirs = found.to_dict(), exact.to_dict()
    assert found.settings.exact is False
    for part in ("metrics", "distances", "groups", "thresholds"):
        assert_same(ours[part], theirs[part])
    assert_same(ours["within"]["strata"], theirs["within"]["strata"])
    for name, reading in exact.readings.items():
        assert found.readings[name].low == pytest.approx(reading.low, abs=1e-9)
        assert found.readings[name].p_value == reading.p_value


@pytest.mark.parametrize("n_bins", [50, 1 << 14])
def test_off_the_grid_it_is_within_the_stated_resolution(to_table, n_bins):
    found, exact = both(to_table, columns_of_scores(500), n_bins=n_bins)
    for name, reading in found.readings.items():
        if name != "error_rate":
            assert 0 < reading.resolution <= 3 / n_bins
            assert abs(reading.value - exact.metrics[name]) <= reading.resolution
    assert found.metrics["error_rate"] == exact.metrics["error_rate"]  # 0.5 is a node


@pytest.mark.parametrize("weighted", [False, True])
def test_every_engine_gives_the_same_numbers(to_table, weighted):
    """The whole audit, to 1e-12, beside that of polars; 11 rows are set aside for three reasons."""
    columns = {name: column.tolist() for name, column in columns_of_scores(500).items()}
    columns["s"][:5], columns["race"][3:9], columns["y"][8:11] = [None] * 5, [None] * 6, [None] * 3
    options = {"score": "s", "sensitive_features": "race", "label": "y", "strata": "region", **QUICK}
    options |= {"weight": "w" if weighted else None, "groups": ft.GroupPolicy(missing="set_aside")}
    found = ft.audit_table(to_table(columns), **options).to_dict()
    beside = RESULTS.setdefault(weighted, ft.audit_table(pl.DataFrame(columns), **options).to_dict())
    assert found["settings"]["set_aside"] == {"no score": 5, "no group": 4, "no label": 2}
    assert_same(found, beside)


def assert_same(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-12, rel=1e-12)
    else:
        assert one == other


def test_strata_that_lack_a_group(to_table):
    """One stratum has all three groups, one has two, one has one and is set aside, as in the audit of the rows."""
    columns = columns_of_scores(500, grid=256)
    columns["region"] = np.where(columns["race"] == "it's", "all", columns["region"])
    columns["region"] = np.where((columns["race"] == "B") & (columns["region"] == "n"), "all", columns["region"])
    columns["region"][np.flatnonzero(columns["race"] == "W")[:20]] = "all"
    found, exact = both(to_table, columns)
    assert [stratum.n_groups for stratum in exact.strata] == [3, 1, 2]
    for one, other in zip(found.strata, exact.strata, strict=True):
        assert (one.name, one.rows, one.n_groups) == (other.name, other.rows, other.n_groups)
        assert one.metrics == pytest.approx(other.metrics, abs=1e-12)
    for name, reading in exact.conditional.items():
        assert found.conditional[name].value == pytest.approx(reading.value, abs=1e-12)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"g": ["a", "a", None]},
            {"groups": ft.GroupPolicy(missing="set_aside")},
            r"1 group\(s\) of column 'g'; at least 2 are needed; 1 rows are set aside: no group",
        ),
        ({"w": [0.0, 0.0, 1.0]}, {"weight": "w"}, "Column 'w' is zero in all rows of 1 of 2 groups"),
        ({}, {"inference": Inference(confidence=95)}, "confidence must be below 1"),
        ({}, {"thresholds": [2.0]}, "thresholds has 1 of 1 values outside"),
    ],
)
def test_what_it_refuses(to_table, columns, options, message):
    table = to_table({"s": [0.1, 0.5, 0.9], "g": ["a", "a", "b"], **columns})
    with pytest.raises(ValueError, match=message):
        ft.audit_table(table, score="s", sensitive_features="g", **options)


def test_options_are_checked_before_the_engine_works():
    def touched(frame):
        raise AssertionError

    table = pl.LazyFrame({"s": [0.5], "g": ["a"]}).map_batches(touched)
    with pytest.raises(ValueError, match="n_bootstrap must be at least 20"):
        ft.audit_table(table, score="s", sensitive_features="g", inference=Inference(n_bootstrap=3))


def stratified_table(n=3000):
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["F", "M"], n), rng.integers(17, 80, n).astype(float)
    age[:20] = np.nan
    income = rng.lognormal(3, 2, n)
    income[-1] = 1e12  # one value far from all others
    return pd.DataFrame(
        {
            "s": rng.random(n).round(3),
            "sex": sex,
            "y": rng.integers(0, 2, n),
            "age": age,
            "income": income,
            "few": age > 40,
        }
    )


def on_duckdb(frame):
    return duckdb.from_df(frame)


@pytest.mark.parametrize("engine", [pd.DataFrame, pl.from_pandas, on_duckdb], ids=["pandas", "polars", "duckdb"])
def test_the_cuts_are_those_of_make_strata(engine):
    frame = stratified_table()
    for column, tolerance in (("age", 0.0), ("income", 0.02)):
        counts = count_table(
            engine(frame), score="s", sensitive_features="sex", strata=[column, "few"], cut_strata=True
        )
        expected = make_strata(frame[[column, "few"]], n_groups=2)
        points = counts.cuts[column]
        assert points == pytest.approx(expected.cuts[0].tolist(), rel=tolerance, abs=1e-12)
        if column == "age":
            found = {name: int(part.rows.sum()) for name, part in counts.strata.items()}
            assert found == {name: rows.size for name, rows in zip(expected.names, expected.rows, strict=True)}


def test_the_audit_of_a_table_is_that_of_its_rows():
    frame = stratified_table()
    options = {"criterion": "equalized_odds", **QUICK}
    columns = {"score": "s", "sensitive_features": "sex", "label": "y", "strata": "age", "n_bins": 1000}
    found = ft.audit_table(frame, **columns, **options)
    rows = ft.audit(frame["s"], frame["y"], sensitive_features=frame["sex"], strata=frame[["age"]], **options)
    assert found.provenance.strata_cuts["age"] == pytest.approx(rows.provenance.strata_cuts["age"])
    assert {one.name for one in found.strata} == {one.name for one in rows.strata}
    for name, reading in rows.conditional.items():
        assert found.conditional[name].value == pytest.approx(reading.value, abs=1e-9)
    assert found.settings.strata == ("age",)
    with pytest.raises(ValueError, match=r"compares people with the same label, so it needs label="):
        ft.audit_table(frame, score="s", sensitive_features="sex", criterion="equalized_odds")
    with pytest.raises(ValueError, match="by compares all people"):
        ft.audit_table(frame, by="few", score="s", sensitive_features="sex", label="y", criterion="equalized_odds")


@pytest.mark.parametrize("kind", ["text", "times as text", "dates", "times"])
def test_dates_are_cut_into_months(to_table, kind):
    n = 600
    columns, days = columns_of_scores(n), np.datetime64("2023-12-15") + np.arange(n) % 100
    months = [str(day)[:7] for day in days]
    texts = [
        None if row == 5 else f"{day}T10:30:00" if kind.startswith("times") else str(day)
        for row, day in enumerate(days)
    ]
    dated = {"text": texts, "times as text": texts, "dates": [None, *days.tolist()[1:]]}
    dated["times"] = pa.array(days.astype("datetime64[us]") + np.timedelta64(3, "h"))
    table = {name: columns[name] for name in ("s", "race")} | {"on": dated[kind]}
    series = ft.audit_table(to_table(table), by="on", score="s", sensitive_features="race", **QUICK)
    assert list(series.audits) == ["2023-12", "2024-01", "2024-02", "2024-03"]
    rows = {month: audit.rows for month, audit in series.audits.items()}
    expected = {month: months.count(month) for month in series.audits}
    missing = {"times": None, "dates": 0}.get(kind, 5)
    if missing is not None:
        expected[months[missing]] -= 1
    assert {month: rows[month] for month in expected} == expected


def table_of_predictions(n=3000):
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], n)
    scores = np.round(rng.standard_t(3, n) + 0.5 * (group == "b"), 4)
    y = scores + rng.normal(size=n)
    scores[0] = 1e9
    return {"s": scores, "y": y, "g": group, "w": rng.integers(1, 4, n) / 2.0}


def both_real(to_table, columns, **options):
    return both(to_table, columns, group="g", strata=None, **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_engine_has_the_figures_of_the_rows(to_table, weighted):
    found, exact = both_real(to_table, table_of_predictions(), weighted=weighted, thresholds=[0.3, "top 10%"])
    assert not found.settings.bounded
    assert found.settings.task == "regression"
    for name in ("rank_disparity", "kolmogorov_smirnov_disparity"):
        assert found.metrics[name] == pytest.approx(exact.metrics[name], abs=1e-3)
    pairs = "strong_pairwise_disparity"
    assert found.metrics[pairs] == pytest.approx(exact.metrics[pairs], rel=1e-5)
    assert [rate.value for rate in found.thresholds[0].rates] == pytest.approx(
        [rate.value for rate in exact.thresholds[0].rates]
    )
    for one, other in zip(found.regression.groups, exact.regression.groups, strict=True):
        for figure in REGRESSION_FIGURES:
            assert one.figures[figure].value == pytest.approx(other.figures[figure].value, rel=1e-6)
            assert one.figures[figure].high == pytest.approx(other.figures[figure].high, rel=1e-4)
            if other.p_values[figure] is not None:  # of all groups but the reference
                assert one.p_values[figure] == pytest.approx(other.p_values[figure], rel=1e-3)
    assert len(found.regression.deciles) == len(exact.regression.deciles)
    for one, other in zip(found.regression.deciles, exact.regression.deciles, strict=True):
        assert one.overall.value == pytest.approx(other.overall.value, rel=1e-3, abs=0.05)


def test_decile_scores_are_counted_exactly(to_table):
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b"], 800)
    scores = np.clip(np.round(rng.normal(5 + (group == "b"), 2)), 1, 10)
    columns = {"s": scores, "g": group, "y": (rng.random(800) < scores / 11).astype(int)}
    found, exact = both_real(to_table, columns)
    assert found.settings.task == "classification"
    assert found.histograms.grid == exact.histograms.grid
    assert found.metrics == pytest.approx(exact.metrics)
    assert found.verdict.sentence == exact.verdict.sentence


def test_rows_without_label_are_set_aside_and_infinite_ones_refused(to_table):
    columns = table_of_predictions(400)
    columns["y"] = [None if index < 3 else value for index, value in enumerate(columns["y"].tolist())]
    audit = ft.audit_table(to_table(columns), score="s", sensitive_features="g", label="y", **QUICK)
    assert audit.settings.set_aside == {"no label": 3}
    assert audit.rows == 397
    columns["y"][5] = float("inf")
    with pytest.raises(ValueError, match="'y' has 1 of 400 infinite labels"):
        ft.audit_table(to_table(columns), score="s", sensitive_features="g", label="y", **QUICK)


def test_equalized_odds_and_pooled_groups():
    columns = table_of_predictions(2000)
    columns["g"] = np.where(np.arange(2000) % 200 == 0, "d", columns["g"])
    found, exact = both_real(pl.DataFrame, columns, criterion="equalized_odds", groups=ft.GroupPolicy(small="pool"))
    assert found.settings.strata == exact.settings.strata == ()
    rank = "rank_disparity"
    assert found.conditional[rank].value == pytest.approx(exact.conditional[rank].value, abs=0.01)
    assert [group.name for group in found.regression.groups] == [group.name for group in found.groups]
    names = [one.name for one in exact.regression.groups]
    for one in found.regression.groups:
        other = exact.regression.groups[names.index(one.name)]
        assert one.figures["mae"].value == pytest.approx(other.figures["mae"].value)


@pytest.mark.parametrize("labels", [("no", "yes"), ("1", "2")])
def test_a_path_is_audited_as_its_rows_with_the_origin(tmp_path, labels):
    columns = columns_of_scores(500)
    table = pd.DataFrame({**columns, "y": np.asarray(labels)[np.asarray(columns["y"], dtype=int)]})
    table.to_csv(tmp_path / "scores.csv", index=False)
    roles = {"score": "s", "sensitive_features": ["race"], "label": "y", "pos_label": labels[1], **QUICK}
    read, path = pd.read_csv(tmp_path / "scores.csv", dtype={"y": str}), tmp_path / "scores.csv"
    for more in ({"strata": "region"}, {"by": "region"}):
        found, rows = ft.audit_table(path, **roles, **more), ft.audit_table(read, **roles, **more)
        found, rows = (getattr(one, "overall", one) for one in (found, rows))
        assert found.metrics == rows.metrics
        assert (found.verdict.sentence, found.provenance.positive) == (rows.verdict.sentence, labels[1])
        assert (found.provenance.files[0].name, found.provenance.rows, found.provenance.seed) == ("scores.csv", 500, 0)
    with ft.tables.open_files(path) as file:
        assert ft.audit_table(file, **roles).metrics == rows.metrics
