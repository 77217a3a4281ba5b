"""The page of results is made from the stored ones, and every benchmark can be listed."""

import importlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_required_ratios_and_notes(tmp_path):
    module = importlib.import_module("benchmarks._report")
    report = module.Report("race", "Ours is as fast.", folder=tmp_path)
    report.add(module.compare("a case", [1.0, 1.0], "a peer", [2.0, 2.0], at_least=1.5))
    report.add(module.compare("another", [1.0, 1.0], "a peer", [4.0, 4.0], at_least=1.5))
    report.add(module.compare("a case", [1.0, 1.0], "a sort", [0.1, 0.1], at_most=4))
    report.add(module.compare("not required", [1.0, 1.0], "a third", [2.0, 2.0]))
    report.save()
    notes = ["It is.", "a", "MISSED: c"]
    module.Report("quality", "Ours is as good.", folder=tmp_path, notes=notes, data={"curves": {}}).save()
    text = module.page(tmp_path)
    assert "| race | 2 | a peer | at least 1.5 x | 2 to 4 x | met |" in text
    assert "| race | 1 | a sort | ours at most 4 x peer's | 10 x | MISSED |" in text
    assert "a third" not in text
    assert text.endswith("## quality\n\nOurs is as good.\n\n- It is.\n- MISSED: c\n")  # losses are shown


def test_the_stored_page_is_that_of_the_stored_results():
    module = importlib.import_module("benchmarks._report")
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == module.page(ROOT / "benchmarks" / "results")


def test_every_benchmark_is_listed_with_its_first_sentence():
    command = [sys.executable, "-m", "benchmarks", "--list"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    folder = ROOT / "benchmarks"
    names = {path.stem for path in folder.glob("[a-z]*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    assert {line.split()[0] for line in lines} == names
    assert all(len(line.split()) > 3 for line in lines)
