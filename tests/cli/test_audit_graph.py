"""``fairtransport audit --graph``: the effects of paths on a model's scores, as the library measures them."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.tabular import TableModel

GRAPH = "digraph { sex -> {hours skill}; age -> hours; hours -> skill; {hours skill} -> hired }"
QUICK = ("--quantiles", "linear", "--refits", "2", "--n-bootstrap", "20", "--n-permutations", "20")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    rng = np.random.default_rng(0)
    man = rng.integers(0, 2, 500)
    age, hours = rng.integers(20, 60, 500), rng.normal(35, 5, 500) + 4 * man
    skill = 0.1 * hours + rng.normal(size=500)
    table = pl.DataFrame(
        {
            "sex": [None if k == 7 else "M" if one else "F" for k, one in enumerate(man.tolist())],
            "age": age,
            "hours": hours.round(2),
            "skill": skill.round(3),
            "hired": (skill + 0.1 * hours + rng.normal(size=500) > 7.2).astype(int),
        }
    )
    table.write_csv(folder / "data.csv")
    table.write_parquet(folder / "data.parquet")
    policy = ft.GroupPolicy(missing="set_aside")
    model = TableModel(LogisticRegression(), label="hired", sensitive_features=["sex"], groups=policy).fit(table)
    ft.save(model, folder / "model.ft")
    (folder / "graph.dot").write_text(GRAPH)
    (folder / "edges.csv").write_text("cause,effect\nsex,hours\nsex,skill\nage,hours\nhours,skill\n")
    return folder


def options(folder, table="data.csv", graph="graph.dot"):
    return ("audit", folder / table, "--graph", folder / graph, "--model", folder / "model.ft", "--sensitive", "sex")


@pytest.mark.parametrize("table", ["data.csv", "data.parquet"])
def test_printed_json_and_page_are_what_the_library_measures(table, folder, tmp_path, run):
    page, out = tmp_path / "page.html", tmp_path / "audit.json"
    unfair = ("--unfair-edge", "sex -> hours", "--unfair-edge", "hours->hired", "--unfair-edge", "hours->skill")
    result = run(
        *options(folder, table), *QUICK, "--label", "hired", "--to", "M", *unfair, "--html", page, "--json", out
    )
    assert result.exit_code == 0, result.output
    rows = pl.read_parquet(folder / "data.parquet").filter(pl.col("sex").is_not_null())
    transport = ft.causal.CounterfactualTransport(GRAPH, sensitive="sex", outcome="hired", quantiles="linear").fit(rows)
    few = {"inference": Inference(n_bootstrap=0, n_permutations=0), "n_orders": 0}
    model = ft.load(folder / "model.ft")
    expected = ft.causal.audit_counterfactual(model, rows, transport, to="M", **few).groups[0].effects
    assert "under this graph, if everyone were M" in result.stdout
    assert f"{expected['total'].mean:+.4f}" in result.stdout
    stored = json.loads(out.read_text())["effects"]
    assert stored["assumption"] == "under this graph"
    assert stored["n_bootstrap"] == 2
    (group,) = stored["groups"]
    for name in ("total", "direct", "through hours", "through skill"):
        assert group["effects"][name]["mean"] == pytest.approx(expected[name].mean, abs=1e-12)
    assert group["effects"]["unfair paths"]["mean"] > 0
    assert ft.Audit.from_json(out).rows == 499  # the other part of the file is an audit of the scores
    text = page.read_text()
    assert "Which paths lead from sex to the score, under this graph" in text
    assert "Effects of paths: F" in text


def test_edges_in_a_file_and_resolving_columns(folder, run):
    result = run(*options(folder, graph="edges.csv"), *QUICK, "--resolving", "hours", "--to", "M", "--json")
    assert result.exit_code == 0, result.output
    (group,) = json.loads(result.stdout)["effects"]["groups"]
    assert group["effects"]["through hours"]["mean"] == 0.0


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (("--graph", "into.dot"), 1, "name it in --adjust-for"),  # an option instead of a parameter
        (("--unfair-edge", "sex"), 64, "a cause and an effect"),
        (("--score", "hours"), 64, "cannot be combined with --score"),
        (("--quantiles", "trees"), 64, "forest or boosted"),
        (("--to", "X"), 1, "--to must name one of the 2 groups"),
        (("--unfair-edge", "age->sex"), 1, "which is not in the graph"),
        (("--sensitive", "age"), 64, "one sensitive column"),
        (("--resolving", "job"), 1, "no column 'job'"),
    ],
)
def test_wrong_options(more, status, message, folder, run, here):
    (here / "into.dot").write_text("digraph { age -> sex -> hours }")
    result = run(*options(folder), *QUICK, *more)
    assert result.exit_code == status, result.output
    assert message in " ".join(result.output.split())
