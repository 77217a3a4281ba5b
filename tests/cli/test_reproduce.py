from __future__ import annotations

from dataclasses import fields
from inspect import signature

from fairtransport.paper.finding import Claim, Finding
from fairtransport.paper.reproduction import ITEMS, Reproduction
from fairtransport.paper.table1 import Table1Row, run_table1


def test_prints_our_figures_with_the_published_ones(run, table1, tmp_path):
    result = run("reproduce", "table1", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert max(len(line) for line in lines if not line.startswith("Written:")) <= 80
    cells = [line.split() for line in lines]
    assert ["Adult"] in cells
    assert ["LR", ".147", "(.142)", ".807", "(.806)"] in cells
    assert ["COT", ".178±.002", ".048±.004", "(.044)"] in cells
    assert ["LR", ".144±.012", "(.116)", "7.53±.412", "(7.65)"] in cells
    assert ["noise", "floor", ".061"] in cells
    assert ["noise", "floor", "1.80"] in cells
    assert "COT (anchor)" + 4 * " .178±.012 (.175)" in lines
    written = [line.removeprefix("Written: ") for line in lines if line.startswith("Written: ")]
    assert written == [str(tmp_path / "out" / f"table1.{ending}") for ending in ("csv", "md", "json")]


def test_options_reach_the_computation(run, table1, tmp_path):
    result = run("reproduce", "table1", "--out", tmp_path, "--quick", "--seeds", 3, "--jobs", 2)
    (options,) = table1
    assert "rough" in result.stdout
    assert (options["quick"], options["n_seeds"], options["n_jobs"]) == (True, 3, 2)


def test_unknown_name_lists_the_known_ones(run, table1):
    result = run("reproduce", "table9\x1b[31m")
    assert result.exit_code == 64
    known = "table1, figure1, figure2, figure3, figure4, ablation, all"
    assert result.stderr == f"error: nothing called 'table9\\x1b[31m' to reproduce; choose one of {known}\n"
    assert table1 == []


def test_stand_in_has_the_interface_of_the_real_one(table1_row):
    assert {"quick", "n_seeds", "n_jobs", "folder", "show"} <= set(signature(run_table1).parameters)
    assert {field.name for field in fields(table1_row)} <= {field.name for field in fields(Table1Row)}


def test_a_figure_prints_its_claims_and_the_page(run, tmp_path, monkeypatch):
    asked = []

    def stand_in(names, folder, **options):
        asked.append((tuple(names), options))
        finding = Finding("figure1", "Figure 1: duals", "", claims=(Claim("they mirror", "", "0.00 [i]", "agrees"),))
        return Reproduction((finding,), (folder / "index.html",), quick=True)

    monkeypatch.setattr("fairtransport.paper.reproduction.reproduce", stand_in)
    result = run("reproduce", "figure1", "--quick", "--jobs", 2, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "agrees" in result.stdout
    assert "0.00 [i]" in result.stdout  # text, not markup
    assert "Claims checked: 1. Of these 1 agree" in result.stdout
    assert str(tmp_path / "index.html") in result.stdout.replace("\n", "")
    assert asked == [(("figure1",), {"quick": True, "n_jobs": 2, "show": False})]  # not a terminal: no progress
    run("reproduce", "all", "--out", tmp_path)
    assert asked[1][0] == ITEMS
