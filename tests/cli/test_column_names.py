"""Commands address columns literally: files with nasty names give the results of the same files with tame names."""

import json

import numpy as np
import polars as pl
import pytest
from tests.worlds import write_table as write

pytestmark = pytest.mark.trust

ROLES = ("label", "group", "first", "second", "score", "strata", "weight")
NAMES = [
    ("^h$", "*", "h.i", "`h`", "COLUMNS(*)", '"', "h'; --"),
    ("c0", "g0", "label", "weights", "node", "n0", "u0"),
    ("h i", "🎈", "\\h", "{h}", "h;i", "?", "-1"),
    ("^.*$", "select", "#1", "$1", "%s", "H", "1.5"),
]


def rows():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 400)
    first = np.round(rng.normal(size=400) + (group == "a"), 3)
    second = np.round(rng.normal(size=400), 3)
    label = np.where(first + second + rng.normal(size=400) > 0.5, "yes", "no")
    score = np.round(1 / (1 + np.exp(-first - second)), 3)
    strata, weight = rng.choice(["n", "o"], 400), rng.integers(1, 4, 400)
    return dict(zip(ROLES, (label, group, first, second, score, strata, weight), strict=True))


def outputs(run, folder, names, ending):
    """Run the commands on files with these names, and return their results without names."""
    folder.mkdir()
    columns = {names[role]: values for role, values in rows().items()}
    folded = {name.casefold() for name in columns}
    decoys = {name: columns[names["score"]][::-1] for name in ("h", "i", "x") if name not in folded}
    table = write(folder / f"scores.{ending}", {**columns, **decoys})
    used = ("label", "group", "first", "second")
    raw = write(folder / f"raw.{ending}", {names[role]: columns[names[role]] for role in used})
    common = ("--score", names["score"], "--sensitive", names["group"], "--weight", names["weight"])

    def call(*arguments):
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    strata = ("--label", names["label"], "--strata", names["strata"], "--n-bootstrap", 20, "--n-permutations", 20)
    audit = json.loads(call("audit", table, *common, *strata, "--json", "-"))
    call("repair", table, *common, "--out", folder / "repaired.parquet", "--column", "new", "--bins", 100)
    repaired = pl.read_parquet(folder / "repaired.parquet")
    assert repaired.columns == [*columns, *decoys, "new"]
    model = folder / "model.ft"
    training = ("--label", names["label"], "--sensitive", names["group"], "--method", "dot", "--out", model)
    call("train", raw, *training, "--json", folder / "train.json")
    call("score", model, raw, "--out", folder / "scored.parquet", "--column", "new")
    results = {
        "readings": audit["readings"],
        "repaired": repaired["new"].to_list(),
        "scored": pl.read_parquet(folder / "scored.parquet")["new"].to_list(),
    }
    if ending in {"csv", "jsonl"}:
        streamed = folder / f"streamed.{ending}"
        call("stream", "--model", model, "--sensitive", names["group"], "--out", streamed, "--batch", 100, raw)
        lines = pl.read_csv(streamed) if ending == "csv" else pl.read_ndjson(streamed)
        results["streamed"] = lines["score"].to_list()
    return results


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "feather"])
def test_every_command_uses_the_named_columns(run, tmp_path, ending):
    tame = outputs(run, tmp_path / "tame", {role: f"tame_{role}" for role in ROLES}, ending)
    for number, nasty in enumerate(NAMES):
        found = outputs(run, tmp_path / f"nasty {number}", dict(zip(ROLES, nasty, strict=True)), ending)
        assert found == tame, nasty
