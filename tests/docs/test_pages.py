"""Every block and command of the tours, and of the pages that show code of their own, does what the page says."""

import importlib
import json
import re

import pytest

from .pages import DOCS, ROOT, alike, blocks, run_page

pytestmark = pytest.mark.docs


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("getting_started.md", 4),
        ("concepts.md", 2),
        ("audit.md", 6),
        ("train.md", 5),
        ("operate.md", 4),
        ("pipelines.md", 5),
        ("tradeoff.md", 5),
        ("install.md", 2),
        ("blind_repair.md", 2),
        ("criteria.md", 3),
        ("torch.md", 1),
        ("causal.md", 5),
        ("regression.md", 1),
        ("model_files.md", 4),
    ],
)
def test_page_runs_and_prints_what_it_says(page, least, tmp_path, monkeypatch):
    ran, compared = run_page(page, tmp_path, monkeypatch)
    assert ran >= least
    assert compared >= 1
    assert len(blocks(page)) == ran + compared
    assert not list(tmp_path.glob("*.tmp"))


def test_comparison_sees_differences():
    told = "disparity 0.17, 3 groups"
    assert alike(told, "disparity  0.18,\n3 groups\n")
    assert not alike(told, "disparity 0.27, 3 groups")
    assert not alike(told, "disparity 0.17, 4 groups")
    assert not alike(told, "")


def test_notebooks_are_those_of_the_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "docs"))
    notebooks = importlib.import_module("notebooks")
    for name, page in notebooks.TOURS.items():
        stored = (ROOT / "examples" / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
        assert stored == notebooks.notebook(DOCS / page), f"run scripts/docs/notebooks.py: {name}"
        cells = json.loads(stored)["cells"]
        assert sum(bool(cell.get("outputs")) for cell in cells) >= 4
        for address in re.findall(r"\]\((\.\.[^)#]+)", stored):
            assert (ROOT / "examples" / "notebooks" / address).exists(), address
