"""Counterfactuals against structural models whose counterfactuals are known."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from fairtransport.causal import CounterfactualTransport

LINEAR = [("sex", "m"), ("age", "m"), ("sex", "w"), ("age", "w"), ("m", "w"), ("sex", "y"), ("m", "y"), ("w", "y")]


def linear_people(n, seed=0):
    """A linear Gaussian model, in which a counterfactual adds the same to everyone."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    man, age = (sex == "M").astype(float), rng.normal(40, 10, n)
    m = 1 + 0.8 * man + 0.05 * age + rng.normal(size=n)
    w = 2 + 0.5 * man + 1.2 * m + 0.03 * age + 0.7 * rng.normal(size=n)
    y = 0.3 * man + 0.5 * m + 0.4 * w + 0.5 * rng.normal(size=n)
    return {"sex": sex, "age": age, "m": m, "w": w, "y": y}


def standard_errors(table):
    """Standard errors of the effects of the group on m, and on w, of least squares."""
    man = table["sex"] == "M"
    X = np.column_stack([np.ones(man.size), man, table["age"]])
    spread = np.sqrt(np.linalg.inv(X.T @ X)[1, 1])
    return spread, spread * np.sqrt(0.7**2 + 1.2**2)


def error_of(world, quantiles, n=8000):
    """Mean absolute error of women's counterfactuals of m and w."""
    table, truth = world(n)
    transport = CounterfactualTransport(LINEAR[:5], sensitive="sex", quantiles=quantiles).fit(table)
    moved, women = transport.transform(table, to="M"), table["sex"] == "F"
    return transport, [float(np.abs(moved[name] - truth[name])[women].mean()) for name in ("m", "w")]


def linear_world(n):
    table = linear_people(n)
    return table, {"m": table["m"] + 0.8, "w": table["w"] + 0.5 + 1.2 * 0.8}


def world_of_steps(n):
    rng = np.random.default_rng(3)
    sex, age, noise = rng.choice(["F", "M"], n), rng.normal(40, 10, n), rng.normal(size=(2, n))

    def columns(man):
        m = 3 * (age > 43) + man * (age > 35) + 0.5 * noise[0]
        return {"m": m, "w": 2 * (m > 1.5) + 0.5 * man + 0.5 * noise[1]}

    return {"sex": sex, "age": age, **columns(sex == "M")}, columns(np.ones(n))


def test_a_method_is_chosen_for_each_column():
    transport, errors = error_of(linear_world, "auto")
    assert transport.methods_ == {"m": "linear", "w": "linear"}
    assert max(errors) < 0.06
    chosen, errors = error_of(world_of_steps, "auto")
    assert "linear" not in chosen.methods_.values()
    assert np.all(np.array(errors) < 1.05 * np.array(error_of(world_of_steps, "forest")[1]))
    assert clone(transport).quantiles == "auto"


def test_weights_are_copies():
    table = linear_people(600)
    weights = np.random.default_rng(0).integers(0, 3, 600)
    copies = {name: np.repeat(column, weights) for name, column in table.items()}
    weighed, copied = (CounterfactualTransport(LINEAR, sensitive="sex", quantiles="linear") for _ in range(2))
    moved = weighed.fit(table, sample_weight=weights).transform(table, to="M")
    again = copied.fit(copies).transform(table, to="M")
    np.testing.assert_allclose(moved["w"], again["w"], atol=1e-9)


@pytest.mark.parametrize(("quantiles", "spread"), [("linear", 0.06), ("forest", 0.35)])
def test_linear_model_with_closed_form(quantiles, spread):
    table = linear_people(10_000)
    errors = standard_errors(table)
    transport = CounterfactualTransport(LINEAR, sensitive="sex", outcome="y", quantiles=quantiles).fit(table)
    women = table["sex"] == "F"
    moved = transport.transform(table, to="M")
    assert set(moved["sex"]) == {"M"}
    for name, effect, error in (("m", 0.8, errors[0]), ("w", 0.5 + 1.2 * 0.8, errors[1])):
        assert np.mean((moved[name] - table[name])[women]) == pytest.approx(effect, abs=2 * error)
        np.testing.assert_array_equal(moved[name][~women], table[name][~women])
    np.testing.assert_array_equal(moved["age"], table["age"])
    assert np.std((moved["m"] - table["m"])[women]) < spread  # everyone is moved by the same
    # Through w alone: m and the group stay as they are.
    direct = transport.transform(table, to="M", edges=[("sex", "w"), ("w", "y")])
    assert np.mean((direct["w"] - table["w"])[women]) == pytest.approx(0.5, abs=2 * errors[1])
    np.testing.assert_array_equal(direct["m"], table["m"])
    np.testing.assert_array_equal(direct["sex"], table["sex"])
    # Through m, with its effect on w.
    indirect = transport.transform(table, to="M", edges=[("sex", "m"), ("m", "w"), ("m", "y"), ("w", "y")])
    assert np.mean((indirect["w"] - table["w"])[women]) == pytest.approx(1.2 * 0.8, abs=2 * errors[1])


def test_model_that_is_not_linear():
    rng = np.random.default_rng(1)
    n = 10_000
    group = rng.choice([0, 1], n)
    noise = rng.normal(size=n)
    m = np.exp(0.5 * group + 0.5 * rng.normal(size=n))
    w = (1 + group) * m**1.5 + (1 + 0.5 * group) * m * noise
    table = {"group": group, "m": m, "w": w}
    edges = [("group", "m"), ("group", "w"), ("m", "w")]
    moved = CounterfactualTransport(edges, sensitive="group").fit(table).transform(table, to=1)
    some = group == 0
    expected_m = m[some] * np.exp(0.5)
    expected_w = 2 * expected_m**1.5 + 1.5 * expected_m * noise[some]
    assert np.median(np.abs(moved["m"][some] / expected_m - 1)) < 0.03
    error = np.abs(moved["w"][some] - expected_w) / expected_m  # in units of the noise
    assert np.median(error) < 0.25
    # Means within two standard errors of the difference between two samples of that size.
    spread = np.std(expected_w) * np.sqrt(2 / some.sum())
    assert moved["w"][some].mean() == pytest.approx(expected_w.mean(), abs=2 * spread)


def test_levels_by_enumeration():
    rng = np.random.default_rng(2)
    n = 20_000
    group = rng.choice(["a", "b"], n)
    m = (rng.random(n) < np.where(group == "a", 0.3, 0.6)).astype(int)
    shares = {
        ("a", 0): (0.5, 0.3, 0.2),
        ("a", 1): (0.2, 0.3, 0.5),
        ("b", 0): (0.4, 0.4, 0.2),
        ("b", 1): (0.1, 0.3, 0.6),
    }
    w = np.array([rng.choice(3, p=shares[one, int(other)]) for one, other in zip(group, m, strict=True)])
    table = {"group": group, "m": m, "w": w}
    edges = [("group", "m"), ("group", "w"), ("m", "w")]
    transport = CounterfactualTransport(edges, sensitive="group").fit(table)
    moved = transport.transform(table, to="b")
    some = group == "a"
    # m: those with 0 have ranks within 0 and .7, of which .4 stay 0.
    zero = some & (m == 0)
    assert np.mean(moved["m"][zero]) == pytest.approx(0.3 / 0.7, abs=0.03)
    assert np.all(moved["m"][some & (m == 1)] == 1)
    # w, by integrating the increasing coupling over the ranks.
    ranks = (np.arange(20_000) + 0.5) / 20_000
    total = np.zeros(3)
    for old, share in ((0, 0.7), (1, 0.3)):
        for new, chance in ((0, 0.4 / 0.7 if old == 0 else 0.0), (1, 1 - 0.4 / 0.7 if old == 0 else 1.0)):
            values = np.searchsorted(np.cumsum(shares["b", new]), ranks)
            total += share * chance * np.bincount(values, minlength=3) / ranks.size
    observed = np.bincount(moved["w"][some].astype(int), minlength=3) / some.sum()
    np.testing.assert_allclose(observed, total, atol=0.015)
    # Another draw of the ranks of equal values, the same distribution; the same draw, the same table.
    again = transport.transform(table, to="b", draw=1)
    assert np.mean(again["m"] != moved["m"]) > 0.05
    np.testing.assert_array_equal(transport.transform(table, to="b")["w"], moved["w"])


def test_group_without_other_causes_is_a_quantile_map():
    rng = np.random.default_rng(3)
    group = rng.choice([0, 1], 4000)
    value = np.where(group == 1, rng.gamma(2, 2, 4000), rng.normal(0, 1, 4000))
    transport = CounterfactualTransport({"g": ["x"]}, sensitive="g").fit({"g": group, "x": value})
    moved = transport.transform({"g": group, "x": value}, to=1)["x"][group == 0]
    ranks = (np.argsort(np.argsort(value[group == 0])) + 0.5) / (group == 0).sum()
    errors = np.abs(np.quantile(value[group == 1], ranks) - moved)
    assert errors[(ranks > 0.01) & (ranks < 0.99)].max() < 0.25
    assert np.median(errors) < 0.01


def mixed_people(n=3000, seed=4):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    man = sex == "M"
    education = pd.Categorical.from_codes(
        rng.binomial(2, np.where(man, 0.6, 0.4)), ["school", "college", "master"], ordered=True
    )
    job = np.where(rng.random(n) < 0.3 + 0.3 * man, "engineer", rng.choice(["nurse", "clerk"], n))
    hours = rng.poisson(35 + 3 * man + education.codes).astype(float)
    gain = np.where(rng.random(n) < 0.8, 0.0, rng.gamma(2, 1000, n) * (1 + man))
    gain[rng.random(n) < 0.1 + 0.1 * man] = np.nan
    frame = pd.DataFrame({"sex": sex, "education": education, "job": job, "hours": hours.astype(int), "gain": gain})
    return frame.set_index(pd.RangeIndex(7, 7 + n))


MIXED = "digraph { sex -> {education job hours gain}; education -> {job hours gain}; job -> hours; hours -> gain }"


def test_all_kinds_of_columns_keep_their_kind_and_reach_the_other_group():
    frame = mixed_people()
    transport = CounterfactualTransport(MIXED, sensitive="sex").fit(frame)
    moved = transport.transform(frame, to="M")
    assert moved.index.equals(frame.index)
    assert [*moved.dtypes] == [*frame.dtypes]
    women, men = moved[frame["sex"] == "F"], frame[frame["sex"] == "M"]
    for name in ("education", "job"):
        differences = women[name].value_counts(normalize=True) - men[name].value_counts(normalize=True)
        assert differences.abs().max() < 0.05
    assert women["hours"].mean() == pytest.approx(men["hours"].mean(), abs=0.6)
    assert women["gain"].isna().mean() == pytest.approx(men["gain"].isna().mean(), abs=0.04)
    assert (women["gain"] == 0).mean() == pytest.approx((men["gain"] == 0).mean(), abs=0.04)


def test_libraries_of_tables_agree():
    frame = mixed_people(600)
    polars = pl.from_pandas(frame)
    transport = CounterfactualTransport(MIXED, sensitive="sex", quantiles="linear").fit(frame)
    expected = transport.transform(frame, to="F")
    moved = transport.transform(polars, to="F")
    assert moved.schema == polars.schema
    assert moved["job"].to_list() == expected["job"].tolist()
    arrow = transport.transform(polars.to_arrow(), to="F")
    assert arrow["hours"].to_pylist() == expected["hours"].tolist()


def test_cross_fitting_uses_the_same_ranks_and_other_rows():
    table = linear_people(2000, seed=5)
    transport = CounterfactualTransport(LINEAR, sensitive="sex", quantiles="linear", cv=3)
    moved = transport.fit_transform(table, to="M")
    alone = transport.transform(table, to="M")
    assert not np.array_equal(moved["w"], alone["w"])
    assert np.mean(np.abs(moved["w"] - alone["w"])) < 0.1


def test_any_regressor():
    table = linear_people(3000, seed=6)
    regressor = HistGradientBoostingRegressor(max_iter=30, random_state=0)
    moved = CounterfactualTransport(LINEAR, sensitive="sex", quantiles=regressor).fit(table).transform(table, to="M")
    women = table["sex"] == "F"
    assert np.mean((moved["m"] - table["m"])[women]) == pytest.approx(0.8, abs=0.1)


def test_support_names_those_outside_what_was_seen():
    rng = np.random.default_rng(7)
    group = np.repeat([0, 1], 500)
    cause = np.concatenate([rng.uniform(0, 2, 500), rng.uniform(0, 1, 500)])
    table = {"g": group, "c": cause, "x": cause + group + rng.normal(size=1000)}
    transport = CounterfactualTransport([("g", "x"), ("c", "x")], sensitive="g", quantiles="linear").fit(table)
    inside = transport.support(table, to=1)
    np.testing.assert_array_equal(inside, (group == 1) | (cause <= cause[group == 1].max()))


def test_resolving_columns_stay():
    table = linear_people(500, seed=8)
    transport = CounterfactualTransport(LINEAR, sensitive="sex", resolving=["m"], quantiles="linear").fit(table)
    moved = transport.transform(table, to="M")
    np.testing.assert_array_equal(moved["m"], table["m"])
    assert np.mean((moved["w"] - table["w"])[table["sex"] == "F"]) == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graph": [*LINEAR, ("age", "sex")]}, "edge into the sensitive column, from column 'age'"),
        ({"graph": [("sex", "m"), ("m", "z")]}, "no column 'z', which the graph has"),
        ({"graph": [("age", "m"), ("sex", "age"), ("m", "sex")]}, "cycle"),
        ({"unfair_edges": [("sex", "m"), ("m", "w")]}, "'m' is a recanting witness"),
        ({"unfair_edges": [("sex", "q")]}, "which is not in the graph"),
        ({"confounded": [("m", "w")]}, "'m' and 'w' are confounded"),
        ({"confounded": [("q", "w")]}, "confounded names column"),
        ({"resolving": ["q"]}, "The graph has no column 'q'"),
        ({"graph": [("m", "w"), ("sex", "y")], "sensitive": "w", "adjust_for": ["m"]}, "'w' has no effects"),
        ({"sensitive": "age", "graph": [("age", "m")]}, "many different numbers"),
        ({"outcome": "m"}, "has to come last"),
        ({"quantiles": "trees"}, "one of 'auto', 'linear', 'forest', 'boosted'"),
        ({"adjust_for": ["age"]}, "no edge from there to 'sex'"),
    ],
)
def test_what_cannot_be_answered_is_refused(change, message):
    table = linear_people(200)
    settings = {"graph": LINEAR, "sensitive": "sex", "quantiles": "linear", **change}
    with pytest.raises(ValueError, match=message):
        CounterfactualTransport(settings.pop("graph"), **settings).fit(table)


def test_bad_tables():
    table = linear_people(200)
    first, m, sex = np.arange(200) < 3, table["m"], table["sex"].astype(object)
    transport = CounterfactualTransport(LINEAR, sensitive="sex", quantiles="linear").fit(table)
    for column, message in (
        ({"m": np.where(sex == "M", 1.0, m)}, "'m' has one value in a group"),
        ({"sex": np.where(first, None, sex)}, "rows without a group"),
        ({"m": np.where(first, np.inf, m)}, "infinite"),
        ({"sex": np.where(first, "X", sex)}, "has 3 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(transport).fit({**table, **column})
    for rows, to, message in (
        (table, "X", "groups of column 'sex': 'M', 'F'"),
        ({**table, "sex": np.where(first, "X", sex)}, "M", "1 values that the table of fit did not have"),
        ({name: column for name, column in table.items() if name != "w"}, "M", "no column 'w'"),
    ):
        with pytest.raises(ValueError, match=message):
            transport.transform(rows, to=to)
    with pytest.raises(TypeError, match="Cross several into one first"):
        CounterfactualTransport(LINEAR, sensitive=["sex", "age"]).fit(table)


def test_groups_without_overlap_are_refused():
    table = linear_people(300)
    apart = {**table, "age": table["age"] + 1000 * (table["sex"] == "M")}
    with pytest.raises(ValueError, match="no values of 'age' in common, which is a cause of 'm'"):
        CounterfactualTransport(LINEAR, sensitive="sex", quantiles="linear").fit(apart)
    country = np.where(table["sex"] == "M", "a", np.where(np.arange(300) % 2, "b", "c"))
    with pytest.raises(ValueError, match="no values of 'country' in common"):
        CounterfactualTransport([*LINEAR, ("country", "w")], sensitive="sex", quantiles="linear").fit(
            {**table, "country": country}
        )


def test_orders_of_categories_decide_who_takes_whose_place():
    rng = np.random.default_rng(9)
    group, job = np.repeat([0, 1], 3000), rng.choice(["x", "y", "z"], 6000)
    job[3000:] = rng.choice(["x", "y", "z"], 3000, p=[0.2, 0.3, 0.5])
    table = {"g": group, "job": job}
    kept = {}
    for order in (("x", "y", "z"), ("z", "x", "y")):
        transport = CounterfactualTransport({"g": ["job"]}, sensitive="g", orders={"job": order}).fit(table)
        moved = transport.transform(table, to=1)["job"][:3000]
        # The distribution is that of the other group in any order; who moves depends on it.
        np.testing.assert_allclose([np.mean(moved == one) for one in "xyz"], [0.2, 0.3, 0.5], atol=0.03)
        kept[order] = np.mean(moved[job[:3000] == "y"] == "y")
    assert abs(kept["x", "y", "z"] - kept["z", "x", "y"]) > 0.1
    with pytest.raises(ValueError, match="orders lacks 1 of the 3 values"):
        CounterfactualTransport({"g": ["job"]}, sensitive="g", orders={"job": ["x", "y"]}).fit(table)
    with pytest.raises(ValueError, match="The graph has no column 'q'"):
        CounterfactualTransport({"g": ["job"]}, sensitive="g", orders={"q": ["x"]}).fit(table)


def test_causes_of_the_group_are_adjusted_for_when_named():
    table = linear_people(500)
    graph = [*LINEAR, ("age", "sex")]
    transport = CounterfactualTransport(graph, sensitive="sex", adjust_for=["age"], quantiles="linear").fit(table)
    assert np.mean((transport.transform(table, to="M")["m"] - table["m"])[table["sex"] == "F"]) > 0.4
