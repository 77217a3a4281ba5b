from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

import fairtransport
from fairtransport.cli import main


def test_version(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"fairtransport {fairtransport.__version__}\n"


@pytest.mark.parametrize("command", [(), ("demo",), ("audit",), ("repair",), ("reproduce",), ("datasets",)])
def test_every_help_has_an_example(run, command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Example:\n" in result.stdout
    assert f"    fairtransport {' '.join(command)}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_unknown_command_is_a_usage_error(run):
    result = run("bogus")
    assert result.exit_code == 64
    assert "bogus" in result.stderr


def test_module_runs_as_a_program_without_warnings():
    command = [sys.executable, "-W", "error", "-m", "fairtransport.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"fairtransport {fairtransport.__version__}\n"
    assert done.stderr == ""


def test_terminal_without_our_signs_shows_question_marks():
    code = "from fairtransport.cli import main\ntry:\n    main()\nexcept SystemExit:\n    print('\u00b1')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment)
    assert done.stdout.splitlines()[-1] == "?"


@pytest.mark.parametrize("absent", [("typer",), ("rich",), ("typer", "rich")])
def test_without_the_extra_one_line_says_what_to_install(absent, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else find(name))
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    told = capsys.readouterr().err
    assert told == f'error: the command line needs {" and ".join(absent)}: pip install "fairtransport[cli]"\n'


def test_quick_to_answer():
    """No command is chosen yet: neither scikit-learn nor numba nor matplotlib may be loaded."""
    heavy = {"sklearn", "numba", "matplotlib", "jinja2"}
    code = f"import sys, fairtransport.cli.app; print(sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
