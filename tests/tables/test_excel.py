"""Excel workbooks: the same rows as in any other file."""

import datetime as dt
import zipfile

import numpy as np
import openpyxl
import polars as pl
import pytest

from fairtransport.groups import GroupPolicy
from fairtransport.tables import Columns, count_table, open_files
from fairtransport.tabular.file_scoring import collect_file

CANARY = "CANARY"

ASIDE = GroupPolicy(missing="set_aside")


def people(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "score": rng.random(n),
            "race": [["A", "B", None][code] for code in rng.integers(0, 3, n)],
            "code": rng.integers(0, 3, n),
            "joined": [dt.datetime(2024, 1, 1 + int(day)) for day in rng.integers(0, 28, n)],  # noqa: DTZ001
            "label": rng.integers(0, 2, n),
        }
    )


def write(path, frame, *, title="Scores", others=()):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = title
    sheet.append(list(frame.columns) if hasattr(frame, "columns") else frame[0])
    for row in frame.iter_rows() if hasattr(frame, "iter_rows") else frame[1:]:
        sheet.append(row)
    for name in others:
        book.create_sheet(name)
    book.save(path)
    return path


def test_a_workbook_gives_the_figures_of_the_frame(tmp_path):
    frame = people()
    path = write(tmp_path / "scores.xlsx", frame)
    columns = Columns.named(score="score", sensitive_features=["race", "code"], label="label")
    with open_files([path]) as table:
        counts = table.run(count_table, columns, groups=ASIDE)
    expected = count_table(frame, score="score", sensitive_features=["race", "code"], label="label", groups=ASIDE)
    assert counts.set_aside == expected.set_aside
    assert counts.histograms.groups.labels == expected.histograms.groups.labels
    np.testing.assert_array_equal(counts.histograms.masses, expected.histograms.masses)


def test_values_keep_all_their_digits_and_their_types(tmp_path):
    frame = people()
    with open_files([write(tmp_path / "scores.xlsx", frame)]) as table:
        rows = pl.from_arrow(collect_file(table))
    np.testing.assert_allclose(rows["score"], frame["score"], rtol=1e-15)
    assert rows["code"].to_list() == frame["code"].to_list()
    assert rows["code"].dtype == pl.Int64
    assert rows["race"].to_list() == frame["race"].to_list()
    assert rows["joined"].cast(pl.Date).to_list() == frame["joined"].cast(pl.Date).to_list()


def test_a_sheet_is_chosen_by_name_and_the_first_is_the_default(tmp_path):
    path = write(tmp_path / "scores.xlsx", people(), others=["Notes"])
    with open_files([path], sheet="Scores") as table:
        assert table.names == tuple(people().columns)
    with pytest.raises(ValueError, match="has no sheet 'March'; it has 'Scores', 'Notes'"):
        open_files([path], sheet="March")
    with pytest.raises(ValueError, match="the first line of the sheet has no names"):
        open_files([path], sheet="Notes")


def test_files_that_are_no_workbooks_are_refused_without_their_contents(tmp_path):
    path = tmp_path / "scores.xlsx"
    path.write_text(f"score,race\n0.1,{CANARY}\n")
    with pytest.raises(ValueError, match="is not an Excel workbook") as error:
        open_files([path])
    assert CANARY not in str(error.value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", CANARY)
    with pytest.raises(ValueError, match="is not an Excel workbook"):
        open_files([path])


def test_a_workbook_that_expands_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fairtransport.tables.files.engine.ALWAYS_ALLOWED", 1000)
    path = write(tmp_path / "scores.xlsx", people(3000))
    with pytest.raises(ValueError, match=r"would expand to .* raise max_expansion="):
        open_files([path], max_expansion=1.5)
