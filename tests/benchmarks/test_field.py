"""The field benchmark: its cache, and its curves, areas, ranks and penalties against brute force and scipy."""

import importlib
import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from fairtransport.metrics import (
    equalized_odds_difference,
    error_rate,
    rank_disparity,
    separation_disparity,
    strong_pairwise_disparity,
)

ROOT = Path(__file__).parents[2]


def load(name):
    return importlib.import_module(f"benchmarks.field.{name}")


def make_task(n=400, *, regression=False):
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=n)
    scores = rng.beta(1.0 + groups, 2.0)
    outcome = scores + rng.normal(size=n) if regression else (rng.random(n) < scores).astype(int)
    return SimpleNamespace(
        y_train=outcome, y_test=outcome, groups_train=groups, groups_test=groups, n_groups=3, regression=regression
    ), scores


# ------------------------------------------------------------------------------------------------------- measures


def test_measures_are_those_of_the_library():
    task, scores = make_task()
    known = {"sensitive_features": task.groups_test}
    found = load("runner").measure(task, scores)
    ranks = [np.mean(scores < one) + np.mean(scores == one) / 2 for one in scores]
    expected = {
        "error": error_rate(task.y_test, scores),
        "rank": rank_disparity(scores, **known),
        "spdd": strong_pairwise_disparity(scores, **known),
        "separation": separation_disparity(task.y_test, scores, **known),
        "separation_ranks": separation_disparity(task.y_test, ranks, **known),
        "odds_difference": equalized_odds_difference(task.y_test, scores, **known),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    pairs = itertools.product(scores[task.y_test == 1], scores[task.y_test == 0])
    assert found["auc"] == pytest.approx(np.mean([a > b for a, b in pairs]))
    decided = load("runner").measure(task, None, (scores > 0.5).astype(float))
    assert decided == {name: pytest.approx(found[name]) for name in decided}
    assert "rank" not in decided
    assert load("runner").measure(task, np.array([scores, scores])) == pytest.approx(found)


def test_a_coin_counts_with_its_probability():
    task, _ = make_task()
    found = load("runner").measure(task, None, np.full(400, 0.5))
    assert (found["error"], found["parity_difference"]) == pytest.approx((0.5, 0.0))


def test_numbers_are_measured_in_shares_of_the_variance():
    task, predicted = make_task(regression=True)
    found = load("runner").measure(task, predicted)
    assert found["error"] == pytest.approx(np.mean((predicted - task.y_test) ** 2) / np.var(task.y_test))
    known = {"sensitive_features": task.groups_test}
    assert found["rank"] == pytest.approx(rank_disparity(predicted, **known))
    expected = strong_pairwise_disparity(predicted, **known) / task.y_train.std()
    assert found["spdd"] == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------------- cache


@pytest.fixture
def field(monkeypatch):
    """A cell with two small methods, one of which fails; calls are counted by the settings that are asked for."""
    runner, methods = load("runner"), load("methods")
    task, scores = make_task()
    asked = []

    def good(task, grid):
        yield from ((value, value * scores) for value in grid)

    def bad(task, grid):
        raise ValueError("never")
        yield

    def run_method(task, method, grid, time_limit=60):
        asked.append((method.name, tuple(grid)))
        return original(task, method, grid, time_limit)

    original = runner.run_method
    pair = [methods.Method("good", good, (0.5, 1.0)), methods.Method("bad", bad, (1.0,))]
    monkeypatch.setattr(methods, "methods", lambda cell, folder=None: pair)  # noqa: ARG005
    monkeypatch.setattr(runner, "make_task", lambda *_, **__: task)
    monkeypatch.setattr(runner, "warm_up", lambda *_: None)
    monkeypatch.setattr(runner, "run_method", run_method)
    return SimpleNamespace(runner=runner, cell=methods.Cell("German, age", "blind", "linear", methods.PARITY),
                           methods=pair, asked=asked, Method=methods.Method)  # fmt: skip


def test_only_what_is_missing_runs_again(field, tmp_path, capfd):
    cache = field.runner.Cache(tmp_path)
    assert field.runner.run_cell(field.cell, cache, n_splits=2)
    assert field.asked == [("good", (0.5, 1.0)), ("bad", (1.0,))] * 2
    assert "ValueError" in capfd.readouterr().err
    again = field.runner.Cache(tmp_path)
    assert again.records == cache.records
    assert sum("failed" in record for record in again.records.values()) == 2
    field.runner.run_cell(field.cell, again, n_splits=2)
    assert len(field.asked) == 4
    field.methods[0] = field.Method("good", field.methods[0].run, (0.5, 0.7, 1.0))
    field.runner.run_cell(field.cell, again, n_splits=2)
    assert field.asked[4:] == [("good", (0.7,))] * 2
    assert len(field.runner.Cache(tmp_path).records) == 8


def test_a_line_that_was_cut_off_is_run_again(field, tmp_path):
    cache = field.runner.Cache(tmp_path)
    field.runner.run_cell(field.cell, cache, n_splits=1)
    (path,) = tmp_path.glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-20])
    cut = field.runner.Cache(tmp_path)
    assert len(cut.records) == len(cache.records) - 1
    field.runner.run_cell(field.cell, cut, n_splits=1)
    assert set(field.runner.Cache(tmp_path).records) == set(cache.records)


def test_an_interrupt_leaves_whole_lines(field, tmp_path, monkeypatch):
    original = field.runner.run_method

    def interrupted(task, method, grid, time_limit=60):
        if method.name == "bad":
            raise KeyboardInterrupt
        return original(task, method, grid, time_limit)

    monkeypatch.setattr(field.runner, "run_method", interrupted)
    with pytest.raises(KeyboardInterrupt):
        field.runner.run_cell(field.cell, field.runner.Cache(tmp_path), n_splits=1)
    assert {record["setting"] for record in field.runner.Cache(tmp_path).records.values()} == {0.5, 1.0}


def test_a_method_that_takes_too_long_is_ended(field):
    def forever(task, grid):
        while True:
            pass
        yield

    found = field.runner.run_method(None, field.Method("slow", forever, (1.0,)), (1.0,), time_limit=0.2)
    assert found == {"failed": "over 0.2 s"}


def test_every_cell_comes_once_and_names_what_we_recommend():
    methods = load("methods")
    cells = list(methods.cells())
    assert len(cells) == len(set(cells))
    for cell in cells:
        names = [method.name for method in methods.methods(cell)]
        assert len(names) == len(set(names))
        assert methods.recommended(cell) in names


# ------------------------------------------------------------------------------------------------------- analysis


def test_a_curve_is_read_where_it_reaches():
    curve = load("analysis").Curve.through([0.1, 0.3, 0.2], [0.3, 0.2, 0.4])  # the last point is dominated
    np.testing.assert_allclose(curve.at([0.05, 0.2, 0.5]), [np.nan, 0.25, 0.2])


def test_curves_begin_at_the_constant_prediction():
    """Mixing a model at random with a constant has the error and SPDD of the line between the two."""
    task, scores = make_task(20_000)
    measure, rng = load("runner").measure, np.random.default_rng(0)
    majority = float(task.y_test.mean() > 0.5)
    ends = [measure(task, scores), measure(task, np.full(scores.size, majority))]
    assert (ends[1]["error"], ends[1]["spdd"], ends[1]["rank"]) == pytest.approx((ends[0]["constant"], 0.0, 0.0))
    mixed = measure(task, np.where(rng.random(scores.size) < 0.5, scores, majority))
    for name in ("error", "spdd", "parity_difference"):
        assert mixed[name] == pytest.approx(0.5 * ends[0][name] + 0.5 * ends[1][name], abs=0.015)
    figures = {name: np.array([[ends[0][name]]]) for name in ("spdd", "error", "constant")}
    curve = load("analysis").Points(("0",), figures).curve("spdd")
    assert curve.at(mixed["spdd"]) == pytest.approx(mixed["error"], abs=0.015)


def test_repairs_begin_at_the_base_model():
    """With amount 0 they are the base model, so the line from it to the least amount is open to them."""
    task, scores = make_task()
    task.scores, task.seed = (scores, scores), 0
    task.shares = tuple(np.full((len(scores), 3), 1 / 3) for _ in range(2))
    ours, analysis = load("ours"), load("analysis")
    for method in (ours.repair, ours.blind_amounts):
        ((_, same),) = method(task, (0.0,))
        np.testing.assert_allclose(np.ravel(same), scores, atol=1e-12)
    figures, base = ({name: np.array([[value]]) for name, value in zip(("rank", "error", "constant"), one, strict=True)}
                     for one in ((0.2, 0.3, 0.5), (0.4, 0.1, 0.5)))  # fmt: skip
    curve = analysis.Points(("0.2",), figures, base).curve("rank")
    np.testing.assert_allclose(curve.at([0.1, 0.2, 0.3, 0.5]), [0.4, 0.3, 0.2, 0.1])
    assert set(load("methods").FROM_BASE) == {load("methods").recommended(cell) for cell in load("methods").cells()}


def test_hypervolume_is_the_area_that_points_dominate():
    rng = np.random.default_rng(1)
    steps = (np.arange(200) + 0.5) / 200
    x, y = np.meshgrid(steps, steps)
    for _ in range(20):
        points = rng.integers(0, 260, size=(6, 2)) / 200  # some lie beyond the reference
        covered = np.any([(x > a) & (y > b) for a, b in points], axis=0)
        assert load("analysis").hypervolume(*points.T, (1.0, 1.0)) == pytest.approx(covered.mean())


@pytest.mark.parametrize(("k", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_that_of_demsars_table(k, quantile):
    values = np.random.default_rng(k).normal(size=(8, k))
    ranks, difference, p_value = load("analysis").critical_difference(values)
    assert difference == pytest.approx(quantile * np.sqrt(k * (k + 1) / 48), rel=1e-3)
    brute = [[1 + sum(other > value for other in row) for value in row] for row in values]
    np.testing.assert_allclose(ranks, np.mean(brute, axis=0))
    if k > 2:
        assert p_value == friedmanchisquare(*values.T).pvalue


def test_a_split_that_is_under_way_is_left_out():
    about = {"data": "German, age", "regime": "blind", "base": "linear", "criterion": "demographic_parity"}
    lines = [("base model", 0, 0.0), ("COT", 0, 0.1), ("COT", 0, 1.0), ("base model", 1, 0.0), ("COT", 1, 0.1)]
    records = [
        {**about, "method": method, "split": split, "setting": setting, "error": 0.1 * split, "rank": setting}
        for method, split, setting in lines
    ]
    (points,) = load("analysis").by_cell(records).values()
    assert points["COT"].figures["rank"].tolist() == [[0.1, 1.0]]
    (both,) = load("analysis").by_cell([*records, {**records[-1], "setting": 1.0, "rank": 2.0}]).values()
    assert both["COT"].figures["rank"].tolist() == [[0.1, 1.0], [0.1, 2.0]]


def points_of(disparities, errors):
    arrays = {"rank": np.array(disparities), "error": np.array(errors), "constant": np.full_like(errors, 0.5)}
    return load("analysis").Points(tuple(map(str, range(arrays["rank"].shape[1]))), arrays)


def test_a_constant_prediction_is_no_loss_to_another_one():
    """Sums of five-digit errors differ in the last bit, and so did a peer's constant from that of our curve."""
    analysis = load("analysis")
    figures = {"error": [[0.23927]] * 5, "constant": [[0.23927]] * 5, "rank": [[0.0]] * 5}
    peer = analysis.Points(("10.0",), {name: np.array(values) for name, values in figures.items()})
    own = {"error": [[0.2]] * 5, "constant": [[0.23927]] * 5, "rank": [[0.1]] * 5}
    own = analysis.Points(("1.0",), {name: np.array(values) for name, values in own.items()})
    cell = next(load("methods").cells())
    for excess, is_loss in ((5.6e-17, False), (9e-6, False), (2e-5, True)):
        ((_, *found),) = analysis.compare(own, peer, "rank")
        found[2] = excess
        assert analysis.Gap(cell, "rank", "ours", "peer", "10.0", *found, least=(0.1, 0.2)).is_loss is is_loss


def test_gaps_are_differences_of_curves_with_their_standard_error():
    ours = points_of([[0.1, 0.3], [0.1, 0.3]], [[0.30, 0.20], [0.32, 0.22]])
    peer = points_of([[0.2, 0.05], [0.2, 0.05]], [[0.24, 0.30], [0.22, 0.30]])
    first, second = load("analysis").compare(ours, peer, "rank")
    # Ours at .2 is .25 and .27; the peer has .24 and .22.
    assert first[1:] == pytest.approx((0.2, 0.23, 0.03, np.std([0.01, 0.05], ddof=1) / np.sqrt(2), 2))
    # At .05 ours is half way to the constant: .40 and .41.
    assert second[1:] == pytest.approx((0.05, 0.30, 0.105, 0.005, 2))


def test_a_gap_names_our_least_disparity_where_the_curve_ends_before_it():
    cell = load("methods").Cell("German, age", "blind", "network", "demographic_parity")
    ours = points_of([[0.1, 0.3, 0.01], [0.1, 0.3, 0.01]], [[0.30, 0.20, 0.5], [0.32, 0.22, 0.5]])
    peer = points_of([[0.2, 0.05], [0.2, 0.05]], [[0.24, 0.30], [0.22, 0.30]])
    points = {"base model": ours, "network, transport penalty": ours, "LinearPost": peer}
    first, second = load("analysis").gaps(cell, points, "rank")
    assert first.least == pytest.approx((0.1, 0.31))  # not that of a constant prediction
    assert second.is_interpolated
    assert not first.is_interpolated


def test_volumes_of_the_base_model_and_of_a_perfect_one():
    base = points_of([[0.2], [0.4]], [[0.3], [0.2]])
    perfect = points_of([[0.0], [0.0]], [[0.3], [0.2]])
    useless = points_of([[0.2], [0.4]], [[0.5], [0.5]])
    found = load("analysis").volumes({"base model": base, "perfect": perfect, "useless": useless}, "rank")
    np.testing.assert_allclose(found["perfect"], 1.0)
    np.testing.assert_allclose(found["useless"], 0.0)


# ------------------------------------------------------------------------------------------------------ penalties


def test_penalties_are_their_formulas():
    torch = pytest.importorskip("torch")
    networks = load("networks")
    rng = np.random.default_rng(0)
    logits, codes, labels = rng.normal(size=30), rng.integers(2, size=30), rng.integers(2, size=30)
    scores = 1 / (1 + np.exp(-logits))
    tensors = [torch.tensor(logits), torch.tensor(codes), torch.tensor(labels)]
    means = [scores[codes == code].mean() for code in (0, 1)]
    assert float(networks.mean_difference(2)(*tensors)) == pytest.approx(abs(means[0] - means[1]))
    kernel = np.exp(-(np.subtract.outer(scores, scores) ** 2) / (2 * scores.var(ddof=1)))
    center = np.eye(30) - 1 / 30
    expected = np.trace(kernel @ center @ np.equal.outer(codes, codes) @ center) / 29**2
    assert float(networks.hilbert_schmidt(*tensors)) == pytest.approx(expected, rel=1e-5)
    by_label = networks.by_label(networks.mean_difference(2))
    cells = [[scores[(codes == code) & (labels == label)].mean() for code in (0, 1)] for label in (0, 1)]
    assert float(by_label(*tensors)) == pytest.approx(sum(abs(a - b) for a, b in cells))


def test_an_adversary_learns_what_scores_tell_of_groups():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    codes = torch.arange(400) % 2
    labels, none = torch.zeros(400), torch.randn(400)
    revealing, silent = load("networks").Adversary(2), load("networks").Adversary(2)
    for _ in range(60):
        told, untold = revealing(4.0 * codes - 2.0, codes, labels, learn=True), silent(none, codes, labels, learn=True)
    assert told.item() == pytest.approx(np.log(2), abs=0.05)
    assert abs(untold.item()) < 0.05


# ----------------------------------------------------------------------------------------------------------- page


def test_the_stored_page_is_that_of_the_stored_results():
    page, runner = load("page"), load("runner")
    records = runner.Cache(ROOT / "benchmarks" / "results" / "field").records.values()
    cells = page.comparable(records)
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.partition(page.START)[2].partition(page.END)[0].strip() == page.tables(cells, page.judge(cells)).strip()
