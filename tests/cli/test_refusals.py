"""Wrong calls and wrong files: a command answers in one line that says what to do, quotes no row, leaves nothing.

Status 64 is that of a wrong call, before any row is read; 1 that of a wrong file or of options that do not fit it.
"""

import shlex

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.worlds import score_table

import fairtransport as ft
from fairtransport.tabular import TableModel

CANARY = "CANARY"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, raw_people):
    """Good tables of scores and of people, bad ones of every kind, and a model."""
    folder = tmp_path_factory.mktemp("files")
    scores = score_table().select("s", "race", "y", "w", "region", age=pl.int_range(600) % 20)
    scores.write_csv(folder / "scores.csv")
    scores.write_parquet(folder / "scores.parquet")
    people = raw_people(600).with_columns(one=pl.lit(CANARY), none=pl.lit(None))
    people.write_csv(folder / "people.csv")
    texts = {
        "one.csv": "s,race\n0.1,a\n0.2,a\n",
        "ragged.csv": f"s,race\n0.1,a\n0.1,b\n0.2,b,{CANARY}\n",
        "infinite.csv": "s,race\n0.1,a\n0.2,b\n650,b\ninf,a\n",
        "points.csv": "s,race\n0.1,a\n0.2,b\n650,b\n0.1,a\n",
        "ids.csv": "s,id\n" + "".join(f"0.5,{CANARY}{number}\n" for number in range(1000)),
        "na.csv": f"s,race\n0.1,a\nNA,{CANARY}\n",
        "taken.csv": "s,race,S_repaired\n0.1,a,1\n",
        "a.csv": "id\n1\n",
        "people.txt": "a,b\n",
        "rows.csv": f"{CANARY},1\n{CANARY},2\n",
        "narrow.csv": f"a,b\n{CANARY},1\n",
        "into.dot": "digraph { age -> race }",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes(f"s,race\n0.1,a\n0.2,{CANARY}\xe4\n".encode("latin-1"))
    pl.DataFrame({"s": [CANARY, "b"], "race": ["B", "W"]}).write_parquet(folder / "text.parquet")
    pl.DataFrame({"s": [0.5, 0.6], "race": ["Q", "R"]}).write_parquet(folder / "others.parquet")
    pl.DataFrame({"s": [0.1, 0.2, 0.3], "race": ["B", "W", "B"], "y": [0, 1, 2]}).write_parquet(
        folder / "three.parquet"
    )
    raw_people(5).with_columns(score=pl.lit(1)).write_csv(folder / "scored.csv")
    model = TableModel(LogisticRegression(max_iter=1000), label="hired", sensitive_features=["sex"])
    ft.save(model.fit(raw_people(600)), folder / "model.ft")
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)).fit(
        np.linspace(0, 1, 50), sensitive_features=["a", "b"] * 25
    )
    ft.save(repair, folder / "repair.ft", people_per_point=1)
    return folder


AUDIT = "audit {} --score s --sensitive race --n-bootstrap 20 --n-permutations 20"
REPAIR = "repair --out out.parquet --score s --sensitive race {}"
TRAIN = "train {} --label hired --sensitive sex --method dpp --out new.ft"
FILES = [  # name of a file for `audit`, and what is said of it
    ("none.csv", "error: No such file: none.csv"),
    ("scores.csv sex", "several columns are separated by commas, as in --sensitive race,sex): sex"),
    (".", "error: This is a folder; give its files by a pattern, such as folder/*.parquet: ."),
    ("one.csv", "The rows fall into 1 group(s) of column 'race'; at least 2 are needed."),
    ("ragged.csv", "error: ragged.csv, line 4: the row does not have the 2 fields"),
    ("infinite.csv", "Column 's' has 1 of 4 infinite values; drop or replace them."),
    ("latin.csv", "latin.csv, line 3: the file is not UTF-8; give its --encoding (utf-8, latin-1"),
    ("na.csv", "not a number. If it marks a missing value, give it with --null; if numbers have a decimal comma, use"),
]
OPTIONS = [  # of `audit`, and what is said of them
    ("--delimiter ;", "it has 's,race,y,w,region,age'. Is the delimiter right (--delimiter)?"),
    ("--sensitive Rase", "scores.csv has no column 'Rase'; close to it: 'race'"),
    ("--range 1", "--range must be two numbers, such as 300,850; got '1'"),
    ("--confidence 95", "confidence must be below 1"),
    ("--threshold 2", "--threshold has 1 of 1 values outside [0, 1]"),
    ("--encoding klingon", "encoding must be one of"),
    ("--memory much", "memory must be a size such as '2GiB'"),
    ("--pos-label 1", "A positive label requires a column of labels"),
    ("--label region --pos-label x", "Column 'region' has two labels, and --pos-label is neither of them"),
    ("--label w --task classification", "Column 'w' has at least 3 different labels; two are needed"),
    ("--label w", "--task regression"),
    ("--target X", "None of the 2 groups of column 'race' has the name that --target says"),
    ("--favourable up", "--favourable must be"),
    ("--label y --reference CANARY", "--reference must be the label or name of one of the 2 groups of column 'race'"),
    ("--json none/a.json", "error: The folder of the output file does not exist: none/a.json"),
    ("--json .", "error: The output file is a folder: ."),
    ("--json scores.csv", "error: scores.csv is an input; choose another name for the output file."),
    ("--json a.csv", "error: The output file exists; use --force to overwrite it: a.csv"),
    ("--json Scored.json --html scored.JSON", "Two outputs have the same file name"),  # on systems that ignore case
    ("--small-groups drop --min-group-size 5000", "--min-group-size 5000, 0 group(s) of column 'race' are left of 2"),
]
LIMITS = [
    ("--fail-above sdpp=.1", "does not know the metric 'sdpp'; it knows mean (mean_distance), largest"),
    ("--fail-above ratio=.1", "--fail-above does not know the metric 'ratio'"),
    ("--fail-below spdd=.1", "--fail-below does not know the metric 'spdd'; it knows ratio"),
    ("--fail-above spdd", "--fail-above must be NAME=NUMBER, such as mean=.1; got 'spdd'"),
    ("--fail-above err=.1", "A limit on err needs --label"),
    ("--fail-above conditional=.1", "needs --strata"),
]
WRONG = [
    *((AUDIT.format(name), message) for name, message in FILES),
    *((f"{AUDIT.format('scores.csv')} {options}", message) for options, message in OPTIONS),
    ("audit ids.csv --score s --sensitive id", "at least 1000 groups in column 'id'; --max-groups is 200"),
    (f"{REPAIR.format('scores.parquet')} --out out.xlsx", "no format that can be written; known extensions"),
    (REPAIR.format("'s*.parquet' --force --out scores.parquet"), "scores.parquet is an input; choose another name"),
    (f"{REPAIR.format('scores.parquet')} --strata age", "has 20 different numbers"),
    (f"{REPAIR.format('scores.csv')} --strata age", "has 20 different numbers"),  # which are text in this file
    (REPAIR.format("taken.csv"), "The table has a column 'S_repaired' already; name another with --column"),
    (REPAIR.format("text.parquet"), "Column 's' contains String, not numbers"),
    (REPAIR.format("points.csv"), "has 1 of 4 values outside [0, 1]. Give the range of possible scores with"),
    (f"{REPAIR.format('text.parquet')} --fit-on scores.parquet", "Column 's' contains text, not numbers"),
    (f"{REPAIR.format('others.parquet')} --fit-on scores.parquet", "No row gets a repaired score"),
    (f"{REPAIR.format('three.parquet')} --fit-on scores.parquet --label y", "Column 'y' has 3 different labels; two"),
    (f"{TRAIN.format('people.csv')} --label hird", "error: people.csv has no column 'hird'; close to it: 'hired'."),
    (f"{TRAIN.format('people.csv')} --drop ours", "error: people.csv has no column 'ours'; close to it: 'hours'."),
    (f"{TRAIN.format('rows.csv')} --label hired", "rows.csv has no column 'hired'; its first line contains numbers"),
    (f"{TRAIN.format('people.csv')} --label job", "error: Column 'job' has 3 different labels and "),
    (f"{TRAIN.format('people.csv')} --label one", "error: Column 'one' has 1 different label; two are needed."),
    ("train people.csv --label hired --sensitive person --out new.ft", "has 600 groups in column 'person'"),
    (f"{TRAIN.format('people.csv')} --sensitive none", "rows has a label and a group: "),
    ("train scores.csv --label age --sensitive race --out new.ft", "--task regression"),
    (f"{TRAIN.format('people.csv')} --strata hired", "Column 'hired' is the label and cannot be a stratum as well"),
    (f"{TRAIN.format('people.csv')} --pos-label maybe", "--pos-label is none of the 2 labels of column 'hired'; write"),
    (TRAIN.format("people.txt"), "error: people.txt: unknown extension"),
    ("score absent.ft people.csv --out x.csv", "error: No such file or directory: absent.ft"),
    ("score people.csv people.csv --out x.csv", "error: This is not a model file"),
    ("score repair.ft people.csv --out x.csv", "error: The file has no columns 'score', 'sensitive_feature_0'"),
    ("score model.ft people.csv --out x.docx", "error: x.docx: no format that can be written"),
    ("score model.ft narrow.csv --out x.csv", "The file has no columns 'region', 'hours', 'skill', 'job', 'joined'"),
    ("score model.ft scored.csv --out x.csv", "The table has a column 'score' already; name another with --column"),
]
USAGE = [
    *((f"{AUDIT.format('scores.csv')} {options}", message) for options, message in LIMITS),
    ("audit", "Needed options: --sensitive."),
    ("train scores.csv --label y", "Needed options: --sensitive, --out. scores.csv: it has 's', 'race', 'y', 'w'"),
    ("train rows.csv --label y", "its first line contains numbers, and should contain the names of the columns."),
    ("audit scores.csv --bogus", ""),
    ("bogus", "bogus"),
    (f"{AUDIT.format('scores.csv')} --n-bootstrap x", ""),
    (f"{AUDIT.format('scores.csv')} --bins 0", ""),
    (f"{AUDIT.format('scores.csv')} --criterion equalized_odds", "needs --label"),
    (f"{AUDIT.format('scores.csv')} --small-groups merge", "--small-groups must be keep, pool or drop; got 'merge'"),
    (f"{AUDIT.format('scores.csv')} --to W", ""),
    ("audit scores.csv --graph into.dot --sensitive race", ""),
    (f"{REPAIR.format('scores.csv')} --small-groups merge", "--small-groups must be keep, pool or drop; got 'merge'"),
    (f"{REPAIR.format('scores.csv')} --sql x.sql --dialect oracle", "must be duckdb, mysql, postgresql or sqlite; got"),
    (f"{REPAIR.format('scores.csv')} --criterion fairness", "--criterion must be"),
    (f"{REPAIR.format('scores.csv')} --criterion equalized_odds", "name their column with --label"),
    (f"{REPAIR.format('scores.csv')} --randomize", "--randomize is for --criterion equalized_odds"),
    (f"{REPAIR.format('scores.csv')} --randomize --criterion equalized_odds --label y --strata region", "--strata"),
    (f"{REPAIR.format('scores.csv')} --randomize --criterion equalized_odds --label y --sql x.sql", "--sql"),
    (f"{TRAIN.format('people.csv')} --method svm", "--method must be cot, dot, trees, dpp, blind-repair, lr or auto"),
    (f"{TRAIN.format('people.csv')} --method lr --amount .5", "--amount cannot be combined with --method lr"),
    (f"{TRAIN.format('people.csv')} --parity-weight 2", "--parity-weight cannot be combined with --method dpp"),
    (f"{TRAIN.format('people.csv')} --amount .5 --max-disparity .1", "--max-disparity and --amount cannot be combined"),
    (f"{TRAIN.format('people.csv')} --task ranking", "--task must be classification or regression"),
    (f"{TRAIN.format('people.csv')} --task regression --criterion equal_opportunity", "numbers have none"),
    (f"{TRAIN.format('people.csv')} --blind", "--method dpp needs the group to score"),
    (f"{TRAIN.format('people.csv')} --missing drop", "--missing must be set_aside or group"),
    (f"{TRAIN.format('people.csv')} --criterion equalized_odds --method lr", "cannot be combined with --method lr"),
    (f"{TRAIN.format('people.csv')} --method blind-repair --aware", "--aware cannot be combined with --method blind"),
    (f"{TRAIN.format('people.csv')} --method blind-repair --target pooled", "--target cannot be combined with"),
    (f"{TRAIN.format('people.csv')} --method cot --base trees", "--base cannot be combined with --method cot"),
    (f"{TRAIN.format('people.csv')} --method lr --html page.html", "--html cannot be combined with --method lr"),
    (f"{TRAIN.format('people.csv')} --test-share 0 --html page.html", "--html needs test rows: give --test, or"),
    (f"{TRAIN.format('people.csv')} --base forest", "--base must be linear or trees"),
    ("score model.ft people.csv --out - --json", "--out - and --json - cannot both have standard output"),
]


@pytest.mark.parametrize(
    ("command", "message", "status"),
    [*((*case, 1) for case in WRONG), *((*case, 64) for case in USAGE)],
    ids=lambda value: value if str(value).startswith(("audit", "repair", "train", "score")) else None,
)
def test_refused_in_one_line(run, folder, monkeypatch, command, message, status):
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = run(*shlex.split(command))
    assert (result.exit_code, result.stdout) == (status, ""), result.output
    if status == 1 or message.startswith("--"):
        assert len(result.stderr.splitlines()) == 1, result.stderr
    assert message in " ".join(result.stderr.split())
    assert CANARY not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
