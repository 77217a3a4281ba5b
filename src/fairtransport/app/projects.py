"""Projects: a folder with a reference to the data, settings and results; and the jobs that make the results."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from fairtransport.app import TEXTS, say_error
from fairtransport.app.recipes import METHODS, audit_command
from fairtransport.storage import write_atomically

#: Settings by step, with those of a new project.
STEPS: dict[str, dict[str, Any]] = {
    "data": {"score": "", "label": "", "pos_label": "", "sensitive": [], "drop": []},
    "audit": {"criterion": "demographic_parity", "strata": [], "favourable": "high", "thresholds": "", "by": ""}
    | {"small": "keep", "min_size": "30"},
    "choose": {"action": "", "situation": "aware"},
    "take": {},
}
USUAL: dict[str, Any] = {name: value for fields in STEPS.values() for name, value in fields.items()}
_FILE, _NONE = "project.json", {"curve": "", "index": 0}


def _address(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "project"


@contextlib.contextmanager
def new_folder(home: Path, name: str) -> Iterator[Path]:
    """Create the folder of a new project, with a name that is safe in an address; if the block fails, remove it."""
    stem = _address(Path(name).name.split(".")[0])
    folder = next(one for k in count(1) if not (one := home / (stem if k == 1 else f"{stem}-{k}")).exists())
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a process, and remove its temporary files."""
    process.kill()
    process.wait()
    for folder in Path(tempfile.gettempdir()).glob(f"fairtransport-{process.pid}-*"):
        shutil.rmtree(folder, ignore_errors=True)


class Job:
    """A process that works on one step of a project; it can be ended at any moment."""

    def __init__(self, process: subprocess.Popen[str] | None = None) -> None:
        self._process, self.cancelled, self.running, self.error = process, False, process is not None, ""
        self.share, self.text = 0.0, TEXTS["job_wait"]

    def follow(self, request: dict[str, Any], finish: Callable[[Any], None], clean: Any, then: Any) -> None:
        """Send the request, and read events until the process ends; in a thread of its own."""
        result: dict[str, Any] | None = None
        process: Any = self._process
        with contextlib.suppress(OSError, ValueError), process:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()  # it stays open: when it ends, the process knows that nobody waits
            for event in map(json.loads, process.stdout):
                result, self.error = event.get("done", result), event.get("error", self.error)
                self.share, self.text = event.get("share", self.share), event.get("text", self.text)
        if result is not None:
            try:
                finish(result)
            except OSError as error:
                self.error = say_error(error)
        elif not self.cancelled:
            self.error = self.error or TEXTS["error_killed"]
        _end(process)
        clean()
        self.running, self.cancelled = False, self.cancelled and result is None  # a result is kept, once it is complete
        then()

    def cancel(self) -> None:
        """End the process, if there is one."""
        self.cancelled = self.cancelled or self.running
        if self._process is not None:
            _end(self._process)


class Project:
    """A folder with settings and results, and the job that works on it."""

    def __init__(self, folder: Path, state: dict[str, Any] | None = None) -> None:
        read = json.loads((folder / _FILE).read_text(encoding="utf-8")) if state is None else state
        known = {name: value for name, value in read.items() if value is not None}
        self.state: dict[str, Any] = {"settings": None, "results": {}, "chosen": _NONE, **known}
        self.settings: dict[str, Any] = {**USUAL, **(self.state["settings"] or {})}
        self.results: dict[str, Any] = self.state["results"]
        self.folder, self.look, self.job = folder, dict[str, Any](), Job()

    @property
    def path(self) -> str:
        """The data file; a relative one is in the folder of the project."""
        return str(self.folder / self.state["data"]["path"])

    def column(self, name: str) -> dict[str, Any]:
        """Return what is known about a column."""
        return next((one for one in self.look.get("columns", ()) if one["name"] == name), {"distinct": 0})

    @property
    def stamp(self) -> list[int] | None:
        """Size and time of the data file, by which it is seen that it has changed."""
        with contextlib.suppress(OSError):
            known = Path(self.path).stat()
            return [known.st_size, known.st_mtime_ns]
        return None

    def save(self) -> None:
        """Write settings and results; the file is replaced only once it is complete."""
        self.state["settings"] = self.settings
        write_atomically(self.folder / _FILE, json.dumps(self.state, indent=1).encode())

    @property
    def now(self) -> dict[str, Any]:
        """The settings of now, as jobs have them."""
        known = {} if self.column(self.settings["label"])["distinct"] in {1, 2} else {"pos_label": ""}  # of numbers
        parts = [*filter(None, map(str.strip, re.split("[,;]", self.settings["thresholds"])))]
        return {**self.settings, "thresholds": parts, **known}

    def clean(self) -> None:
        """Remove what a job that was ended has left."""
        for part in (*self.folder.glob(".*.part"), *self.folder.glob("*.new.ft")):
            part.unlink(missing_ok=True)

    def start(self, kind: str, process: Any, chosen: Any, curve: dict[str, Any], then: Callable[[], None]) -> None:
        """Start a job with the settings of now, or with those of the curve that a point was chosen from."""
        self.clean()
        settings = {**curve["settings"]} if kind == "take" else self.now
        situation = settings["action"] if settings["action"] == "repair" else settings["situation"]
        settings["methods"] = [name for name, about in METHODS.items() if about[1] == situation]
        request = {"kind": kind, "path": self.path, "folder": str(self.folder), "settings": settings, "chosen": chosen}
        request |= {"shipped": self.state["data"].get("shipped"), "range": curve.get("range")}
        if kind == "audit":
            request["command"] = audit_command(self.path, settings)
        self.job = job = Job(process)

        def finish(result: dict[str, Any]) -> None:
            if kind == "look":
                self.settings |= {} if self.state["settings"] else result["guess"]
                self.state["data"]["shipped"] = None
            else:
                name = f"tradeoff-{situation}" if kind == "tradeoff" else kind
                for method in result.pop("models", ()):  # until now, those of the result before
                    (self.folder / f"{method}.new.ft").replace(self.folder / f"{method}.ft")
                self.results[name] = {**result, "settings": settings}
                self.state["data"]["stamp"] = self.stamp
            self.save()
            self.look = result if kind == "look" else self.look  # last: then the form is shown

        threading.Thread(target=job.follow, args=(request, finish, self.clean, then), daemon=True).start()


class Projects:
    """The projects that are open, and a process that has loaded the library and waits for the next job."""

    def __init__(self, home: Path) -> None:
        self.home, self.open, self._closed = home.absolute(), dict[str, Project](), False
        self._lock = threading.Lock()  # of the process that waits
        self._spare: subprocess.Popen[str] | None = self._spawn()

    def known(self) -> list[Path]:
        """Return the folders of projects, the latest first."""
        return [one.parent for one in sorted(self.home.glob(f"*/{_FILE}"), key=lambda one: -one.stat().st_mtime)]

    def create(self, folder: Path, name: str, data: dict[str, Any]) -> str:
        """Make a project of a data file, and begin to read it."""
        project = Project(folder, {"version": 1, "name": name, "data": data})
        write_atomically(folder / _FILE, json.dumps(project.state).encode())
        return self._add(project)

    def load(self, folder: Path) -> str:
        """Open the project of a folder."""
        if not (folder / _FILE).is_file():
            raise ValueError(TEXTS["error_folder"])
        try:
            project = Project(folder.resolve())
            whole = isinstance(project.state["name"], str) and bool(project.path) and isinstance(project.results, dict)
            whole = whole and all(isinstance(project.settings[name], type(value)) for name, value in USUAL.items())
        except (ValueError, LookupError, TypeError, AttributeError):  # truncated, or written by something else
            whole = False
        if not whole:
            raise ValueError(TEXTS["error_project"])
        return self._add(project)

    def find(self, name: str) -> Project | None:
        """Return an open project, or open the one of this name; None if there is none."""
        if name not in self.open and re.fullmatch(r"[a-z0-9-]+", name) and (self.home / name / _FILE).is_file():
            self.load(self.home / name)
        return self.open.get(name)

    def _add(self, project: Project) -> str:
        name = _address(project.folder.name)
        while name in self.open and self.open[name].folder != project.folder:
            name += "-x"
        if name not in self.open or not self.open[name].job.running:
            self.open[name] = project
            self.start(project, "look")
        return name

    def start(self, project: Project, kind: str, chosen: Any = None, curve: Any = None) -> None:
        """Start a job in the waiting process; when it has ended, or while a file is opened, prepare the next one."""
        with self._lock:
            process, self._spare = self._spare or self._spawn(), self._spawn() if kind == "look" else None
        project.start(kind, process, chosen, curve or {}, self._refill)

    def _refill(self) -> None:
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = self._spawn()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
        for project in self.open.values():
            project.job.cancel()
        if self._spare is not None:
            _end(self._spare)
            self._spare.communicate()

    @staticmethod
    def _spawn() -> subprocess.Popen[str]:
        # The folder that the workbench was started in may be one of data: no module is imported from there.
        command = [sys.executable, "-P", "-W", "ignore", "-m", "fairtransport.app.worker"]
        folders = [str(Path(one).absolute()) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
        place: Any = {"cwd": sys.prefix, "env": {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}}
        streams: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, text=True, encoding="utf-8", **streams, **place)  # noqa: S603 - our own module
