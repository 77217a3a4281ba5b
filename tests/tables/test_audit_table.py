"""Audits of tables: the same figures on every engine as from the rows; invalid tables are refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import fairtransport as ft

QUICK = {"n_bootstrap": 50, "n_permutations": 50, "random_state": 0}
RESULTS = {}


def columns_at_random(*, on_grid, n=500):
    rng = np.random.default_rng(1)
    race = rng.choice(["B", "W", "X"], n)
    scores = rng.beta(2, 3, n) * (1 - 0.2 * (race == "B"))
    if on_grid:
        scores = np.round(scores * 256) / 256
    return {
        "s": scores,
        "race": race,
        "y": (rng.random(n) < scores).astype(int),
        "region": rng.choice(["n", "o"], n),
        "w": rng.integers(1, 5, n) / 4,
    }


def both(to_table, columns, *, weighted=False, **options):
    weights = columns["w"] if weighted else None
    exact = ft.audit(
        columns["s"],
        columns["y"],
        sensitive_features={"race": columns["race"]},
        strata=columns["region"],
        sample_weight=weights,
        **options,
        **QUICK,
    )
    found = ft.audit_table(
        to_table(columns),
        score="s",
        sensitive_features="race",
        label="y",
        strata="region",
        weight="w" if weighted else None,
        **options,
        **QUICK,
    )
    return found, exact


@pytest.mark.parametrize("weighted", [False, True])
def test_on_the_grid_it_is_the_audit_of_the_rows(to_table, weighted):
    found, exact = both(to_table, columns_at_random(on_grid=True), weighted=weighted, thresholds=[0.25, 0.5])
    ours, theirs = found.to_dict(), exact.to_dict()
    assert found.settings.exact is False
    assert ours["metrics"] == pytest.approx(theirs["metrics"], abs=1e-12)
    assert np.allclose(found.distances, exact.distances, rtol=0, atol=1e-12)
    for one, other in zip(found.groups, exact.groups, strict=True):
        assert (one.name, one.rows, one.quantiles) == (other.name, other.rows, other.quantiles)
        assert one.mean == pytest.approx(other.mean, abs=1e-12)
        assert one.error.value == pytest.approx(other.error.value, abs=1e-12)
        assert one.auc.value == pytest.approx(other.auc.value, abs=1e-12)
    for one, other in zip(found.thresholds, exact.thresholds, strict=True):
        assert [rate.value for rate in one.rates] == pytest.approx([rate.value for rate in other.rates], abs=1e-12)
        assert one.ratio.value == pytest.approx(other.ratio.value, abs=1e-12)
    for one, other in zip(found.strata, exact.strata, strict=True):
        assert (one.name, one.rows) == (other.name, other.rows)
        assert one.metrics == pytest.approx(other.metrics, abs=1e-12)
    for name, reading in exact.readings.items():
        assert found.readings[name].low == pytest.approx(reading.low, abs=1e-9)
        assert found.readings[name].p_value == reading.p_value


@pytest.mark.parametrize("n_bins", [50, 1 << 14])
def test_off_the_grid_it_is_within_the_stated_resolution(to_table, n_bins):
    found, exact = both(to_table, columns_at_random(on_grid=False), n_bins=n_bins)
    for name, reading in found.readings.items():
        if name != "error_rate":
            assert 0 < reading.resolution <= 3 / n_bins
            assert abs(reading.value - exact.metrics[name]) <= reading.resolution
    assert found.metrics["error_rate"] == exact.metrics["error_rate"]  # 0.5 is a node


@pytest.mark.parametrize("weighted", [False, True])
def test_every_engine_gives_the_same_numbers(to_table, weighted):
    """The whole audit, to 1e-12, beside that of polars; 11 rows are set aside for three reasons."""
    columns = {name: column.tolist() for name, column in columns_at_random(on_grid=False).items()}
    columns["s"][:5], columns["race"][3:9], columns["y"][8:11] = [None] * 5, [None] * 6, [None] * 3
    options = {"score": "s", "sensitive_features": "race", "label": "y", "strata": "region", **QUICK}
    options["weight"] = "w" if weighted else None
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
    columns = columns_at_random(on_grid=True)
    columns["region"] = np.where(columns["race"] == "X", "all", columns["region"])
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
            {},
            r"1 group\(s\) of column 'g'; at least 2 are needed; 1 rows are set aside: no group",
        ),
        ({"w": [0.0, 0.0, 1.0]}, {"weight": "w"}, "Column 'w' is zero in all rows of 1 of 2 groups"),
        ({}, {"confidence": 95}, "confidence must be below 1"),
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
        ft.audit_table(table, score="s", sensitive_features="g", n_bootstrap=3)
