"""Effects of paths against linear models, where they are known and add up."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairtransport.auditing import Inference
from fairtransport.causal import CounterfactualTransport, audit_counterfactual, edge_sensitivity

FEW = {"inference": Inference(n_bootstrap=0, n_permutations=0), "n_orders": 0}
GRAPH = [("sex", "m"), ("age", "m"), ("sex", "w"), ("age", "w"), ("m", "w")]


def people(n, seed=0, younger=2.0):
    rng = np.random.default_rng(seed)
    man = rng.integers(0, 2, n).astype(float)
    age = rng.normal(40, 10, n) - younger * (1 - man)  # a difference that sex does not cause, under the graph
    m = 1 + 0.8 * man + 0.05 * age + rng.normal(size=n)
    w = 2 + 0.5 * man + 1.2 * m + 0.03 * age + 0.7 * rng.normal(size=n)
    return pd.DataFrame({"sex": man.astype(int), "age": age, "m": m, "w": w})


def score(table):
    return 0.3 * table["sex"] + 0.5 * table["m"] + 0.4 * table["w"] + 0.01 * table["age"]


TRUE = {"direct": 0.3, "through m": 0.8 * (0.5 + 0.4 * 1.2), "through w": 0.5 * 0.4}


@pytest.mark.parametrize("quantiles", ["linear", "forest"])
def test_effects_of_a_linear_model_are_the_analytic_ones_and_add_up(quantiles):
    table = people(10_000)
    transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles=quantiles)
    n_bootstrap = 8 if quantiles == "linear" else 0
    repeats = {"inference": Inference(n_bootstrap=n_bootstrap, n_permutations=0, random_state=0), "n_orders": 0}
    audit = audit_counterfactual(score, table, transport, to=1, threshold=None, **repeats)
    (group,) = audit.groups
    for name, effect in TRUE.items():
        assert group.effects[name].mean == pytest.approx(effect, abs=0.04)  # 2 standard errors of m's effect are .04
    assert group.effects["total"].mean == pytest.approx(sum(TRUE.values()), abs=0.05)
    assert abs(group.interaction) < 0.01
    # The rest of the gap is that of age, with its effects on m and w.
    assert group.not_caused == pytest.approx(2 * (0.01 + 0.05 * 0.98 + 0.03 * 0.4), abs=0.05)
    assert group.effects["direct"].distance == pytest.approx(0.3)
    assert group.support > 0.98
    if n_bootstrap:
        for name, effect in TRUE.items():
            low, high = group.effects[name].intervals["mean"]
            assert low - 0.02 <= effect <= high + 0.02
        assert "through m" in str(audit)
        assert len(audit.to_frame()) == 4 * 4


@pytest.mark.trust
def test_intervals_cover_the_true_effect():
    covered = 0
    for seed in range(10):
        table = people(400, seed=seed)
        transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles="linear")
        audit = audit_counterfactual(
            score,
            table,
            transport,
            to=1,
            threshold=None,
            inference=Inference(confidence=0.9, n_bootstrap=20, n_permutations=0, random_state=0),
            n_orders=0,
        )
        low, high = audit.groups[0].effects["total"].intervals["mean"]
        covered += low <= sum(TRUE.values()) <= high
    assert covered >= 6  # of 10; 90 % are expected


def test_models_of_scikit_learn_and_rates_at_a_threshold():
    table = people(2000)
    hired = (score(table) > 4.4).astype(int)
    blind = LogisticRegression(max_iter=500).fit(table[["age", "m", "w"]], hired)
    transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles="linear").fit(table)
    audit = audit_counterfactual(blind, table, transport, to=1, **FEW)
    effects = audit.groups[0].effects
    assert effects["direct"].mean == 0.0  # the model does not see it
    moved = transport.transform(table, to=1)
    before, after = (blind.predict(one[["age", "m", "w"]])[table["sex"] == 0] for one in (table, moved))
    assert effects["total"].rate == pytest.approx(after.mean() - before.mean())
    regressor = LinearRegression().fit(table[["sex", "m"]], score(table))
    linear = audit_counterfactual(regressor, table, transport, to=1, **FEW, threshold=None)
    assert linear.groups[0].effects["direct"].mean == pytest.approx(regressor.coef_[0])


def test_paths_of_the_user_and_several_groups():
    table = people(1500)
    table["sex"] = np.where(np.arange(1500) < 300, "x", np.where(table["sex"] == 1, "m", "f"))
    edges = [("sex", "w")]
    transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles="linear", unfair_edges=edges)
    audit = audit_counterfactual(lambda rows: rows["w"], table, transport, **FEW, threshold=None, paths={"mine": edges})
    assert audit.to in {"m", "f"}  # the larger ones
    assert len(audit.groups) == 2
    for group in audit.groups:
        assert group.effects["mine"].mean == group.effects["unfair paths"].mean
        assert group.effects["mine"].mean == pytest.approx(group.effects["through w"].mean)


def test_noise_floor_is_what_a_table_without_effects_shows():
    table = people(1500, younger=0.0)
    table["m"] -= 0.8 * table["sex"]  # now sex has no effect on m, and .5 - .96 on w
    transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles="linear")
    few = {"inference": Inference(n_bootstrap=0, n_permutations=12, random_state=0), "n_orders": 0, "threshold": None}
    found = audit_counterfactual(score, table, transport, to=1, **few).groups[0].effects
    spread = 0.98 * np.sqrt(1 / 750 + 1 / 750)  # standard deviation of the effect through m where there is none
    assert found["through m"].floors["mean"] == pytest.approx(spread * np.sqrt(2 / np.pi), rel=0.6)
    assert abs(found["through m"].mean) < 4 * found["through m"].floors["mean"]
    assert found["total"].mean > 10 * found["total"].floors["mean"] > 0
    assert found["direct"].floors["mean"] == 0.0  # nothing is estimated
    assert found["through m"].floors["distance"] > 0


def test_orders_of_categories_change_effects_that_are_not_identified():
    rng = np.random.default_rng(3)
    sex, job = rng.integers(0, 2, 2000), rng.choice(["a", "b", "c", "d"], 2000)
    job[sex == 1] = rng.choice(["a", "b", "c", "d"], int(sex.sum()), p=[0.1, 0.2, 0.3, 0.4])
    pay = np.select([job == "a", job == "b", job == "c"], [3.0, 0.0, 2.0], 1.0) + rng.normal(size=2000)
    table = pd.DataFrame({"sex": sex, "job": job, "pay": pay})
    edges = [("sex", "job"), ("sex", "pay"), ("job", "pay")]
    transport = CounterfactualTransport(edges, sensitive="sex", quantiles="linear")
    few = {"inference": Inference(n_bootstrap=0, n_permutations=0, random_state=0), "threshold": None}
    effect = audit_counterfactual(lambda rows: rows["pay"], table, transport, to=1, n_orders=4, **few)
    low, high = effect.groups[0].effects["total"].order_range
    assert low < high
    assert low <= effect.groups[0].effects["total"].mean <= high
    # Without categories there is nothing to reorder, and without ties nothing to draw.
    numbers = audit_counterfactual(score, people(300), CounterfactualTransport(GRAPH, sensitive="sex",
                                   quantiles="linear"), to=1, n_orders=1, **few)  # fmt: skip
    low, high = numbers.groups[0].effects["total"].order_range
    assert high - low < 1e-12


def test_sensitivity_to_one_edge():
    table = people(600)
    transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles="linear")
    found = edge_sensitivity(score, table, transport, to=1, threshold=None)
    assert {(one.edge, one.change) for one in found.variants} == {
        *((edge, "removed") for edge in GRAPH), (("sex", "age"), "added"),
    }  # fmt: skip
    total = {one.edge: one.audit.groups[0].effects["total"].mean for one in found.variants}
    base = found.audit.groups[0].effects["total"].mean
    # Age differs by 2 years, which is no effect of sex under the graph, and one with the edge sex -> age.
    assert total["sex", "age"] - base == pytest.approx(found.audit.groups[0].not_caused, abs=0.05)
    assert total["sex", "w"] < base
    low, high = found.range()
    assert low <= base <= high
    assert "with sex -> age" in str(found)
    assert set(found.to_frame()["change"]) == {"as it is", "added", "removed"}
    only = edge_sensitivity(score, table, transport, to=1, threshold=None, edges=[("sex", "m")])
    assert len(only.variants) == 1
    chain = CounterfactualTransport([("sex", "m"), ("age", "m")], sensitive="sex", quantiles="linear")
    gone = edge_sensitivity(score, table, chain, to=1, threshold=None, edges=[("sex", "m")])
    assert gone.variants[0].audit is None  # sex has no effects any more
    assert "no answer" in str(gone)


def test_bad_input():
    table = people(200)
    transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles="linear")
    with pytest.raises(TypeError, match="a function from a table to scores"):
        audit_counterfactual(3, table, transport)
    with pytest.raises(ValueError, match="which is not in the graph"):
        audit_counterfactual(score, table, transport, paths={"mine": [("m", "age")]})
    model = LinearRegression().fit(table[["m"]], score(table))
    with pytest.raises(ValueError, match="no score for 2 rows"):
        audit_counterfactual(lambda rows: np.where(rows["m"] > np.sort(rows["m"])[-3], np.nan, 1.0), table, transport)
    with pytest.raises(TypeError, match="takes a data frame"):
        audit_counterfactual(model, dict(table), transport)


def test_the_graph_is_drawn_with_its_effects():
    table = people(300)
    transport = CounterfactualTransport(GRAPH, sensitive="sex", quantiles="linear")
    audit = audit_counterfactual(score, table, transport, to=1, threshold=None, **FEW)
    display = audit.plot()
    assert set(display.positions_) == {"sex", "m", "w", "score"}
    texts = {text.get_text() for text in display.ax_.texts}
    effect, gap = audit.groups[0].effects["through m"].mean, audit.groups[0].gap
    assert f"{effect:+.3f} ({effect / gap:.0%})" in texts
    with pytest.raises(ValueError, match="one of the groups of the audit"):
        audit.plot(group=7)
