"""Recipes of deploy/: what can be checked without docker, which the machines of this project do not have.

Every command line in them is parsed by the command itself, files that they name exist, units are verified by systemd,
the Dockerfile is linted, and alerts ask for figures that the server has.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer
import yaml
from tests.processes import with_command

import fairtransport.serving
from fairtransport.cli.app import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def parse(words):
    """Parse a command line as the program does, without running it; the parameters."""
    program = typer.main.get_command(app)
    with program.make_context("fairtransport", list(words[:1]), resilient_parsing=True) as context:
        return program.commands[words[0]].make_context(words[0], list(words[1:]), parent=context).params


def instructions():
    """The Dockerfile's instructions: name and the rest."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_dockerfile_runs_without_privileges_and_says_whether_it_is_healthy():
    found = instructions()
    stages = [position for position, (name, _) in enumerate(found) if name == "FROM"]
    assert len(stages) == 2  # tools of the build stay behind
    final = found[stages[-1] :]
    assert all(re.match(r"python:\d+\.\d+-slim-\w+", rest) for name, rest in found if name == "FROM")
    last = dict(final)
    assert int(last["USER"]) >= 1000
    assert "/healthz" in last["HEALTHCHECK"]
    assert "--from=build" in last["COPY"]
    program, arguments = json.loads(last["ENTRYPOINT"]), json.loads(last["CMD"])
    assert program == ["fairtransport"]
    assert parse(arguments)["port"] == int(last["EXPOSE"])


def test_dockerfile_copies_what_is_there():
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    names = [name for names in copied for name in names]
    assert {"src", "pyproject.toml"} <= {*names}
    assert all((ROOT / name).exists() for name in names)
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert {*names} == {line.removeprefix("!") for line in sent if line.startswith("!")}


def test_dockerfile_installs_what_the_commands_need():
    installed = next(rest for name, rest in instructions() if name == "RUN" and "pip install" in rest)
    project = (ROOT / "pyproject.toml").read_text()
    extras = re.search(r'"\.\[([\w,]+)\]"', installed)[1].split(",")
    assert {"serve", "kafka"} <= {*extras}
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras)


def test_dockerfile_is_linted():
    hadolint = shutil.which("hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert hadolint is not None  # of the extra "test"
    done = subprocess.run([hadolint, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_compose_file():
    described = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    score, prometheus = described["services"]["score"], described["services"]["prometheus"]
    parameters = parse(score["command"])
    assert parameters["host"] == "0.0.0.0"  # noqa: S104 - within the container
    assert parameters["token_env"] in score["environment"]
    for service in (score, prometheus):
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert (DEPLOY / score["build"]["context"] / score["build"]["dockerfile"]).is_file()
    mounts = [volume.split(":")[0] for volume in prometheus["volumes"] if volume.startswith("./")]
    assert all((DEPLOY / name).is_file() for name in mounts)
    assert len(mounts) == 2
    assert f"{parameters['model']}".startswith(score["volumes"][0].split(":")[1])
    assert int(score["stop_grace_period"].removesuffix("s")) > parameters["grace"]
    named = {volume.split(":")[0] for volume in prometheus["volumes"] if not volume.startswith(".")}
    assert named == {*described["volumes"]}


def test_prometheus_asks_the_server_for_figures_that_it_has():
    described = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    host, port = job["static_configs"][0]["targets"][0].split(":")
    assert int(port) == parse(described["services"][host]["command"])["port"]
    assert Path(job["authorization"]["credentials_file"]).name in described["secrets"]
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    source = (Path(fairtransport.serving.__file__).parent / "app.py").read_text()
    known = set(re.findall(r'"(fairtransport_\w+)"', source))
    for rule in group["rules"]:
        asked = re.findall(r"fairtransport_\w+", rule["expr"])
        assert {re.sub(r"_(total|bucket)$", "", name) for name in asked} <= known, rule["alert"]
        assert rule["annotations"]["summary"].endswith(".")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_command_of_a_unit(unit):
    (command,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), flags=re.MULTILINE)
    program, *words = shlex.split(command)
    assert program.endswith("/bin/fairtransport")
    parameters = parse(words)
    stop = int(re.search(r"^TimeoutStopSec=(\d+)$", unit.read_text(), flags=re.MULTILINE)[1])
    assert stop > parameters.get("grace", 30)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_is_verified_and_confined(unit, tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/fairtransport/bin/fairtransport", "/bin/true"))
    checks = (["verify", "--man=no"], ["security", "--offline=yes", "--threshold=20", "--no-pager"])  # of 100
    for arguments in checks:
        done = subprocess.run([analyze, *arguments, str(copy)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-500:] + done.stderr


@pytest.mark.docs
def test_batch_job(tmp_path):
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 900)
    hours = rng.normal(38, 6, 900) + 5 * (sex == "M")
    job = rng.choice(["cook", "smith"], 900)
    table = pl.DataFrame({"hours": hours.round(1), "job": job, "sex": sex, "y": (hours > 40).astype(int)})
    table[:500].write_csv(tmp_path / "training.csv")
    table[500:].write_csv(tmp_path / "checking.csv")
    table[500:].drop("y").write_csv(tmp_path / "rows.csv")
    commands = with_command(tmp_path / "bin")
    (tmp_path / "models").mkdir()
    settings = {"WORK": str(tmp_path), "MODELS": str(tmp_path / "models"), "LABEL": "y", "SENSITIVE": "sex"}

    def status(step, **more):
        environment = {**commands, **settings, **more}
        command = [str(DEPLOY / "batch_job.sh"), *([step] if step else [])]
        return subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120).returncode

    assert [status(step, METHOD="lr") for step in ("train", "check")] == [0, 2]  # without parity, the job ends here
    assert status("train", METHOD="dpp") == 0
    assert [status(step) for step in ("check", "publish", "score", "audit")] == [0, 0, 0, 0]
    assert pl.read_csv(tmp_path / "scored.csv")["score"].is_between(0, 1).all()
    assert json.loads((tmp_path / "scored.json").read_text())
    assert status("score", ROWS=str(tmp_path / "nowhere.csv")) == 1
    assert status(None) == 64
