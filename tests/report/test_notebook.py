from __future__ import annotations

import sys

import numpy as np

import fairtransport as ft
from fairtransport.report.pages.notebook import render_notebook_cell


def test_shows_verdict_and_groups(audit):
    html = audit._repr_html_()
    assert html == render_notebook_cell(audit)
    assert "are scored differently" in html
    for group, rate in zip(audit.groups, audit.thresholds[0].rates, strict=True):
        assert f"<bdi>{group.name}</bdi>" in html
        assert f">{group.rows:,}<" in html
        assert f">{100 * rate.value:.1f}%<" in html
    assert "Wrong" in html
    assert len(html) < 5000


def test_names_are_escaped_and_many_groups_cut(audit_of):
    html = audit_of(("<script>alert(1)</script>", "\u202eb", *(f"g{k}" for k in range(40))), 3000)._repr_html_()
    assert "<script" not in html
    assert "\u202e" not in html
    assert html.count("<tr>") == 13
    assert "30 smaller groups are not shown" in html


def test_needs_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    audit = ft.audit(np.linspace(0, 1, 40), sensitive_features=["a", "b"] * 20, n_bootstrap=20, n_permutations=20)
    html = audit._repr_html_()
    assert "few rows" in html
    assert "Wrong" not in html  # there are no labels
