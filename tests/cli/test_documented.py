"""Every command in README.md and docs/*.md runs, on a small table."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.worlds import score_table
from typer.main import get_command
from typer.testing import CliRunner

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.cli.app import app
from fairtransport.cli.train import MethodOptions, make_estimator
from fairtransport.tabular import TableModel

ROOT = Path(__file__).parents[2]
ELSEWHERE = re.compile(
    r"(audit|deployment|getting_started|install|operate|serving|stream|train|which_method)\.md"
)  # where they are tested, too
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").glob("*.md") if not ELSEWHERE.fullmatch(p.name))]


def documented():
    """Yield the commands in code blocks, one per line; a backslash continues a line."""
    for page in PAGES:
        blocks = re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
            match = re.match(r"(?:\$ |cat \S+ \| )?(fairtransport .*)", line.strip())
            if match:
                yield page.name, " ".join(re.split(r"\s[#>]\s*", match[1])[0].split())


def mentioned():
    """Yield the commands in the text, such as `fairtransport audit`."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for command in re.findall(r"`fairtransport ([a-z]+)[^`]*`", text):
            yield page.name, command


@pytest.fixture(scope="module")
def files(tmp_path_factory, raw_people):
    """A folder with the files that the documented commands read."""
    folder = tmp_path_factory.mktemp("files")
    n = 240
    sex = pl.col("sex").replace_strict({"F": "Female", "M": "Male"})
    scored = score_table(n, races=("Black", "White"))
    scored = scored.with_columns(sex, hired=pl.col("y"), month=1 + pl.int_range(n) % 2)
    (folder / "day").mkdir()
    for name in ("scores", "old", "new", "day/1"):
        scored.write_parquet(folder / f"{name}.parquet")
    scored.write_csv(folder / "scores.csv")
    scored.with_columns(s_repaired=pl.col("s")).write_csv(folder / "repaired.csv")
    few = Inference(n_bootstrap=20, n_permutations=20, random_state=0)
    for name in ("march", "april"):
        audit = ft.audit(scored["s"], sensitive_features={"race": scored["race"]}, inference=few)
        audit.to_json(folder / f"{name}.json")
    rng = np.random.default_rng(0)
    wage = np.exp(10 + 0.3 * rng.normal(0.5 * (scored["sex"] == "Male").to_numpy(), 1.0, n)).round(2)
    predicted = (wage * np.exp(rng.normal(0, 0.2, n))).round(2)
    pl.DataFrame({"predicted": predicted, "wage": wage, "sex": scored["sex"]}).write_csv(folder / "wages.csv")
    raw = raw_people(n).with_columns(sex, race=scored["race"]).rename({"hired": "income", "person": "id"})
    for name in ("data", "test", "new"):
        raw.write_csv(folder / f"{name}.csv")
    (folder / "graph.dot").write_text("digraph { sex -> {job hours}; job -> hours }")
    model = TableModel(LogisticRegression(), label="income", sensitive_features=["race", "sex"]).fit(raw)
    ft.save(model, folder / "model.ft")
    signing = ["sign", str(folder / "model.ft"), "--key", str(folder / "signing.key"), "--new-key"]
    assert CliRunner().invoke(app, signing).exit_code == 0
    transport = ft.TransportClassifier(parity_weight=0.3)
    ft.save(TableModel(transport, label="income", sensitive_features=["race", "sex"]).fit(raw), folder / "cot.ft")
    raw.write_ndjson(folder / "rows.jsonl")
    raw.with_columns(score=model.score_rows(raw).scores).write_csv(folder / "scored.csv")
    return folder


@pytest.fixture
def here(files, here):
    shutil.copytree(files, here, dirs_exist_ok=True)
    return here


@pytest.fixture
def quick_paper(compare, reproduced, monkeypatch):
    """Stand-ins for what trains or draws for long; the tests of each command have the real thing."""

    def write_comparison(comparison, folder):
        (folder / "comparison.json").write_text("{}")
        (folder / "index.html").write_text("page")
        return folder / "index.html"

    monkeypatch.setattr("fairtransport.report.write_comparison", write_comparison)


def test_pages_have_commands():
    names = {command.split()[1] for _, command in documented()}
    assert {"audit", "compare", "train", "score", "repair", "stream", "reproduce", "datasets", "demo"} <= names


@pytest.mark.parametrize("command", sorted({command for _, command in documented()}))
def test_documented_command_runs(command, here, quick_paper, monkeypatch):
    monkeypatch.setattr("fairtransport.serving.serve", lambda *_, **__: None)  # it would wait for requests
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")  # CI has none among its parents
    words = shlex.split(command)[1:]
    if "--install-completion" in words:  # it changes the shell's settings
        words = ["--show-completion" if word == "--install-completion" else word for word in words]
    outputs = [words[position + 1] for position, word in enumerate(words) if word in {"--out", "--html", "--sql"}]
    for output in outputs:
        Path(output).unlink(missing_ok=True)
    if "--new-key" in words:
        for name in ("signing.key", "signing.pub"):
            Path(name).unlink()
    content = Path("new.csv").read_bytes() if "-" in words else None
    if "audit" in words:
        words += ["--n-bootstrap", "20", "--n-permutations", "20"]
    if "--graph" in words:
        words += ["--refits", "2", "--quantiles", "linear"]
    result = CliRunner().invoke(app, words, input=content)
    limited = any(word.startswith("--fail-") for word in words)
    assert result.exit_code in ({0, 2} if limited else {0}), result.output
    for output in outputs:
        assert output == "-" or Path(output).exists(), output


def run_python(page, names):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, page, "exec"), names)  # noqa: S102 - our own text
    return names


def test_documented_python_runs(here):
    names = run_python("commands.md", {"table": pl.read_csv("new.csv")})
    assert names["scores"].shape == (240,)
    assert np.ptp(names["scores"]) > 0.1


def test_documented_python_of_tables_runs(here):
    names = run_python("tables.md", {"frame": pl.read_parquet("old.parquet")})
    assert sum(group.rows for group in names["audit"].groups) == 240
    assert names["repaired"].height == 240
    assert "JOIN" in names["query"]
    assert Path("repair.parquet").exists()


@pytest.mark.parametrize("name", sorted({name for _, name in mentioned()}))
def test_mentioned_command_exists(name, run):
    assert run(name, "--help").exit_code == 0


def test_every_command_is_on_the_page(run):
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    commands = re.findall(r"^  ([a-z]+)  ", run("--help").stdout.partition("Commands:")[2], re.MULTILINE)
    assert len(commands) >= 7
    for name in commands:
        assert f"fairtransport {name} " in page, name


DEFAULT = re.compile(r"`--([a-z-]+)(?: ([\w.]+))?` \(default\)")


def test_every_default_on_the_page_is_that_of_the_command():
    page, commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8"), get_command(app).commands
    assert not re.search("default", DEFAULT.sub("", page))  # none is named in another form
    for section in re.split(r"^## ", page, flags=re.MULTILINE):
        name = section.partition("\n")[0]
        for option, value in DEFAULT.findall(section):
            known = [commands[name]] if name in commands else commands.values()
            options = [one for command in known for one in command.params if f"--{option}" in one.opts]
            if not value:  # the other side of a flag
                options = [one for one in commands[name].params if f"--{option}" in one.secondary_opts]
                assert not options[0].default, option
            elif option == "parity-weight":  # without it the estimators' own
                made = [
                    make_estimator(MethodOptions(method), None, task="classification", verbose=False)
                    for method in ("cot", "dot", "trees")
                ]
                assert {one.parity_weight for one in made} == {value}
            else:
                assert {str(one.default) for one in options} == {value}, option


def test_the_page_lists_the_exit_statuses_of_the_help(run):
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    stated = set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))
    assert stated == {"0", "1", "2", "64", "130"}
    text = " ".join(run("audit", "--help").stdout.split())
    assert all(f" {status} " in text for status in stated)
