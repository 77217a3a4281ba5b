"""The README runs, prints what it says, and stays short."""

import re
from pathlib import Path

from tests.docs.pages import alike

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_python_example_runs_and_parity_improves(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes files
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile("\n".join(blocks), "README.md", "exec"), {})  # noqa: S102 - our own text
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    assert alike(shown, printed)
    before, after = (float(line.rpartition(" ")[2]) for line in printed.splitlines())
    assert after < before / 2
    assert {"report.html", "model.ft"} <= {path.name for path in tmp_path.iterdir()}


def test_links_and_pictures_exist():
    for address in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert address.startswith("https://") or (README.parent / address).exists(), address


def test_readme_is_short_and_keeps_its_two_commands():
    assert len(TEXT.splitlines()) <= 90
    assert "make demo " in TEXT
    assert "make test " in TEXT
