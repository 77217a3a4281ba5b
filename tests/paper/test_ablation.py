import numpy as np
import pytest

from fairtransport.paper import ablation
from fairtransport.paper.finding import VERDICTS, run_parts


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


@pytest.mark.parametrize(
    ("changed", "where", "verdicts"),
    [
        ({"wass1": 0.06}, lambda s: s["n_fourier_features"] == 200 and s["regularizer"] == "l2", [0, 1, 2]),
        ({"wass1": 0.3}, lambda s: s["n_fourier_features"] < 50, []),
        ({"error": 0.2}, lambda s: s["kernel_variance"] == 1.0, [1]),
        ({"wass1": 0.04}, lambda s: s["regularizer"] == "entropy" and s["opposite_duals"], [2]),
        ({"wass1": 0.025}, lambda _: True, [3]),  # a constraint that does not help
    ],
)
def test_an_effect_differs_from_the_paper(changed, where, verdicts):
    judged = ablation.assemble(made_up(False, lambda s: changed if where(s) else {}), quick=False).claims
    assert [number for number, claim in enumerate(judged) if claim.verdict == "differs"] == verdicts


def test_the_sweep_looks_at_the_second_half_only():
    results = made_up(True)
    for name, result in results.items():
        if "-strength" in name:
            result["wass1"][1 : len(result["wass1"]) // 2] = 3.0
    assert ablation.assemble(results, quick=True).claims[-1].verdict == "agrees"


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
