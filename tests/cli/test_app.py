import importlib.util
import json
import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import fairtransport
from fairtransport.cli import main
from fairtransport.cli.app import app

COMMANDS = [command.name for command in app.registered_commands]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_examples_that_parse_statuses_and_common_options(run, command):
    result = run(f"{command} --help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    example = result.stdout.partition("Example:\n")[2].replace("\\\n", " ")
    lines = re.findall(r"^(?:    |.*\| )fairtransport (.*?)(?: [|>#] .*)?$", example, re.MULTILINE)
    assert any(line.startswith(command) for line in lines)
    for line in lines if command else ():
        name, *words = shlex.split(line)
        with get_command(app).commands[name].make_context(name, words):  # raises for an unknown option or a wrong value
            pass
    if command:
        text = " ".join(result.stdout.split())
        assert re.search(r"Exit status:.* 130 .*Ctrl-C.*Add --debug to see where an error was raised", text)
        # Which write no file, or change the one they are given.
        assert "--force" in text or command in {"app", "serve", "sign"}
        assert "--json [PATH]" in text or command in {"app", "serve", "sign", "stream"}


def test_an_option_has_one_placeholder_on_all_commands():
    """But for --out, which is a file or a folder."""
    metavars = {}
    for command in get_command(app).commands.values():
        for parameter in command.params:
            for name in parameter.opts:
                if name.startswith("--") and name not in {"--help", "--out"}:
                    metavars.setdefault(name, set()).add(parameter.metavar)
    assert len(metavars) > 40
    assert {name: several for name, several in metavars.items() if len(several) > 1} == {}


SHARED = {
    *("--sensitive", "--missing", "--small-groups", "--min-group-size", "--max-groups", "--json", "--force", "--label"),
    *("--pos-label", "--weight", "--seed", "--range", "--bins", "--score", "--format", "--delimiter", "--encoding"),
    *("--null", "--decimal", "--max-expansion", "--memory", "--threads"),
}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_a_shared_option_has_one_help_text_and_one_default(name):
    commands = get_command(app).commands
    options = [
        option
        for command in commands.values()
        for option in command.params
        if name in option.opts
        and (command.name not in {"serve", "stream"} or name in {"--sensitive", "--force"})
        and not (name == "--score" and command.name in {"audit", "score"})  # which may do without
        and not (name == "--range" and command.name == "repair")  # which may learn it
    ]
    assert len({option.help for option in options}) == 1
    assert len({repr(option.default) for option in options}) == 1


def test_debug_may_follow_the_command(run, tmp_path):
    arguments = ("audit", tmp_path / "absent.csv", "--score", "s", "--sensitive", "a")
    assert run(*arguments).stderr.startswith("error: No such file")
    for debugged in ((*arguments, "--debug"), ("--debug", *arguments)):
        lines = run(*debugged).stderr.splitlines()
        assert lines[-1].startswith("error: No such file")
        assert any(line.startswith('  File "') for line in lines)


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize("kind", [ValueError, TypeError, OSError, KeyError, RuntimeError, UnicodeError])
def test_what_other_libraries_say_is_not_printed(run, monkeypatch, kind, debug):
    secret = "CANA" + "RY"  # not in a line of the traceback

    def fail(*_arguments, **_options):
        raise kind(secret)

    monkeypatch.setattr("fairtransport.persistence.describe", fail)
    result = run("sign", "model.ft", "--key", "k", *debug)
    assert result.exit_code == 1
    assert f"error: {kind.__name__} in test_app.py" in result.stderr
    assert "CANARY" not in result.output


def test_demo_and_reproduce_have_json(run, compare, reproduced, tmp_path):
    shown = json.loads(run("demo", "--out", tmp_path / "demo", "--json").stdout)
    assert [one["name"] for one in shown["methods"]] == ["LR", "COT"]
    shown = json.loads(run("reproduce", "table1", "--out", tmp_path / "table1", "--json").stdout)
    assert shown["findings"][0]["claims"][0]["ours"] == "0.00 [i]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run, shell, monkeypatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: shell)  # CI has none among its parents
    result = run("--show-completion")
    assert result.exit_code == 0, result.output
    assert "_FAIRTRANSPORT_COMPLETE" in result.stdout
    monkeypatch.setenv("_FAIRTRANSPORT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "fairtransport tr")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert CliRunner().invoke(app, [], prog_name="fairtransport").stdout.split() == ["train"]


def test_module_runs_as_a_program_without_warnings():
    command = [sys.executable, "-W", "error", "-m", "fairtransport.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"fairtransport {fairtransport.__version__}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("absent", [("typer",), ("rich",), ("typer", "rich")])
def test_without_the_extra_one_line_says_what_to_install(absent, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else find(name))
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    message = capsys.readouterr().err
    assert message == f'error: the command line needs {" and ".join(absent)}: pip install "fairtransport[cli]"\n'


def test_help_loads_no_heavy_library():
    heavy = {"sklearn", "numba", "matplotlib", "jinja2"}
    code = f"import sys, fairtransport.cli.app; print(sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
