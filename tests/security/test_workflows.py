"""Workflows: every action by its full commit, no secret, no more rights than needed; lowest versions as promised."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40}  # v\d+(\.\d+)+$")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_and_there_is_no_secret(path):
    text = path.read_text()
    used = [line.strip().removeprefix("- ") for line in text.splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not PINNED.fullmatch(line)] == []
    assert "secrets." not in text
    assert "password" not in text
    assert "pull_request_target" not in text
    assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE)


def test_publishing_is_trusted_and_comes_after_the_tests():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert text.count("id-token: write") == 1
    assert "needs: [build, test]" in text


def test_one_action_has_one_commit():
    pins = {match[0] for path in FILES for match in re.findall(r"uses: ((\S+)@\S+)", path.read_text())}
    assert len(pins) == len({pin.partition("@")[0] for pin in pins})


def test_the_lowest_versions_are_those_that_are_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    floors = dict(one.split(">=") for one in project["dependencies"])
    tested = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "constraints-lowest.txt").read_text(), re.MULTILINE))
    for name, floor in floors.items():
        assert tested[name].startswith(f"{floor}."), name
