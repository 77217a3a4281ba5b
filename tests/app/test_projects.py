"""Folders of data and projects of others are no danger, and what fails leaves nothing behind."""

import errno
import json
import os
import subprocess
import sys
import time
from unittest.mock import Mock
from urllib.parse import urlencode

import anyio
import pytest
from tests.workbench import people

from fairtransport.app import TEXTS, say_error
from fairtransport.app.projects import Project, Projects, new_folder
from fairtransport.app.server import Workbench, _check


@pytest.fixture
def projects(tmp_path):
    made = Projects(tmp_path / "home")
    yield made
    made.close()


def ended(projects, name):
    while projects.open[name].job.running:
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
        with new_folder(projects.home, "people") as folder:
            project = ended(projects, projects.create(folder, "people", {"path": str(tmp_path / "people.csv")}))
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
    project.settings["criterion"] = "equal_opportunity"  # of people with the positive label, which numbers do not have
    assert [*_check(project, "choose")] == [*_check(project, "audit")] == ["criterion"]
    project.settings |= {"action": "repair", "criterion": "demographic_parity"}
    assert [*_check(project, "choose")] == ["action"]


def test_strata_of_many_numbers_are_refused_for_repairs_before_anything_is_made(tmp_path):
    project = Project(tmp_path, {"name": "x", "data": {"path": "x.csv"}})
    kinds = {"months": ("number", 33), "year": ("number", 12), "town": ("words", 33)}
    project.look = {
        "columns": [{"name": name, "kind": k, "distinct": n, "values": {}} for name, (k, n) in kinds.items()]
    }
    for strata, wrong in ((["months", "town"], ["strata"]), (["year", "town"], [])):
        project.settings |= {"score": "s", "sensitive": ["g"], "action": "repair", "strata": strata}
        assert [*_check(project, "choose")] == wrong
        assert _check(project, "audit") == {}  # whose numbers are cut at quantiles


@pytest.fixture
def post(tmp_path):
    """Post to a workbench without its gate; a body of None is one that the browser does not finish."""
    workbench = Workbench(tmp_path / "home", 1, "")

    def send(path, body=None, method="POST"):
        sent, (path, _, query) = [], path.partition("?")
        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": []}
        parts = [{"type": "http.request", "body": body or b"a,b\n", "more_body": body is None}]

        async def receive():
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def answer(message):
            sent.append(message)

        anyio.run(workbench.app.router, {**scope, "app": workbench.app}, receive, answer)
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent).decode()

    yield send
    workbench.projects.close()


@pytest.mark.parametrize("name", ["people.json", "people", "people.csv.zip"])
def test_a_file_of_another_kind_is_refused_next_to_its_field_and_nothing_typed_is_lost(post, tmp_path, name):
    (tmp_path / name).write_text("a,b\n")
    status, page = post("/open", urlencode({"path": tmp_path / name, "copy": "on"}).encode())
    assert (status, "no extension that says what it is" in page) == (422, True)
    assert f'value="{tmp_path / name}"' in page
    assert 'name="copy" checked' in page
    assert post(f"/upload?name={name}", b"a,b\n")[0] == 422
    assert not (tmp_path / "home").exists()


def test_the_next_process_is_prepared_while_a_file_is_opened(projects, tmp_path):
    people(60).write_csv(tmp_path / "people.csv")
    with new_folder(projects.home, "people") as folder:
        name = projects.create(folder, "people", {"path": str(tmp_path / "people.csv")})
    ready = projects._spare
    assert ready is not projects.open[name].job._process
    ended(projects, name)
    assert projects._spare is ready


def test_a_full_disk_and_too_little_memory_are_said_in_words():
    full = OSError(errno.ENOSPC, "No space left on device")
    assert say_error(full) == say_error(OSError(errno.EDQUOT, "quota")) == TEXTS["error_disk"]
    assert say_error(MemoryError()) == TEXTS["error_memory"]
    assert say_error(PermissionError(errno.EACCES, "Permission denied", "x")) == "Permission denied: x"


def test_an_upload_that_breaks_off_leaves_no_rows(post, tmp_path):
    assert post("/upload?name=people.csv")[0] == 400
    assert [*(tmp_path / "home").iterdir()] == []
    assert post("/upload?name=people.csv", b"a,b\n1,2\n")[0] == 200
    if os.name == "posix":
        modes = [one.stat().st_mode & 0o777 for one in (tmp_path / "home", tmp_path / "home/people")]
        assert [*modes, (tmp_path / "home/people/data.csv").stat().st_mode & 0o777] == [0o700, 0o700, 0o600]


def test_a_copy_that_fails_leaves_no_rows(post, tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("a,b\n")
    monkeypatch.setattr("shutil.copyfile", Mock(side_effect=OSError(errno.ENOSPC, "full")))
    status, page = post("/open", urlencode({"path": tmp_path / "people.csv", "copy": "on"}).encode())
    assert (status, "The disk is full" in page) == (422, True)
    assert [*(tmp_path / "home").iterdir()] == []


def test_unknown_people_and_damaged_projects_are_explained_in_place(post, tmp_path):
    assert "There is no such file" in post("/open", b"path=~nosuchuser/x.csv")[1]
    folder = tmp_path / "home" / "theirs"
    folder.mkdir(parents=True)
    for text in ('{"name": "x", "da', "[]", '{"name": "x"}', '{"name": "x", "data": {"path": 1}}'):
        (folder / "project.json").write_text(text)
        for answer in (post("/open", f"folder={folder}".encode()), post("/p/theirs/data", method="GET")):
            assert (answer[0], "is damaged" in answer[1]) == (422, True)


def test_models_are_replaced_together_with_their_result(tmp_path):
    project = Project(tmp_path, {"name": "x", "data": {"path": "x.csv"}})
    (tmp_path / "dpp.ft").write_text("old")
    (tmp_path / "dpp.new.ft").write_text("new")
    code = "import sys; sys.stdin.readline(); print('{}')"
    for events, kept in (({}, "old"), ({"done": {"points": [], "models": ["dpp"]}}, "new")):
        line = code.format(json.dumps(events))
        process = subprocess.Popen([sys.executable, "-c", line], text=True, stdin=-1, stdout=-1)
        project.start("tradeoff", process, None, {}, lambda: None)
        while project.job.running:
            time.sleep(0.01)
        assert (tmp_path / "dpp.ft").read_text() == kept
        assert bool(project.results) == (kept == "new")
