"""Folders of data and projects of others are no danger, and what fails leaves nothing behind."""

import contextlib
import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlencode

import anyio
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from tests.workbench import people

import fairtransport as ft
from fairtransport.app import TEXTS, say_error, say_plainly
from fairtransport.app.projects import STEPS, Job, Project, Projects, new_folder
from fairtransport.app.recipes import take_code, take_commands
from fairtransport.app.server import Workbench, _check, _chosen, _show


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

    send.projects = workbench.projects
    yield send
    workbench.projects.close()


def test_the_error_of_a_job_is_said_until_the_next_form(post, project):
    post.projects.open["x"] = project
    project.job.error = "That job failed."
    assert "That job failed." in post("/p/x/audit", method="GET")[1]
    assert post("/p/x/audit", b"thresholds=0.5&save=1")[0] == 204
    assert "That job failed." in post("/p/x/audit", method="GET")[1]
    status, page = post("/p/x/audit", b"thresholds=half")
    assert (status, "That job failed." in page) == (422, False)


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
    assert say_error(MemoryError()) == say_error(OSError(errno.ENOMEM, "raise memory=")) == TEXTS["error_memory"]
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
    state = {"name": "x", "data": {"path": "x.csv"}, "settings": None, "results": None, "chosen": None}
    (folder / "project.json").write_text(json.dumps(state))
    assert [post(f"/p/theirs/{step}", method="GET")[0] for step in STEPS] == [200] * 4  # null is as if it were missing
    for results in ({"tradeoff-aware": {"points": 3}}, {"tradeoff-aware": {"points": [{}]}}, {"tradeoff-aware": []}):
        post.projects.open.clear()
        (folder / "project.json").write_text(json.dumps(state | {"results": results}))
        status, page = post("/p/theirs/choose", method="GET")
        assert (status, "is damaged" in page, str(folder) in page) == (422, True, True)


def test_models_are_replaced_together_with_their_result(tmp_path):
    project = Project(tmp_path, {"name": "x", "data": {"path": "x.csv"}})
    (tmp_path / "dpp.ft").write_text("old")
    code = "import sys, pathlib; sys.stdin.readline(); pathlib.Path({!r}).write_text('new'); print('{}')"
    for events, kept in (({}, "old"), ({"done": {"points": [], "models": ["dpp"]}}, "new")):
        (tmp_path / ".scored.csv.12.part").touch()  # as of a job that was ended
        line = code.format(str(tmp_path / "dpp.new.ft"), json.dumps(events))
        process = subprocess.Popen([sys.executable, "-c", line], text=True, stdin=-1, stdout=-1)
        project.start("tradeoff", process, None, {}, lambda: None)
        while project.job.running:
            time.sleep(0.01)
        assert (tmp_path / "dpp.ft").read_text() == kept
        assert {path.name for path in tmp_path.iterdir()} <= {"dpp.ft", "project.json"}
        assert bool(project.results) == (kept == "new")


JOB = """
import pathlib, tempfile, time
from fairtransport.app import worker
def work(job, report):
    pathlib.Path(tempfile.mkdtemp(), "rows").touch()
    report.stage("begun", 0, 1)
    time.sleep(600)
worker._JOBS["look"] = work
worker.main()
"""


def started(code, **environment):
    options = {"text": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **environment}, **options)


def test_a_job_ends_with_its_server_even_if_that_is_killed(tmp_path):
    """While it loads the library, and while it works; its temporary files are removed."""
    for job in ("", '{"kind": "look"}\n'):
        with started(JOB, TMPDIR=str(tmp_path)) as process:
            process.stdin.write(job)
            process.stdin.flush()
            if job:
                assert json.loads(process.stdout.readline())["text"] == "begun"
                assert len([*tmp_path.rglob("rows")]) == 1
            process.stdin.close()  # as the system does for a process that is killed
            assert process.wait(120) == 1
        assert [*tmp_path.iterdir()] == []


SERVER = """
import sys, time
from pathlib import Path
from fairtransport.app.projects import Projects, new_folder
home, data = map(Path, sys.argv[1:])
projects = Projects(home)
with new_folder(home, "people") as folder:
    project = projects.open[projects.create(folder, "people", {"path": str(data)})]
while project.job.running:
    time.sleep(0.01)
project.settings |= {"action": "train", "situation": "aware"}
projects.start(project, "tradeoff")
while project.job.share <= 0.1:
    time.sleep(0.001)
print(project.job._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read from /proc")
def test_training_ends_within_seconds_of_a_server_that_is_killed(tmp_path):
    """While a fit runs, and not at its next line of progress: no line can be sent any more."""
    people(300_000).drop("score", "salary").write_parquet(tmp_path / "many.parquet")
    words = [sys.executable, "-c", SERVER, tmp_path / "home", tmp_path / "many.parquet"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        job = Path("/proc", server.stdout.readline().strip(), "stat")

        def runs():
            with contextlib.suppress(OSError):
                return job.read_text().rpartition(")")[2].split()[0] not in "ZX"
            return False

        assert runs()
        server.kill()
    end = time.monotonic() + 20
    while runs() and time.monotonic() < end:
        time.sleep(0.01)
    assert not runs()


def test_a_cancelled_job_leaves_no_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with started(JOB, TMPDIR=str(tmp_path)) as process:
        process.stdin.write('{"kind": "look"}\n')
        process.stdin.flush()
        process.stdout.readline()
        assert len([*tmp_path.rglob("rows")]) == 1
        Job(process).cancel()
        assert [*tmp_path.iterdir()] == []


def test_a_result_that_is_being_stored_is_not_cancelled():
    process = subprocess.Popen([sys.executable, "-c", "print('{\"done\": {}}')"], text=True, stdin=-1, stdout=-1)
    job, stored = Job(process), []
    job.follow({}, lambda result: (job.cancel(), stored.append(result)), lambda: None, lambda: None)
    assert (stored, job.cancelled, job.running, job.error) == ([{}], False, False, "")


COLUMNS = [
    {"name": "score", "kind": "number", "distinct": 900, "values": {}, "missing": 0, "unit": True, "left_out": ""},
    {"name": "hired", "kind": "words", "distinct": 2, "values": {"no": 9, "yes": 9}, "missing": 0, "left_out": ""},
    {"name": "sex", "kind": "words", "distinct": 1, "values": {"F": 18}, "missing": 0, "left_out": ""},
    {"name": "region", "kind": "words", "distinct": 3, "values": {}, "missing": 0, "left_out": ""},
]


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path, {"name": "x", "data": {"path": "x.csv", "stamp": None}})
    why = dict.fromkeys(("score", "label", "pos_label", "sensitive"), "none")
    made.look = {"columns": COLUMNS, "why": why, "head": [], "rows": 18, "more": True, "tells": []}
    made.settings |= {"score": "score", "label": "hired", "pos_label": "yes", "sensitive": ["sex"]}
    return made


def shown(project, step):
    request = Mock(path_params={"name": "x"}, query_params={})
    return _show(request, project, step, {}).body.decode()


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("0.5, top 10%", True), ("", True), ("1", True), ("0,5", False), ("half", False), ("-3", False),
        ("top 200%", False), ("1e999", False), ("top 0%", False),
    ],
)  # fmt: skip
def test_thresholds_that_the_scores_do_not_have_are_named_beside_the_field_of_the_audit_only(project, text, right):
    project.settings["thresholds"] = text
    assert [*_check(project, "audit")] == ([] if right else ["thresholds"])
    assert _check(project, "choose") == _check(project, "take") == {}  # where there is no such field
    project.settings["min_size"] = "few"
    assert "min_size" in _check(project, "choose")
    assert 'id="min_size"' in shown(project, "choose")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("0,5", "0,5"), ("0,3; 0,5", "0,3; 0,5"), ("0.5,0.7", ""), ("0.5,1", ""), ("1,0.5", ""), ("0.3; 0.5", ""),
        ("0, 1", ""), ("top 10%,top 20%", ""), ("top 12,5%", "12,5"), ("0,1", "0,1"),
    ],
)  # fmt: skip
def test_a_decimal_comma_is_named_as_it_was_typed(project, text, named):
    project.settings["thresholds"] = text
    assert _check(project, "audit") == ({"thresholds": TEXTS["error_comma"].format(text=named)} if named else {})
    assert f'value="{text}"' in shown(project, "audit")


def test_a_score_of_text_and_a_column_with_two_roles_are_explained_beside_the_field(project):
    project.settings |= {"score": "region", "label": "", "pos_label": ""}
    assert [*_check(project, "data")] == ["score"]
    assert [*_check(project, "audit")] == [""]  # the field is under Data
    assert _check(project, "choose") == {}  # to train needs no score
    project.settings |= {"action": "repair"}
    assert [*_check(project, "choose")] == [""]
    project.settings |= {"score": "score", "label": "score"}
    assert _check(project, "data") == {"label": TEXTS["error_twice"].format(name="score")}
    project.settings |= {"label": "sex"}
    assert "sensitive" in _check(project, "data")


def test_columns_of_a_sorted_file_and_those_that_were_chosen_are_offered(project):
    assert 'name="sensitive" value="sex"' in shown(project, "data")  # one value in the first rows, others may follow
    project.look["more"] = False
    project.settings |= {"sensitive": [], "strata": ["region"], "by": "month"}
    assert 'name="sensitive" value="sex"' not in shown(project, "data")
    project.look = {}  # while the file is read again
    page = shown(project, "audit")
    assert 'name="strata" value="region" checked' in page
    assert '<option value="month" selected' in page


def test_dates_are_offered_for_audits_by_month(project):
    project.look["columns"] = [*COLUMNS, {**COLUMNS[3], "name": "since", "kind": "date", "distinct": 900}]
    page = shown(project, "audit")
    assert '<option value="since">since</option>' in page
    assert 'name="strata" value="since"' not in page


def test_a_column_without_a_name_is_shown_and_not_offered_for_a_role(project):
    """In a form, an empty value means that nothing was chosen."""
    unnamed = {**COLUMNS[3], "name": "", "left_out": "in files of pandas, the index of the rows"}
    project.look["columns"] = [*COLUMNS, unnamed]
    for step, field in (("data", "sensitive"), ("audit", "strata")):
        page = shown(project, step)
        assert f'name="{field}" value="region"' in page
        assert f'name="{field}" value=""' not in page
    assert page.count('<option value=""') == 1  # of by: None
    assert "<bdi>&#39;&#39;</bdi>" in shown(project, "data")


POINT = {"disparity": 0.1, "rank_disparity": 0.1, "error": 0.2, "kept": 1.0, "groups": [{"rows": 9}]}
CURVE = {"floor": 0.0, "rows": 18, "groups": ["F"], "notes": [], "regression": False, "labelled": True, "range": None}


def test_results_of_other_settings_are_marked_as_such_and_the_chosen_point_is_kept(project):
    verdict = {"sentence": "x", "status": "x", "points": [], "files": [], "rows": 1}
    points = [{**POINT, "method": "repair", "amount": k / 2} for k in range(3)]
    settings = {**project.now, "methods": ["repair"]}
    project.results |= {"audit": {**verdict, "settings": settings}}
    project.results["tradeoff-repair"] = {**CURVE, "points": points, "settings": settings}
    project.state["chosen"] = {"curve": "repair", "index": 1}
    made, _ = _chosen(project)
    project.results["take"] = {"made": made, "settings": settings, "before": verdict, "after": verdict, "files": []}
    assert made == {"method": "repair", "amount": 0.5}
    current = shown(project, "choose").partition('aria-current="true"')[0].rpartition("point=")[2]
    assert current.startswith("1#")
    steps = ("audit", "choose", "take")
    assert [TEXTS["stale"] in shown(project, step) for step in steps] == [False, False, False]
    for changes, stale in (
        ({"thresholds": "0.4"}, [True, False, False]),
        ({"strata": ["region"]}, [True, True, False]),
    ):
        project.settings |= changes
        assert [TEXTS["stale"] in shown(project, step) for step in steps] == stale
    project.results["tradeoff-repair"]["settings"] = {**settings, "criterion": "equalized_odds"}
    assert TEXTS["stale"] in shown(project, "take")


def test_a_column_that_is_there_already_is_not_written_again(project):
    curve = {**CURVE, "points": [{**POINT, "method": "repair", "amount": 1.0}], "settings": project.now}
    project.results["tradeoff-repair"], project.state["chosen"] = curve, {"curve": "repair", "index": 0}
    project.look["columns"] = [
        *COLUMNS,
        *({**COLUMNS[0], "name": name} for name in ("Score_Repaired", "score_repaired_2")),
    ]
    chosen, _ = _chosen(project)
    assert chosen["output"] == "score_repaired_3"
    assert "--column score_repaired_3" in take_commands("a.csv", project.now, chosen)
    assert "output='score_repaired_3'" in take_code("a.csv", project.now, chosen)


def test_a_project_in_a_folder_of_any_name_has_an_address(projects, tmp_path):
    folder = tmp_path / "My #1 50%"
    folder.mkdir()
    Project(folder, {"version": 1, "name": "x", "data": {"path": "x.csv"}}).save()
    assert projects.load(folder) == "my-1-50"
    ended(projects, "my-1-50")


def test_advice_about_numbers_is_for_those_who_cannot_set_options(tmp_path):
    (tmp_path / "p.csv").write_text("score,sex\n" + "0.1,F\n" * 9 + '"0,2",M\n')
    columns = ft.tables.Columns.named(score="score", sensitive_features="sex")
    with ft.tables.open_files([tmp_path / "p.csv"]) as file, pytest.raises(ValueError, match="decimal=") as error:
        file.run(ft.tables.count_table, columns)
    assert say_error(error.value).endswith(TEXTS["error_numbers"])
    (tmp_path / "p.csv").write_text("score,city\n0.1,Köln\n", encoding="latin-1")
    with pytest.raises(ValueError, match="encoding=") as error, ft.tables.open_files([tmp_path / "p.csv"]) as file:
        [*file.batches(guess=True)]
    assert say_error(error.value).endswith(TEXTS["error_encoding"])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("near its floor (parity_weight 0.3); converged after 9 steps; groups differ by 2 points (95 % confidence)",
         "near its floor; groups differ by 2 points (95 % confidence)"),
        ("More rows, or larger groups (groups=GroupPolicy(small='pool')), show more.",
         "More rows, or larger groups, show more."),
        ("2 of 8 groups have no maps of their own; small_groups_ names them.",
         "2 of 8 groups have no maps of their own."),
        ("No group has min_size=30 rows. Give more rows, or set a smaller min_size=.", "No group has 30 rows."),
        ("It fell from 0.8 to 0.7. Use parity_weight='auto' or another criterion.", "It fell from 0.8 to 0.7."),
        ("Labels can be told from 'capital_gain' alone.", "Labels can be told from 'capital_gain' alone."),
    ],
)  # fmt: skip
def test_what_methods_say_is_shown_without_python(text, plain):
    assert say_plainly(text) == plain


def test_errors_of_the_library_are_said_without_python():
    X, group = np.arange(80.0).reshape(40, 2), ["a"] * 39 + ["b"]
    model = ft.BlindRepairRegressor(LinearRegression(), repair=ft.repair.BlindRepair(groups=ft.GroupPolicy(min_size=1)))
    with pytest.raises(ValueError, match="GroupPolicy") as error:
        model.fit(X, X[:, 0], sensitive_features=group)
    assert say_error(error.value).endswith("Merge small groups with others, or drop them.")
