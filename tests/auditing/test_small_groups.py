"""Audits with groups of few rows: kept, pooled or left out, from rows and from tables, and said so."""

import json

import numpy as np
import polars as pl
import pytest

import fairtransport as ft
from fairtransport import GroupPolicy
from fairtransport.auditing import Inference, audit_histograms
from fairtransport.groups import SMALL_GROUPS
from fairtransport.histograms import count_scores

QUICK = {"inference": Inference(n_bootstrap=40, n_permutations=40, random_state=0)}


def people(seed=0):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(["a", "b", "c", "d"], [200, 150, 12, 8]))
    scores = np.round(rng.beta(2, 3, 370) * (1 - 0.4 * (group == "b")), 2)
    return scores, group, (rng.random(370) < scores).astype(int), rng.choice(["n", "o"], 370)


def by_rows(**options):
    scores, group, y, region = people()
    return ft.audit(scores, y, sensitive_features={"g": group}, strata={"region": region}, **QUICK, **options)


def by_table(**options):
    scores, group, y, region = people()
    table = pl.DataFrame({"s": scores, "g": group, "y": y, "region": region})
    return ft.audit_table(table, score="s", sensitive_features="g", label="y", strata="region", **QUICK, **options)


EITHER = pytest.mark.parametrize("make", [by_rows, by_table])


@EITHER
def test_pool_makes_one_group_of_the_small_ones(make):
    scores, group, y, _ = people()
    pooled = make(groups=ft.GroupPolicy(small="pool"))
    assert [(one.name, one.rows) for one in pooled.groups] == [("a", 200), ("b", 150), (SMALL_GROUPS, 20)]
    renamed = np.where(np.isin(group, ["c", "d"]), "z", group)
    plain = ft.audit(scores, y, sensitive_features=renamed, **QUICK)
    assert pooled.metrics == pytest.approx(plain.metrics, abs=1e-3)
    assert dict(pooled.metrics_all_groups) == pytest.approx(dict(plain.metrics_all_groups), abs=1e-3)
    assert "Pooled as (small groups): 20 rows of 2 groups with fewer than 30 rows each" in str(pooled)
    told = json.loads(pooled.to_json())["settings"]["small_groups"]
    assert told == {
        "policy": "pool", "min_size": 30, "pooled_groups": 2, "pooled_rows": 20,
        "dropped_groups": 0, "dropped_rows": 0,
    }  # fmt: skip


@EITHER
def test_drop_leaves_their_rows_out_of_everything(make):
    scores, group, y, region = people()
    kept = np.isin(group, ["a", "b"])
    dropped = make(groups=ft.GroupPolicy(small="drop"))
    plain = ft.audit(scores[kept], y[kept], sensitive_features=group[kept], strata=region[kept], **QUICK)
    assert [(one.name, one.rows) for one in dropped.groups] == [("a", 200), ("b", 150)]
    assert dropped.rows == 350
    assert dropped.metrics == pytest.approx(plain.metrics, abs=1e-3)
    assert [one.rows for one in dropped.strata] == [one.rows for one in plain.strata]
    assert "Left out: 20 rows of 2 groups with fewer than 30 rows each" in str(dropped)
    assert dropped.settings.small_groups.dropped_rows == 20


def test_rows_and_counts_agree_where_groups_overlap():
    rng = np.random.default_rng(0)
    table = {
        "race": rng.permutation(["B", "W", "X"] * 50 + ["Y"] * 5),
        "sex": rng.permutation(["F", "M"] * 74 + ["O"] * 7),
    }
    scores = np.round(rng.random(155) * 128) / 128
    counted = count_scores(scores, sensitive_features=table, groups=GroupPolicy(crossed=False))
    for policy in ("pool", "drop"):
        rows = ft.audit(scores, sensitive_features=table, groups=ft.GroupPolicy(crossed=False, small=policy), **QUICK)
        counts = audit_histograms(counted, groups=GroupPolicy(small=policy), **QUICK)
        assert [one.name for one in rows.groups] == [one.name for one in counts.groups]
        assert [one.rows for one in rows.groups] == [one.rows for one in counts.groups]
        assert rows.metrics == pytest.approx(counts.metrics, abs=1e-12)
        assert rows.settings.small_groups == counts.settings.small_groups


@EITHER
@pytest.mark.parametrize(("policy", "left"), [("pool", 1), ("drop", 0)])
def test_too_few_groups_left_are_refused(make, policy, left):
    with pytest.raises(ValueError, match=rf"{left} group\(s\) of column 'g' are left of 4.*min_size"):
        make(groups=ft.GroupPolicy(small=policy, min_size=1000))
