"""Folders of data and projects of others are no danger, and what fails leaves nothing behind."""

import json
import time

import pytest
from tests.workbench import people

from fairtransport.app.projects import Project, Projects
from fairtransport.app.server import _check


@pytest.fixture
def projects(tmp_path):
    made = Projects(tmp_path / "home")
    yield made
    made.close()


def ended(projects, name):
    while projects.open[name].busy:
        time.sleep(0.02)
    return projects.open[name]


def test_no_module_of_the_folder_of_data_is_run(tmp_path, monkeypatch):
    people(60).write_csv(tmp_path / "people.csv")
    for name in ("html", "numpy", "fairtransport"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "", prepend=":")  # an empty entry is the current folder
    projects = Projects(tmp_path.relative_to(tmp_path) / "home")
    try:
        project = ended(projects, projects.create("people", {"path": str(tmp_path / "people.csv")}))
        assert (project.job.error, project.look["rows"]) == ("", 60)
    finally:
        projects.close()
    assert not (tmp_path / "run").exists()


def test_a_shipped_data_set_is_written_in_the_folder_of_the_project_only(tmp_path, projects):
    (tmp_path / "mine.parquet").write_bytes(b"mine")
    (tmp_path / "theirs").mkdir()
    data = {"path": str(tmp_path / "mine.parquet"), "shipped": "german"}
    (tmp_path / "theirs" / "project.json").write_text(json.dumps({"name": "theirs", "data": data}))
    ended(projects, projects.load(tmp_path / "theirs"))
    assert (tmp_path / "mine.parquet").read_bytes() == b"mine"
    assert (tmp_path / "theirs" / "german.parquet").is_file()


@pytest.mark.parametrize(
    ("values", "changes", "step", "field"),
    [
        (["good", "bad"], {}, "data", "pos_label"),
        (["good", "bad"], {}, "audit", ""),
        (["good", "bad"], {"pos_label": "best"}, "data", "pos_label"),
        (["good", "bad"], {"pos_label": "good"}, "data", None),
        (["0", "1"], {}, "data", None),
        (["-1", "1"], {}, "choose", None),
        (["false", "true"], {}, "choose", None),
        (["a", "b", "c"], {"pos_label": "a"}, "data", "label"),
    ],
)
def test_a_positive_label_is_asked_for_where_it_is_not_known(tmp_path, values, changes, step, field):
    project = Project(tmp_path, {"name": "x", "data": {"path": "x.csv"}})
    kind = {"name": "y", "kind": "words", "distinct": len(values), "values": values if len(values) < 3 else []}
    project.look = {"columns": [kind]}
    project.settings |= {"label": "y", "score": "s", "sensitive": ["g"], **changes}
    assert [*_check(project, step)] == ([] if field is None else [field])


def test_labels_of_many_numbers_are_for_training_only(tmp_path):
    project = Project(tmp_path, {"name": "x", "data": {"path": "x.csv"}})
    project.look = {"columns": [{"name": "y", "kind": "number", "distinct": 90, "values": []}]}
    project.settings |= {"label": "y", "score": "s", "sensitive": ["g"], "action": "train"}
    assert _check(project, "choose") == {}
    project.settings["action"] = "repair"
    assert [*_check(project, "choose")] == ["action"]
