"""``fairtransport score``: the rows as they were, with scores; rows without one are counted."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.tabular import TableModel

CANARY = "CANARY"


@pytest.fixture(scope="module")
def models(tmp_path_factory, raw_people):
    """A blind model, and one that needs the group."""
    folder = tmp_path_factory.mktemp("models")
    people = raw_people(800)
    plain = LogisticRegression(max_iter=1000)
    for name, estimator in (("blind", plain), ("aware", ft.QuantileRepairClassifier(plain))):
        ft.save(TableModel(estimator, label="hired", sensitive_features=["sex"]).fit(people), folder / f"{name}.ft")
    return folder


@pytest.fixture
def here(here, models, raw_people):
    for path in models.iterdir():
        Path(path.name).write_bytes(path.read_bytes())
    raw_people(200, seed=1).write_csv("new.csv")
    return here


def expected(name, frame):
    return ft.load(f"{name}.ft").score_rows(frame).scores


def call(run, *arguments, model="blind.ft", files=("new.csv",), out="scored.csv"):
    return run("score", model, *files, "--out", out, *arguments)


@pytest.mark.parametrize("model", ["blind", "aware"])
def test_rows_keep_their_order_and_columns_and_get_scores(run, here, raw_people, model):
    result = call(run, model=f"{model}.ft")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert result.stdout == "200 of 200 rows have a score.\nWritten: scored.csv\n"
    written = pl.read_csv("scored.csv", infer_schema=False)
    original = pl.read_csv("new.csv", infer_schema=False)
    assert written.drop("score").equals(original)
    np.testing.assert_array_equal(written["score"].cast(float), expected(model, raw_people(200, seed=1)))


def test_many_pieces_are_one_table(run, here, raw_people, monkeypatch):
    monkeypatch.setattr("fairtransport.tables.files._file_table._BATCH", 64)
    whole = raw_people(5000, seed=2)
    whole[:3000].write_parquet("part-1.parquet")
    whole[3000:].write_parquet("part-2.parquet")
    assert call(run, files=["part-*.parquet"], out="scored.parquet").exit_code == 0
    written = pl.read_parquet("scored.parquet")
    assert written["person"].equals(whole["person"])
    np.testing.assert_array_equal(written["score"], expected("blind", whole))


def test_rows_without_a_known_group_get_no_score_and_are_counted(run, here, raw_people):
    frame = raw_people(10, seed=4).with_columns(sex=pl.Series([None, "?", "other"] + ["F"] * 7))
    frame.write_csv("odd.csv")
    result = call(run, "--threshold", 0.5, model="aware.ft", files=["odd.csv"])
    assert "7 of 10 rows have a score." in result.stdout
    assert result.exit_code == 2
    assert (
        "Without a score: 2 rows, no group in 'sex'.\nWithout a score: 1 row, unknown group in 'sex'.\n"
        in result.stdout
    )
    assert "scored.csv.rejected.jsonl" in result.stdout
    rejected = [json.loads(line) for line in Path("scored.csv.rejected.jsonl").read_text().splitlines()]
    assert [line["row"] for line in rejected] == [1, 2, 3]
    assert rejected[2]["reason"] == "unknown group in 'sex'"
    written = pl.read_csv("scored.csv")
    assert written["score"].is_null().to_list() == written["decision"].is_null().to_list() == [True] * 3 + [False] * 7
    assert call(run, "--max-rejected", 0.3, "--force", model="aware.ft", files=["odd.csv"]).exit_code == 0
    everyone = call(run, "--unknown-group", "pooled", "--force", model="aware.ft", files=["odd.csv"])
    assert (everyone.exit_code, everyone.stdout.splitlines()[0]) == (0, "10 of 10 rows have a score.")
    blind = call(run, files=["odd.csv"], out="blind.csv")
    assert (blind.exit_code, blind.stdout.splitlines()[0]) == (0, "10 of 10 rows have a score.")
    assert not Path("blind.csv.rejected.jsonl").exists()


def test_missing_values_and_new_categories_are_counted(run, here, raw_people):
    frame = raw_people(10, seed=5).with_columns(
        hours=pl.Series(["many", None, *["40"] * 8]), region=pl.Series(["west"] * 2 + ["north"] * 8)
    )
    frame.write_csv("odd.csv")
    result = call(run, "--json", files=["odd.csv"])
    shown = json.loads(result.stdout)
    assert (shown["scored"], shown["replaced"]) == (9, {"unseen category": {"region": 1}})
    text = call(run, "--force", files=["odd.csv"]).stdout
    assert "Without a score: 1 row, column 'hours' is not a number." in text
    assert "Column 'region': 1 cell with a category that training did not see." in text


def test_another_decimal_separator_is_hinted_at_where_most_rows_are_rejected(run, here, raw_people):
    comma = raw_people(50, seed=5).with_columns(
        hours=pl.col("hours").cast(float).cast(str).str.replace(".", ",", literal=True)
    )
    comma.write_csv("comma.csv", separator=";")
    hint = "Note: If these numbers have a decimal comma, add --decimal ','."
    assert hint in call(run, files=["comma.csv"]).stdout
    assert hint not in call(run, "--force", "--decimal", ",", files=["comma.csv"]).stdout
    point = raw_people(50, seed=5).with_columns(hours=pl.Series(["many", *["40"] * 49]))
    point.write_csv("point.csv")
    assert "Note:" not in call(run, "--force", files=["point.csv"]).stdout


def test_rejected_rows_are_counted_from_one_in_files(run, here, raw_people):
    raw_people(5, seed=5).with_columns(hours=pl.Series(["40", "many", *["40"] * 3])).write_csv("odd.csv")
    call(run, files=["odd.csv"])
    (line,) = Path("scored.csv.rejected.jsonl").read_text().splitlines()
    assert json.loads(line) == {"row": 2, "reason": "column 'hours' is not a number"}


def test_standard_input_and_output(run, here, raw_people):
    done = run("score blind.ft - --out -", input=Path("new.csv").read_bytes())
    assert (done.exit_code, done.stderr) == (0, "200 of 200 rows have a score.\n")
    written = pl.read_csv(io.BytesIO(done.stdout_bytes))["score"]
    np.testing.assert_array_equal(written, expected("blind", raw_people(200, seed=1)))
    lines = raw_people(5, seed=1).write_ndjson().encode()
    done = run("score blind.ft - --out - --format jsonl", input=lines)
    written = [json.loads(line)["person"] for line in done.stdout.splitlines()]
    assert written == raw_people(5, seed=1)["person"].to_list()


# Signals as a system sends them: at a logout, at a shutdown, for lack of memory.
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]


@pytest.mark.trust
@pytest.mark.parametrize("sent", SIGNALS)
def test_a_signal_leaves_nothing_of_standard_input_behind(here, sent):
    temporary = here / "temporary"
    temporary.mkdir()
    process = start(["blind.ft", "-", "--out", "scored.csv"], temporary, stdin=subprocess.PIPE)
    rows = Path("new.csv").read_bytes()
    process.stdin.write(rows + rows * (2**20 // len(rows)))  # more than a pipe holds: the command has read most of it
    process.stdin.flush()
    process.send_signal(sent)
    _, told = process.communicate(timeout=120)
    assert process.returncode in {128 + sent, -sent}
    assert told in {b"stopped\n", b""}
    assert list(temporary.rglob("*")) == []
    assert not Path("scored.csv").exists()


@pytest.mark.trust
@pytest.mark.parametrize("sent", SIGNALS[:2])
def test_a_signal_while_scoring_leaves_nothing_unfinished_behind(here, sent):
    """The command asks for the signal itself, once it has written rows."""
    temporary = here / "temporary"
    temporary.mkdir()
    code = (
        "import os, sys, fairtransport.tabular.file_scoring as scoring\n"
        "from fairtransport.cli import main\n"
        "real = scoring.score_file\n"
        "def score_file(*arguments, on_progress, **options):\n"
        f"    return real(*arguments, on_progress=lambda *_: os.kill(os.getpid(), {int(sent)}), **options)\n"
        "scoring.score_file = score_file\n"
        "main()\n"
    )
    before = sorted(path.name for path in here.iterdir())
    process = start(["blind.ft", "new.csv", "--out", "scored.csv"], temporary, program=["-c", code])
    _, told = process.communicate(timeout=120)
    assert (process.returncode, told) == (128 + sent, b"stopped\n")
    assert list(temporary.rglob("*")) == []
    assert sorted(path.name for path in here.iterdir()) == before


def start(arguments, temporary, *, program=("-m", "fairtransport.cli"), stdin=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    command = [sys.executable, *program, "score", *arguments]
    pipe, before = subprocess.PIPE, signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which tests under nohup ignore
    try:
        return subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, env=environment)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "error: standard input is empty (0 bytes)."),
        (b"region,hours\nnorth,1,2\n", "error: The file has no columns 'skill', 'job', 'joined'"),
        (b"region,hours,skill,job,joined\nnorth,1\n", "error: standard input, line 2: the row does not have the 5"),
    ],
)
def test_wrong_standard_input(run, here, one_line, content, match):
    result = run("score blind.ft - --out scored.csv", input=content)
    assert one_line(result).startswith(match)
    assert not Path("scored.csv").exists()


def test_decisions(run, here):
    result = call(run, "--threshold", 0.4, "--decision", "hire", "--column", "p")
    written = pl.read_csv("scored.csv")
    assert written["hire"].to_list() == (written["p"] > 0.4).cast(int).to_list()
    assert 0 < written["hire"].sum() < 200
    assert f"200 of 200 rows have a score. {written['hire'].sum()} have a positive decision." in result.stdout


def test_the_decimal_comma_of_training_is_read_again(run, here, raw_people):
    table = raw_people(240).with_columns(pl.col("hours").cast(pl.String).str.replace(".", ",", literal=True))
    table.write_csv("comma.csv", separator=";")
    train = ("train", "comma.csv", "--label", "hired", "--sensitive", "sex", "--method", "lr", "--out", "comma.ft")
    assert run(*train, "--decimal", ",").exit_code == 0
    result = run("score", "comma.ft", "comma.csv", "--out", "scored.csv")
    assert result.exit_code == 0, result.output
    assert pl.read_csv("scored.csv")["score"].null_count() == 0
