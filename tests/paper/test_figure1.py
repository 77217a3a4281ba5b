"""Figure 1: dual variables of two Gaussians."""

from __future__ import annotations

import numpy as np
import pytest

from fairtransport.paper import figure1
from fairtransport.paper.finding import run_parts
from fairtransport.report.style.figures import figure_bytes


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(figure1, "_QUICK_UPDATES", 400)


def made_up(slope=1.0, sum_to=0.0, bias=0.0):
    """The limit of no regularization: duals -x and x; the values are their bounds."""
    results = {}
    for regularizer, least in figure1._REGULARIZERS.items():
        for constraint in figure1._CONSTRAINTS:
            results[f"figure1-{regularizer}-{constraint}-seed0"] = {
                "x_dual": -slope * figure1._GRID + 0.7,
                "y_dual": slope * figure1._GRID - 0.7 + sum_to,
                "value": np.array(2.0 + 0.2 * least + bias),
            }
    return results


def verdicts(results):
    return [claim.verdict for claim in figure1.assemble(results, quick=True).claims]


def test_the_whole_figure(small):
    finding = figure1.assemble(run_parts(figure1.parts(quick=True)), quick=True)
    assert finding.name == "figure1"
    assert [claim.verdict for claim in finding.claims[:2]] == ["agrees", "agrees"]
    left, center, right = finding.figures["figure1"].axes
    assert left.get_ylabel() == "Share of samples (%) in bins of 0.2"
    assert center.get_ylabel() == "Value of the dual variable"
    assert {axis.get_xlabel() for axis in (left, center, right)} == {"Value of X or Y"}
    # Two distributions with two regularizers, and the line at zero.
    assert len(center.lines) == len(right.lines) == 5
    assert figure_bytes(finding.figures["figure1"], "png").startswith(b"\x89PNG")
    curves = finding.tables["figure1"]
    assert len(curves.rows) == 4 * figure1._GRID.size
    opposite = [row for row in curves.rows if row[1] == "opposite"]
    assert max(abs(row[-1] + row[-2]) for row in opposite) == 0.0
    shares = np.array(finding.tables["figure1-histograms"].rows)
    np.testing.assert_allclose(shares[:, 2:].sum(axis=0), 100.0, atol=0.1)


def test_claims_that_hold():
    assert verdicts(made_up()) == ["agrees", "agrees", "agrees"]


@pytest.mark.parametrize(("change", "claim"), [({"slope": -1.0}, 0), ({"sum_to": 1e-3}, 1), ({"bias": 0.2}, 2)])
def test_claims_that_do_not_hold(change, claim):
    expected = ["agrees"] * 3
    expected[claim] = "differs"
    assert verdicts(made_up(**change)) == expected


@pytest.mark.paper
def test_at_full_length():
    finding = figure1.assemble(run_parts(figure1.parts(quick=False)), quick=False)
    assert [claim.verdict for claim in finding.claims] == ["agrees"] * 3
