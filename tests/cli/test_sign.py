"""``fairtransport sign``, and --verify: only files that the key has signed are used."""

from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.tabular import TableModel


@pytest.fixture
def here(here, raw_people):
    model = TableModel(LogisticRegression(max_iter=1000), label="hired", sensitive_features=["sex"])
    ft.save(model.fit(raw_people(400)), "model.ft")
    raw_people(50, seed=1).write_csv("new.csv")
    return here


def test_a_signed_model_is_used_and_another_is_not(run, here):
    score = ("score", "model.ft", "new.csv", "--out", "scored.csv", "--verify", "signing.pub", "--force")
    signed = run("sign", "model.ft", "--key", "signing.key", "--new-key")
    assert (signed.exit_code, signed.stderr) == (0, ""), signed.output
    assert "signing.pub" in signed.stdout
    assert run(*score).exit_code == 0
    assert len(Path("scored.csv").read_text().splitlines()) == 51
    run("sign", "model.ft", "--key", "other.key", "--new-key")
    refused = run(*score)
    assert refused.exit_code == 1
    assert "not signed by the key of --verify" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert run("sign", "model.ft", "--key", "signing.key").exit_code == 0
    assert run(*score).exit_code == 0


def test_keys_and_models_are_not_overwritten(run, here):
    run("sign", "model.ft", "--key", "signing.key", "--new-key")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for words in (
        ("sign", "model.ft", "--key", "signing.key", "--new-key"),
        ("sign", "new.csv", "--key", "new.key", "--new-key"),
        ("sign", "model.ft", "--key", "signing.pub"),
        ("sign", "model.ft", "--key", "none.key"),
        ("score", "model.ft", "new.csv", "--out", "signing.pub", "--verify", "signing.pub", "--force"),
    ):
        result = run(*words)
        assert result.exit_code != 0, words
        assert "Traceback" not in result.stderr
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before
