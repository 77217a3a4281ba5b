"""Figure 4: continual adjustment while the class rate of women changes."""

from __future__ import annotations

import numpy as np
import pytest

from fairtransport.paper import figure4
from fairtransport.paper.finding import run_parts
from fairtransport.report.style.figures import figure_bytes

ADAPTS_COT, ADAPTS_DOT, JUMP, ALIKE, STABLE, FASTER, FALLING, SMALL_DUALS, EXTREMES = range(9)


@pytest.fixture
def small(monkeypatch, small_split):
    monkeypatch.setattr(figure4, "adult_by_sex", lambda: small_split)
    monkeypatch.setattr(figure4, "_QUICK_SEGMENT", 200)
    figure4._start.cache_clear()
    yield
    figure4._start.cache_clear()


def made_up(
    cot_end=0.015, dot_end=0.015, jump=0.15, cot_noise=0.003, slow_start=30, fall=0.004, before=0.05, extreme=True
):
    """Runs that fall from a start to an end in a straight line, and duals that are straight lines or not."""
    records, rates = 101, figure4.all_rates()
    results = {}
    wave = np.tile([1.0, -1.0], records)[:records]
    for method, end, noise in (("COT", cot_end, cot_noise), ("DOT", dot_end, 0.001)):
        wass1 = np.empty((len(rates), records))
        for segment in range(len(rates)):
            start = jump if segment in figure4.jumps() else 0.2 if segment == 0 else 0.05
            least = end + (fall if segment < 5 else 0.0)
            steps = slow_start if segment == 0 else 10
            down = np.clip(np.arange(records) / steps, 0.0, 1.0)
            wass1[segment] = start + (least - start) * down + noise * wave * (down == 1.0)
        results[f"figure4-{method}-seed0"] = {
            "update": 50.0 * (np.arange(records) + (records - 1) * np.arange(len(rates))[:, None]),
            "wass1": wass1,
            "error": np.full(wass1.shape, 0.2),
            "duals": np.zeros((len(rates), 2, 2, figure4.GRID.size)),
        }
    line = 2.0 * figure4.GRID - 1.0
    duals = results["figure4-COT-seed0"]["duals"]
    # A constant moved from one dual to the other must not count.
    duals[figure4.SHOWN - 1, 1] = before * line + 3.0, -before * line - 3.0
    shape = line if extreme else np.sign(line) * (1.0 - np.abs(line))
    duals[figure4.SHOWN, 0] = 0.4 * shape, -0.4 * shape
    return results


def verdicts(results):
    return [claim.verdict for claim in figure4.assemble(results, quick=True).claims]


def test_the_segments_are_the_original_data_and_the_paper_s_list():
    rates = figure4.all_rates()
    assert len(rates) == 21
    assert rates[:7] == (0.1, 0.2, 0.3, 0.3, 0.4, 0.1, 0.4)
    # The paper's panel (b) shows update 30,000, where .1 becomes .4.
    assert figure4.SHOWN * figure4.SEGMENT == 30_000
    assert figure4.jumps() == [figure4.SHOWN, 14]


def test_the_whole_figure(small):
    finding = figure4.assemble(run_parts(figure4.parts(quick=True)), quick=True)
    left, before, after = finding.figures["figure4"].axes
    assert left.get_xlabel() == "Updates, in thousands"
    assert left.get_ylabel() == "Wasserstein-1 distance to the target\n(Wass1, test rows)"
    assert [text.get_text() for text in left.texts[:7]] == [".1", ".2", ".3", ".3", ".4", ".1", ".4"]
    assert before.get_title(loc="left") == "(b) At update 1,200,\nbefore the change"
    assert after.get_xlabel() == "Model output"
    assert figure_bytes(finding.figures["figure4"], "png").startswith(b"\x89PNG")
    # Five records of each segment: where it begins and every 50 updates.
    trace = finding.tables["figure4"]
    assert len(trace.rows) == 2 * 21 * 5
    assert [row[3] for row in trace.rows[:6]] == [0, 50, 100, 150, 200, 200]
    assert len(finding.tables["figure4-segments"].rows) == 2 * 21
    assert len(finding.tables["figure4-duals"].rows) == 2 * figure4.GRID.size
    assert len(finding.shown["figure4"].rows) == 21
    assert len(finding.claims) == 9


def test_claims_that_hold():
    assert verdicts(made_up()) == ["agrees"] * 9


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"cot_end": 0.031, "dot_end": 0.025}, ADAPTS_COT),
        ({"dot_end": 0.031, "cot_end": 0.025}, ADAPTS_DOT),
        ({"jump": 0.09}, JUMP),
        ({"cot_end": 0.010, "dot_end": 0.022}, ALIKE),
        ({"cot_noise": 0.0005}, STABLE),
        ({"slow_start": 5}, FASTER),
        ({"fall": -0.004}, FALLING),
        ({"before": 0.3}, SMALL_DUALS),
        ({"extreme": False}, EXTREMES),
    ],
)
def test_claims_that_do_not_hold(change, wrong):
    assert verdicts(made_up(**change))[wrong] == "differs"


@pytest.mark.paper
def test_at_full_length():
    finding = figure4.assemble(run_parts(figure4.parts(quick=False), n_jobs=2), quick=False)
    assert [claim.verdict for claim in finding.claims] == ["agrees"] * 9
    rows = [
        dict(zip(finding.tables["figure4-segments"].columns, row, strict=True))
        for row in finding.tables["figure4-segments"].rows
    ]
    # From the third change on every segment ends low, and the changes from .1 to .4 begin high.
    assert max(row["end_worst_seed"] for row in rows if row["segment"] >= 3) <= 0.03
    assert min(row["start"] for row in rows if row["segment"] in (6, 14)) > 0.10
