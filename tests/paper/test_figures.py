"""The figures of Table 1 at full length, against the bars that the methods were built to reach (minutes).

Wass1 is to the target fixed at logistic regression's scores of the test rows.
"""

import pytest

pytestmark = [
    pytest.mark.paper,
    pytest.mark.filterwarnings("ignore:Parity cost most"),
    pytest.mark.filterwarnings("ignore:Scores were squeezed"),
]

# Method -> the most that Err-.5, Wass1, SDD and SPDD may be on Adult, mean of five seeds. The paper has .170 .025
# .017 .043 for DPP, .175 .027 .023 .054 for DOT and .175 .023 .020 .044 for COT, from features for which LR errs
# on .142; ours errs on .1475.
ADULT = {
    "DPP": (0.180, 0.020, 0.020, 0.045),
    "DPP (W2)": (0.1725, None, None, 0.055),
    "DOT": (0.186, 0.030, 0.028, 0.065),
    "COT (paper)": (0.186, 0.030, 0.028, 0.065),
    "COT (anchor)": (0.178, 0.032, 0.030, 0.065),
}
METRICS = ("Err-.5", "Wass1", "SDD", "SPDD")


@pytest.fixture(scope="module")
def adult(run_table1):
    return run_table1("Adult")


@pytest.fixture(scope="module")
def german(run_table1):
    return run_table1("German")


@pytest.fixture(scope="module")
def communities(run_table1):
    return run_table1("Communities (crossed)", "Communities (each)")


@pytest.mark.parametrize(
    ("method", "metric", "most"),
    [
        (method, metric, most)
        for method, bars in ADULT.items()
        for metric, most in zip(METRICS, bars, strict=True)
        if most is not None
    ],
)
def test_adult(adult, method, metric, most):
    assert adult.value("Adult", method, metric).mean <= most


@pytest.mark.parametrize("metric", METRICS)
def test_adult_lr_is_the_paper_s(adult, metric):
    row = adult.value("Adult", "LR", metric)
    # The paper does not say how it encodes the features: errors differ by half a point.
    assert row.mean == pytest.approx(row.published, abs=0.006)


def test_a_better_encoding_of_adult_beats_the_paper_s_errors(run_table1):
    table = run_table1("Adult (binned)", n_seeds=1)
    for method in ("LR", "DPP", "COT (anchor)"):
        row = table.value("Adult (binned)", method, "Err-.5")
        assert row.mean < row.published
    assert table.value("Adult (binned)", "DPP", "SPDD").mean <= 0.045
    assert table.value("Adult (binned)", "COT (anchor)", "SPDD").mean <= 0.065


def test_german_costs_no_more_than_a_point(german):
    lr, cot = (german.value("German", method, "Err-.5").mean for method in ("LR", "COT (anchor)"))
    assert cot <= lr + 0.010


@pytest.mark.parametrize("method", ["DOT", "COT (paper)", "COT (anchor)"])
def test_german_shows_no_more_than_chance(german, method):
    assert german.value("German", method, "Wass1").mean <= 0.046
    assert german.value("German", method, "SPDD").mean <= 0.046
    row = german.value("German", method, "SPDD")
    assert row.mean <= 1.15 * row.floor


def test_communities_with_crossed_groups(communities):
    name = "Communities (crossed)"
    assert communities.value(name, "COT (anchor)", "Err-.5").mean <= 0.30
    repaired = communities.value(name, "DPP", "SPDD").mean
    assert communities.value(name, "COT (anchor)", "SPDD").mean <= 1.1 * repaired


def test_communities_with_overlapping_groups_beats_the_paper(communities):
    # Here the published figures of the fair methods are within reach: with crossed groups chance alone shows more.
    for metric in METRICS:
        row = communities.value("Communities (each)", "COT (anchor)", metric)
        assert row.mean < row.published
