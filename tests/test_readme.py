"""What the README shows works."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_example_runs_and_parity_improves(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes files
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile("\n".join(blocks), "README.md", "exec"), {})  # noqa: S102 - our own text
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    printed = {words[0]: words[1] for words in lines if len(words) == 2}
    assert float(printed["after"]) < float(printed["before"]) / 2
    assert {"report.html", "model.ft"} <= {path.name for path in tmp_path.iterdir()}


def test_links_and_pictures_exist():
    for address in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / address).exists(), address
