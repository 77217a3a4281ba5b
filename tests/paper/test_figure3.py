"""Figure 3: a model that is fair at one class rate, on rows with another."""

from __future__ import annotations

import numpy as np
import pytest

from fairtransport.paper import figure3
from fairtransport.paper import splits as shifted_adult
from fairtransport.paper.finding import run_parts
from fairtransport.report.style.figures import figure_bytes


@pytest.fixture
def small(monkeypatch, small_split):
    monkeypatch.setattr(figure3, "adult_by_sex", lambda: small_split)
    monkeypatch.setattr(figure3, "_QUICK_BUDGET", (2_000, 0.05))


def made_up(same=0.0, changed=0.15, male=0.0):
    """Outputs that are the target moved by so much."""
    target = np.linspace(0.1, 0.7, 601)
    moves = {("same", "Female"): same, ("changed", "Female"): changed, ("same", "Male"): 0.0, ("changed", "Male"): male}
    result = {f"{world}-{sex}": target + move for (world, sex), move in moves.items()}
    return {"figure3-seed0": {"target": target, "same-start": np.array(0.2), **result}}


def verdicts(results):
    return [claim.verdict for claim in figure3.assemble(results, quick=True).claims]


def test_the_whole_figure(small):
    finding = figure3.assemble(run_parts(figure3.parts(quick=True)), quick=True)
    assert [claim.verdict for claim in finding.claims[1:3]] == ["agrees", "agrees"]
    axes = finding.figures["figure3"].axes
    assert [axis.get_title(loc="left").partition(" (")[0] for axis in axes] == [
        "Female, .1 in class 1",
        "Male, .3 in class 1",
        "Female, .4 in class 1",
        "Male, .3 in class 1",
    ]
    assert axes[2].get_xlabel() == "Model output (probability of class 1)"
    assert axes[2].get_ylabel() == "Share of people (%)\nin bins of .05"
    assert figure_bytes(finding.figures["figure3"], "png").startswith(b"\x89PNG")
    assert [row[:3] for row in finding.tables["figure3"].rows][2] == ("changed", "Female", 0.4)
    shares = np.array(finding.tables["figure3-histograms"].rows)
    np.testing.assert_allclose(shares[:, 2:].sum(axis=0), 100.0, atol=0.01)


@pytest.mark.parametrize("check", [1, 4])  # before training, and between two records
def test_a_part_can_be_stopped(small, assert_stops, check):
    assert_stops(figure3.parts(quick=True)[0], check)


def test_rows_have_the_rates_asked_for(small_split):
    split = small_split
    sex = split.sensitive_train["sex"]
    rows = shifted_adult.rows_at_rates(split.y_train, sex, {"Female": 0.4}, np.random.default_rng(0))
    assert len(set(rows.tolist())) == len(rows)
    female = sex[rows] == "Female"
    assert split.y_train[rows][female].mean() == pytest.approx(0.4, abs=0.01)
    assert (~female).sum() == (sex == "Male").sum()


def test_claims_that_hold():
    assert verdicts(made_up()) == ["agrees"] * 4


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"same": 0.04}, [0]),
        ({"changed": 0.02}, [1]),
        ({"changed": -0.15}, [2]),
        ({"male": 0.05}, [3]),
    ],
)
def test_claims_that_do_not_hold(change, wrong):
    judged = verdicts(made_up(**change))
    assert [number for number, verdict in enumerate(judged) if verdict == "differs"] == wrong


@pytest.mark.paper
def test_at_full_length():
    finding = figure3.assemble(run_parts(figure3.parts(quick=False), n_jobs=2), quick=False)
    assert [claim.verdict for claim in finding.claims] == ["agrees"] * 4
