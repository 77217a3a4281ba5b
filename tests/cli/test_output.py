from __future__ import annotations

import tempfile
from collections import namedtuple

import pytest

from fairtransport.cli._errors import describe, option_names_in_errors
from fairtransport.cli._output import prepare_folder


def test_makes_the_folder_and_leaves_it_empty(tmp_path):
    folder = tmp_path / "a" / "b"
    assert prepare_folder(folder) == folder
    assert list(folder.iterdir()) == []


def test_existing_files_stay(tmp_path):
    (tmp_path / "index.html").write_text("mine")
    prepare_folder(tmp_path, ["index.html"])
    assert (tmp_path / "index.html").read_text() == "mine"


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(NotADirectoryError, match="is a file; choose another --out"):
        prepare_folder(path)
    with pytest.raises(OSError, match="Cannot write to the output folder"):
        prepare_folder(path / "below")


def test_refused_by_the_system(tmp_path, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied", "probe")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    with pytest.raises(PermissionError) as error:
        prepare_folder(tmp_path)
    assert describe(error.value) == f"Cannot write to the output folder (Permission denied): {tmp_path}"


def test_full_disk(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")  # noqa: PYI024 - what shutil returns
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(2**30, 2**30, 3 * 2**20))
    with pytest.raises(OSError, match="has 3 MB of free space; 20 MB are needed"):
        prepare_folder(tmp_path)


def test_a_result_with_the_name_of_a_folder(tmp_path):
    (tmp_path / "index.html").mkdir()
    with pytest.raises(IsADirectoryError, match=r"name of a folder.*index\.html"):
        prepare_folder(tmp_path, ["comparison.csv", "index.html"])


def test_errors_without_words_have_at_least_a_name():
    assert describe(OSError(5, "Input/output error")) == "Input/output error"
    assert describe(ValueError()) == "ValueError"


def test_folds_are_not_mentioned_where_no_option_sets_them():
    with pytest.raises(ValueError, match=r"^Merge such groups \(--small-groups pool\)\.$"), option_names_in_errors():
        raise ValueError("Use cv=2 or fewer folds, merge such groups (small_groups='pool').")
