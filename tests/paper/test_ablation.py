import json

import numpy as np
import pytest

from fairtransport.paper import ablation
from fairtransport.paper._cached_parts import run_parts
from fairtransport.paper.finding import VERDICTS


def made_up(quick, change=None):
    """Return results without any effect except that free duals fail, unless ``change`` returns another metric."""
    results = {}
    for part in ablation.parts(quick=quick):
        settings = part.settings
        changed = {} if change is None else change(settings)
        metrics = {"wass1": 0.025 if settings["opposite_duals"] else 0.3, "error": 0.18, **changed}
        update = np.arange(0, settings["n_updates"] + 1, settings["every"], dtype=float)
        results[part.name] = {
            "update": update,
            "wass1": np.where(update == 0, 0.314, metrics["wass1"]),
            "error": np.full(update.shape, metrics["error"]),
            "final_wass1": np.array(metrics["wass1"]),
            "final_error": np.array(metrics["error"]),
        }
    return results


def judged(change=None, *, quick=False):
    return [claim.verdict for claim in ablation.assemble(made_up(quick, change), quick=quick).claims]


@pytest.mark.parametrize("quick", [False, True])
def test_parts_have_distinct_names_and_complete_settings(quick):
    parts = ablation.parts(quick=quick)
    assert len({part.name for part in parts}) == len({part.digest for part in parts}) == len(parts)
    needed = {
        *("batch_size", "n_updates", "every", "parameter_step", "seed", "target", "columns", "dual_step", "strength"),
        *("regularizer", "opposite_duals", "n_fourier_features", "kernel_variance"),
    }
    for part in parts:
        assert json.loads(json.dumps(part.settings)) == part.settings
        assert part.settings.keys() >= needed
        assert part.settings["n_updates"] % (2 * part.settings["every"]) == 0


def test_the_grid_is_the_papers():
    seen = {}
    for part in ablation.parts(quick=False):
        for name in ("n_fourier_features", "kernel_variance", "regularizer", "opposite_duals"):
            seen.setdefault(name, set()).add(part.settings[name])
    assert seen == {
        "n_fourier_features": {10, 25, 50, 100, 200},
        "kernel_variance": {0.01, 0.1, 1.0},
        "regularizer": {"l2", "entropy"},
        "opposite_duals": {True, False},
    }


@pytest.mark.parametrize("quick", [False, True])
def test_no_effect_agrees_with_the_paper(quick):
    finding = ablation.assemble(made_up(quick), quick=quick)
    assert [claim.verdict for claim in finding.claims] == ["agrees"] * 4
    assert all(claim.verdict in VERDICTS and claim.text and claim.ours and claim.reason for claim in finding.claims)


def test_an_effect_of_many_features_differs():
    def change(settings):
        return {"wass1": 0.06} if settings["n_fourier_features"] == 200 and settings["regularizer"] == "l2" else {}

    assert judged(change) == ["differs", "differs", "differs", "agrees"]


def test_few_features_may_differ():
    def change(settings):
        return {"wass1": 0.3} if settings["n_fourier_features"] < 50 else {}

    assert judged(change) == ["agrees"] * 4


def test_an_effect_of_the_variance_differs():
    def change(settings):
        return {"error": 0.2} if settings["kernel_variance"] == 1.0 else {}

    assert judged(change) == ["agrees", "differs", "agrees", "agrees"]


def test_an_effect_of_the_regularizer_differs():
    def change(settings):
        return {"wass1": 0.04} if settings["regularizer"] == "entropy" and settings["opposite_duals"] else {}

    assert judged(change) == ["agrees", "agrees", "differs", "agrees"]


def test_a_constraint_that_does_not_help_differs():
    assert judged(lambda _: {"wass1": 0.025}) == ["agrees", "agrees", "agrees", "differs"]


def test_the_sweep_looks_at_the_second_half_only():
    results = made_up(True)
    for name, result in results.items():
        if "-strength" in name:
            result["wass1"][1 : len(result["wass1"]) // 2] = 3.0
    assert ablation.assemble(results, quick=True).claims[-1].verdict == "agrees"


def test_figures_have_axis_labels_and_lines_distinct_without_colour():
    figures = ablation.assemble(made_up(False), quick=False).figures
    axes = np.reshape(figures["ablation"].axes, (4, 2))
    for axis in axes[:, 0]:
        assert "Wass1" in axis.get_ylabel()
    for axis in axes[:, 1]:
        assert "Err-.5" in axis.get_ylabel()
    for axis in axes[-1]:
        assert axis.get_xlabel() == "Number of Fourier features D"
        assert [tick.get_text() for tick in axis.get_xticklabels()] == ["10", "25", "50", "100", "200"]
    titles = [axis.get_title(loc="left") for axis in axes[:, 0]]
    assert len(set(titles)) == 4
    assert len({(line.get_linestyle(), line.get_marker()) for line in axes[0, 0].lines}) == 3
    sweep = figures["ablation-steps"].axes
    assert [axis.get_title(loc="left") for axis in sweep] == [titles[0], titles[2], titles[1], titles[3]]
    assert "strength" in sweep[0].get_ylabel().lower()
    assert "dual step" in sweep[2].get_xlabel().lower()
    assert [text.get_text() for text in sweep[0].texts] == [".025 ✓"] * 12
    assert [text.get_text() for text in sweep[1].texts] == [".300"] * 12


def test_tables_have_the_numbers_behind_the_figures():
    finding = ablation.assemble(made_up(False), quick=False)
    table, steps = finding.tables["ablation"], finding.tables["ablation-steps"]
    assert len(table.rows) == 4 * 5 * 3
    assert len(steps.rows) == 4 * 12
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["regularizer"], row["opposite_duals"], row["seeds"]) == ("l2", True, 3)
    assert row["wass1_mean"] == pytest.approx(0.025)
    assert row["error_max"] == pytest.approx(0.18)
    assert all(len(row) == len(steps.columns) for row in steps.rows)
    (short,) = finding.shown.values()
    assert short.rows[0][-1] == "12 of 12"
    assert all(len(row) == len(short.columns) for row in short.rows)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(ablation, "_QUICK_FEATURES", (10, 50))
    monkeypatch.setattr(ablation, "_QUICK_BUDGET", (100, 0.01))
    monkeypatch.setattr(ablation, "_QUICK_STRENGTHS", (0.1,))
    monkeypatch.setattr(ablation, "_QUICK_RATIOS", (1.0,))


def test_parts_run_and_make_a_finding(tiny, tmp_path):
    parts = ablation.parts(quick=True)
    results = run_parts(parts, folder=tmp_path)
    assert len(results) == 4 * (2 * 3 + 1)
    finals = {float(result["final_wass1"]) for result in results.values()}
    assert len(finals) == len(results)  # every setting reaches the training
    assert max(finals) < 4
    finding = ablation.assemble(results, quick=True)
    assert len(finding.claims) == 4


def test_a_part_can_be_stopped(tiny, assert_stops):
    assert_stops(ablation.parts(quick=True)[0], 1)


@pytest.mark.paper
def test_features_and_variance_hardly_matter_on_adult():
    """L2 with opposite duals: Wass1 (mean over seeds) within .01 for 50 features or more and all variances."""
    chosen = [part for part in ablation.parts(quick=False) if "l2-opposite-features" in part.name]
    chosen = [part for part in chosen if part.settings["n_fourier_features"] >= 50]
    wass1 = {}
    for part, result in zip(chosen, run_parts(chosen, n_jobs=2).values(), strict=True):
        setting = part.settings["n_fourier_features"], part.settings["kernel_variance"]
        wass1.setdefault(setting, []).append(float(result["final_wass1"]))
    assert len(wass1) == 9
    assert np.ptp([np.mean(seeds) for seeds in wass1.values()]) < 0.01
