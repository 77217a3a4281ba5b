"""Every block and command of the tours, and of the pages that show code of their own, does what the page says."""

import pytest

from .pages import alike, blocks, run_page

pytestmark = pytest.mark.docs


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("tour_auditor.md", 6),
        ("tour_modeller.md", 6),
        ("tour_operator.md", 7),
        ("tradeoff.md", 6),
        ("install.md", 2),
        ("which_method.md", 1),
        ("blind_repair.md", 2),
        ("criteria.md", 3),
        ("limits.md", 1),
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
