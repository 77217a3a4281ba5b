import numpy as np
import pytest

from fairtransport.paper import figure2
from fairtransport.paper.finding import VERDICTS, run_parts

WASS1 = {"COT": {5: 0.05, 10: 0.03, 20: 0.03}, "DOT": {5: 0.25, 10: 0.14, 20: 0.08}}
ERROR = {"COT": 0.18, "DOT": 0.20}


def made_up(quick, wass1=None, error=None, start=0.314):
    """Results as the paper has them, unless ``wass1`` or ``error`` says otherwise of a part's settings."""
    results = {}
    for part in figure2.parts(quick=quick):
        settings = part.settings
        usual = WASS1[settings["method"]].get(settings["batch_size"], 0.03)
        level = (wass1 or (lambda _, usual: usual))(settings, usual) + 0.001 * settings["seed"]
        wrong = (error or (lambda _, usual: usual))(settings, ERROR[settings["method"]]) + 0.001 * settings["seed"]
        update = np.arange(0, settings["n_updates"] + 1, settings["every"], dtype=float)
        fall = np.exp(-8 * update / settings["n_updates"])
        results[part.name] = {
            "update": update,
            "wass1": level + (start - level) * fall,
            "error": wrong + (0.1475 - wrong) * fall,
            "final_wass1": np.array(level),
            "final_error": np.array(wrong),
        }
    return results


def test_both_methods_have_the_same_budget_at_every_batch_size():
    budgets = {}
    for part in figure2.parts(quick=False):
        settings = part.settings
        budgets.setdefault(settings["batch_size"], set()).add((settings["n_updates"], settings["parameter_step"]))
    assert sorted(budgets) == [5, 10, 20, 50, 100, 200, 500, 1000]
    assert all(len(budget) == 1 for budget in budgets.values())
    assert {n for batch in (10, 20) for n, _ in budgets[batch]} == {100_000}  # as in the paper
    assert len({part.settings["seed"] for part in figure2.parts(quick=False)}) >= 3


@pytest.mark.parametrize("quick", [False, True])
def test_results_like_the_papers_agree_with_it(quick):
    finding = figure2.assemble(made_up(quick), quick=quick)
    assert {claim.verdict for claim in finding.claims} == {"agrees"}
    assert any("batch 10: DOT .14" in claim.ours and "COT .03" in claim.ours for claim in finding.claims)
    assert all(claim.verdict in VERDICTS and claim.text and claim.ours and claim.reason for claim in finding.claims)


def chosen(settings, **wanted):
    return all(settings[name] == value for name, value in wanted.items())


@pytest.mark.parametrize(
    ("quick", "change", "wrong"),
    [
        (
            True,
            {"wass1": lambda s, usual: 0.2 if chosen(s, method="COT", batch_size=10, seed=1, target="Male") else usual},
            ["Sex only: with small"],
        ),
        (
            False,
            {"wass1": lambda s, usual: 0.06 if chosen(s, method="DOT", batch_size=1000) else usual},
            ["large batches", "large batches"],
        ),
        (
            True,
            {"error": lambda s, usual: 0.38 - usual if chosen(s, batch_size=20) and len(s["columns"]) == 2 else usual},
            ["Race and sex: with batches of 10 and 20"],
        ),
        (True, {"start": 0.4}, ["magenta star"]),
    ],
)
def test_results_unlike_the_papers_are_reported(quick, change, wrong):
    finding = figure2.assemble(made_up(quick, **change), quick=quick)
    differing = [claim.text for claim in finding.claims if claim.verdict == "differs"]
    assert len(differing) == len(wrong)
    assert all(words in text for words, text in zip(wrong, differing, strict=True))


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(figure2, "_BUDGETS", {10: (400, 0.01), 20: (400, 0.01), 500: (100, 0.01)})
    monkeypatch.setattr(figure2, "_QUICK_BATCHES", (10, 20, 500))
    monkeypatch.setattr(figure2, "_QUICK_RECORDS", (4, 2))
    monkeypatch.setattr(figure2, "_QUICK_SEEDS", 1)


def test_parts_run_and_make_a_finding(tiny, tmp_path):
    parts = figure2.parts(quick=True)
    results = run_parts(parts, folder=tmp_path)
    finding = figure2.assemble(results, quick=True)
    (star,) = [claim for claim in finding.claims if "magenta" in claim.text]
    assert star.verdict == "agrees"  # .314 against .313 in the paper, whatever the training
    traced = results["figure2-race-sex-COT-batch10-seed0"]
    np.testing.assert_array_equal(traced["update"], [0, 20, 40, 60, 80])
    assert traced["final_wass1"] < traced["wass1"][0]
    # Sex only with the male outputs as target: logistic regression's men are there but for the split.
    assert 0.15 < results["figure2-sex-DOT-batch10-seed0"]["wass1"][0] < 0.25
    again = run_parts(parts[:1])
    assert again[parts[0].name]["final_wass1"] == results[parts[0].name]["final_wass1"]


@pytest.mark.paper
def test_the_papers_headline_on_adult():
    """At batch 10 COT reaches the target and DOT does not, with higher error; at 1000 both do."""
    chosen = [
        part
        for part in figure2.parts(quick=False)
        if part.settings["seed"] == 0
        and part.settings["target"] == "barycenter"
        and part.settings["batch_size"] in (10, 1000)
    ]
    results = run_parts(chosen, n_jobs=2)
    wass1 = {name.removeprefix("figure2-race-sex-"): float(result["final_wass1"]) for name, result in results.items()}
    error = {name.removeprefix("figure2-race-sex-"): float(result["final_error"]) for name, result in results.items()}
    assert wass1["COT-batch10-seed0"] <= 0.035
    assert wass1["DOT-batch10-seed0"] >= 3 * wass1["COT-batch10-seed0"]
    assert error["COT-batch10-seed0"] <= error["DOT-batch10-seed0"] - 0.010
    assert max(wass1["COT-batch1000-seed0"], wass1["DOT-batch1000-seed0"]) <= 0.035
