"""No path of a command may be another of its paths: every pair, by every kind of link, for every command."""

import itertools
from pathlib import Path

import pytest

# Option of each path, or None for an argument; roles of files that are written are in upper case.
PATHS = {
    "train": {"rows": None, "test": "--test", "OUT": "--out", "JSON": "--json"},
    "score": {"model": None, "rows": None, "key": "--verify", "OUT": "--out", "JSON": "--json"},
    "repair": {
        "rows": None,
        "other": "--fit-on",
        "OUT": "--out",
        "SQL": "--sql",
        "LOOKUP": "--lookup",
        "JSON": "--json",
    },
    "audit": {"rows": None, "HTML": "--html", "MARKDOWN": "--markdown", "JSON": "--json"},
    "compare": {"before": None, "after": None, "HTML": "--html", "JSON": "--json"},
    "stream": {"rows": None, "model": "--model", "key": "--verify", "OUT": "--out", "REJECTED": "--rejected"},
}
OTHERS = {
    "train": ["--label", "y", "--sensitive", "g"],
    "repair": ["--score", "s", "--sensitive", "g"],
    "audit": ["--score", "s", "--sensitive", "g"],
    "stream": ["--sensitive", "g", "--store", "store"],
}


def arguments(command, replaced):
    """Return the arguments of a command; each file is called like its role, but for those that are replaced."""
    paths = {role: replaced.get(role, f"{role}.csv") for role in PATHS[command]}
    given = [[path] if PATHS[command][role] is None else [PATHS[command][role], path] for role, path in paths.items()]
    return [command, *itertools.chain(*given), *OTHERS.get(command, [])]


PAIRS = [
    (command, written, other)
    for command in PATHS
    for written, other in itertools.permutations(PATHS[command], 2)
    if written.isupper() and (other.islower() or written < other)
]
ALIASES = {
    "the same name": lambda path: path,
    "another name": lambda path: Path("folder") / ".." / path,
    "a symbolic link": lambda path: made(Path("soft.csv").symlink_to, path, "soft.csv"),
    "a link of a folder": lambda path: made(lambda _: Path("here").symlink_to("."), path, f"here/{path}"),
    "a hard link": lambda path: made(lambda _: Path("hard.csv").hardlink_to(path), path, "hard.csv"),
}


def made(link, path, name):
    link(path)
    return name


def test_the_pairs_are_all_of_them():
    assert len(PAIRS) == 2 * 2 + 1 + 2 * 3 + 1 + 4 * 2 + 6 + 3 + 3 + 2 * 2 + 1 + 2 * 3 + 1


@pytest.mark.parametrize(("command", "written", "other"), PAIRS)
def test_no_output_is_another_path_of_the_command(run, tmp_path, monkeypatch, command, written, other):
    for alias, make in ALIASES.items():
        home = tmp_path / alias
        (home / "folder").mkdir(parents=True)
        monkeypatch.chdir(home)
        for role in PATHS[command]:
            Path(f"{role}.csv").write_text(f"content of {role}\n")
        before = {path: path.read_text() for path in home.glob("*.csv")}
        result = run(*arguments(command, {written: make(f"{other}.csv")}), "--force")
        assert result.exit_code == 1, (alias, result.output)
        assert "is an input" in result.stderr or "Two outputs have the same file name" in result.stderr, (
            alias,
            result.output,
        )
        assert {path: path.read_text() for path in before} == before
        assert not Path("store").exists()


@pytest.mark.parametrize("written", ["OUT", "REJECTED", "rows"])
@pytest.mark.parametrize("name", ["journal.jsonl", "model.ft", "checkpoint-000000000.ft", "new.jsonl", "below/x.jsonl"])
def test_no_file_of_a_stream_is_in_its_store(run, tmp_path, monkeypatch, written, name):
    monkeypatch.chdir(tmp_path)
    for role in ("rows", "model", "key"):
        Path(f"{role}.csv").write_text("x")
    (tmp_path / "store" / "below").mkdir(parents=True)
    (tmp_path / "store" / "journal.jsonl").write_text("journal")
    (tmp_path / "linked.jsonl").hardlink_to(tmp_path / "store" / "journal.jsonl")
    for path in (f"store/{name}", f"STORE/{name}", "linked.jsonl"):
        result = run(*arguments("stream", {written: path}), "--force", "--resume")
        assert result.exit_code == 1
        assert f"{path} is in store, a folder of this command" in result.stderr, result.stderr
    assert (tmp_path / "store" / "journal.jsonl").read_text() == "journal"


@pytest.mark.parametrize("command", [["demo"], ["reproduce", "table1"]])
def test_json_is_not_among_the_results(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    result = run(*command, "--out", "results", "--json", "results/index.html")
    assert result.exit_code == 1
    assert "is in results, a folder of this command" in result.stderr
