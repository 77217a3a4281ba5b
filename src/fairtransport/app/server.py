"""The server of the workbench: pages, forms and files, for the person who started it only."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import sys
import webbrowser
from collections.abc import Callable
from importlib import resources
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from anyio import to_thread
from jinja2 import UndefinedError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

import fairtransport as ft
from fairtransport.app import TEXTS, say_error
from fairtransport.app.projects import STEPS, Job, Project, Projects, new_folder
from fairtransport.app.recipes import added_column, audit_code, audit_command, take_code, take_commands
from fairtransport.report import base_style, template_environment
from fairtransport.serving import OneTimeToken, SecurityHeaders
from fairtransport.strata import MOST_VALUES
from fairtransport.tables import file_extension
from fairtransport.tabular import positive_label

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src "
    "data:; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",  # with none, browsers do not say the origin of a form
    "X-Frame-Options": "SAMEORIGIN",
}
#: Pages of results run their own script, in a frame without access to the workbench.
_RESULT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: "
    "blob:; frame-ancestors 'self'"
)
_THRESHOLD = re.compile(r"(-?\d*\.?\d+(?:e-?\d+)?)|top (\d*\.?\d+) ?%", re.IGNORECASE)
_COMMA = re.compile(r"(?<![\d.])\d+,\d+(?![\d.])")  # one number, or two
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 620, 20, 310  # of the area of points, in a picture of 640 by 360
_LEAK = 0.98  # area under the ROC curve that features known before the outcome hardly ever reach
_DATA = ("score", "label", "pos_label", "sensitive")
#: Settings that a result depends on.
_USED = {"audit": (*_DATA, *STEPS["audit"]), "choose": (*_DATA, "drop", "criterion", "strata", "small", "min_size")}
_TEMPLATES = template_environment("fairtransport.app")
_TEMPLATES.globals |= {"t": TEXTS, "steps": [*STEPS]}


def _page(template: str, /, errors: dict[str, str], **context: Any) -> Response:
    return HTMLResponse(_TEMPLATES.get_template(template).render(errors=errors, **context), 422 if errors else 200)


class Workbench:
    """The application: projects below a folder, and the routes that show and change them."""

    def __init__(self, home: Path, port: int, token: str) -> None:
        self.projects = Projects(home)
        folder = resources.files("fairtransport.app").joinpath("templates")
        style = base_style() + folder.joinpath("app.css").read_text(encoding="utf-8")
        script = folder.joinpath("app.js").read_text(encoding="utf-8")
        routes = [
            Route("/", lambda _: self._start({}, {})),
            Route("/app.css", lambda _: Response(style, media_type="text/css")),
            Route("/app.js", lambda _: Response(script, media_type="text/javascript")),
            Route("/open", self.open_path, methods=["POST"]),
            Route("/upload", self.upload, methods=["POST"]),
            Route("/p/{name}/job", self.job, methods=["GET", "POST"]),
            Route("/p/{name}/file/{file}", self.file),
            Route("/p/{name}/{step}", self.step, methods=["GET", "POST"]),
        ]
        gates = [Middleware(SecurityHeaders, changes=_HEADERS), Middleware(OneTimeToken, port=port, token=token)]
        self.app = Starlette(routes=routes, middleware=gates)

    def _project(self, request: Request) -> Project:
        """Return the project of an address; where there is none, go to the start."""
        project = self.projects.find(request.path_params["name"])
        if project is None or request.path_params.get("step", "data") not in STEPS:
            raise HTTPException(303, headers={"Location": "/"})
        return project

    def _start(self, errors: dict[str, str], typed: dict[str, str]) -> Response:
        """Show the ways to open data, and the projects."""
        shown = {"shipped": ft.datasets.list_datasets(), "home": self.projects.home, "step": "start"}
        return _page("start.html", errors, typed=typed, folders=self.projects.known(), **shown)

    async def open_path(self, request: Request) -> Response:
        """Open a file by its path, a shipped data set, or the folder of a project."""
        typed = {name: values[-1] for name, values in (await _form(request)).items()}
        field = next((name for name in ("shipped", "folder") if name in typed), "path")
        try:
            name = await to_thread.run_sync(self.open, field, typed)
        except (OSError, ValueError) as error:
            return self._start({field: say_error(error)}, typed)
        return RedirectResponse(f"/p/{name}/data", 303)

    def open(self, field: str, typed: dict[str, str]) -> str:
        """Open what a field of the start page names, and return the name of the project."""
        text = typed.get(field, "").strip().strip('"')
        path = Path(os.path.expanduser(text))  # noqa: PTH111 - that of somebody who is not known here stays as it is
        if field == "folder":
            return self.projects.load(path)
        data = {"path": f"{text}.parquet", "shipped": text}
        if field != "shipped" or text not in {one.name for one in ft.datasets.list_datasets()}:
            if not text or not path.is_file():
                raise ValueError(TEXTS["error_path"])
            if not file_extension(path.name):
                raise ValueError(TEXTS["error_upload"])
            data = {"path": f"data{file_extension(path.name)}" if "copy" in typed else str(path.resolve())}
        with new_folder(self.projects.home, path.name) as folder:
            if "copy" in typed:
                shutil.copyfile(path, folder / data["path"])
            return self.projects.create(folder, path.name, data)

    async def upload(self, request: Request) -> Response:
        """Copy a file from the browser into a new project."""
        name = request.query_params.get("name", "")
        if not file_extension(name):
            return JSONResponse({"error": TEXTS["error_upload"]}, 422)
        try:
            with new_folder(self.projects.home, name) as folder:
                copy = folder / f"data{file_extension(name)}"
                copy.touch(mode=0o600)
                with copy.open("wb") as file:
                    async for chunk in request.stream():
                        await to_thread.run_sync(file.write, chunk)
                made = self.projects.create(folder, name, {"path": copy.name})
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except OSError as error:
            return JSONResponse({"error": say_error(error)}, 507)
        return JSONResponse({"go": f"/p/{made}/data"})

    async def step(self, request: Request) -> Response:
        """Show a step of a project; with a form, keep what was typed, check it, and start the step."""
        name, step = request.path_params["name"], request.path_params["step"]
        try:
            project = self._project(request)
            shown = _show(request, project, step, {})
        except (ValueError, LookupError, TypeError, AttributeError, UndefinedError):  # a damaged one
            self.projects.open.pop(name, None)
            return self._start({"folder": TEXTS["error_project"]}, {"folder": str(self.projects.home / name)})
        if request.method != "POST":
            return shown
        form = await _form(request)
        try:
            await to_thread.run_sync(_keep, project, step, form)
        except OSError as error:
            return _show(request, project, step, {"": say_error(error)})
        if "save" in form:
            return Response(status_code=204)
        project.job = project.job if project.job.running else Job()  # what was said of the last one has been read
        if "curve" in form:  # a point was chosen
            return RedirectResponse(f"/p/{name}/take", 303)
        errors, following = _check(project, step), step
        if step == "data":
            following = "audit" if project.settings["score"] else "choose"
        elif not errors and project.job.running:
            errors = {"": TEXTS["error_busy"]}
        elif not errors:
            self.projects.start(project, {"choose": "tradeoff"}.get(step, step), *_chosen(project))
        return _show(request, project, step, errors) if errors else RedirectResponse(f"/p/{name}/{following}", 303)

    async def job(self, request: Request) -> Response:
        """Return where the job of a project stands; a form ends the job."""
        job = self._project(request).job
        if request.method == "POST":
            job.cancel()
            return RedirectResponse(request.headers.get("referer", "/"), 303)
        return JSONResponse({"share": job.share, "text": job.text, "running": job.running})

    async def file(self, request: Request) -> Response:
        """Return a result: a page for a frame, or any file to download."""
        project, name = self._project(request), request.path_params["file"]
        known = {file for result in project.results.values() for file in result.get("files", ())}
        if name not in known or not (project.folder / name).is_file():
            return PlainTextResponse(TEXTS["error_gone"], 404)
        if "download" in request.query_params:
            return FileResponse(project.folder / name, filename=name, media_type="application/octet-stream")
        return FileResponse(project.folder / name, headers={"Content-Security-Policy": _RESULT_POLICY})


async def _form(request: Request) -> dict[str, list[str]]:
    return parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)


def _keep(project: Project, step: str, form: dict[str, list[str]]) -> None:
    """Keep what was typed, and the point that was chosen."""
    for field, usual in {**(STEPS["audit"] if step == "choose" else {}), **STEPS[step]}.items():
        if field in form or f"has_{field}" in form:
            typed = form.get(field, [])
            project.settings[field] = typed if isinstance(usual, list) else (typed or [""])[-1]
    if "curve" in form and form["index"][-1].isdecimal():
        project.state["chosen"] = {"curve": form["curve"][-1], "index": int(form["index"][-1])}
    project.save()


def _check(project: Project, step: str) -> dict[str, str]:
    """Return what is wrong with the settings of a step, by field; above the form where the field is under Data."""
    settings, repairs = project.settings, step == "choose" and project.settings["action"] == "repair"
    roles = [name for name in (settings["score"], settings["label"], *settings["sensitive"]) if name]
    twice = next((name for name in roles if roles.count(name) > 1), None)
    score, here = project.column(settings["score"]), step == "data"
    most = 1.0 if score.get("unit") else sys.float_info.max
    commas = _COMMA.findall(settings["thresholds"])
    wrong = commas or [text for text in project.now["thresholds"] if not _is_threshold(text, most)]
    strata = [one for one in map(project.column, settings["strata"]) if one["distinct"] > MOST_VALUES]
    label, size, criterion = project.column(settings["label"]), settings["min_size"], settings["criterion"]
    found = {"sensitive": "" if settings["sensitive"] else "error_sensitive"}
    found["score"] = "" if settings["score"] or settings["label"] else "error_need"
    if twice:
        found["sensitive" if twice in settings["sensitive"] else "label" if here else ""] = "error_twice"
    if step == "take":
        return {}  # with the settings of its curve
    if step != "data":
        parity, numbers = criterion == "demographic_parity", label["distinct"] > 2 and criterion == "equal_opportunity"
        found |= {
            "thresholds": ("error_comma" if commas else "error_threshold") if wrong and step == "audit" else "",
            "min_size": "" if size.isdecimal() and int(size) else "error_min_size",
            "criterion": "error_opportunity" if numbers else "" if parity or settings["label"] else "error_label",
            "strata": "error_strata" if repairs and any(one["kind"] == "number" for one in strata) else "",
            "by": "error_by" if step == "audit" and settings["by"] and (settings["strata"] or not parity) else "",
        }
    if label["distinct"] > 2 and (repairs or label["kind"] != "number"):
        found["action" if repairs else "label" if here else ""] = "error_labels"
    elif label["distinct"] in {1, 2}:
        try:
            positive_label([*label["values"]], settings["pos_label"] or None)
        except ValueError:
            found["pos_label" if here else ""] = "error_pos_label"
    if (repairs or step != "choose") and score["distinct"] and score["kind"] != "number" and not score.get("unit"):
        found["score" if here else ""] = "error_score"
    return {field: TEXTS[text].format(name=twice, text="; ".join(wrong)) for field, text in found.items() if text}


def find_warnings(columns: list[dict[str, Any]], tells: Any, roles: dict[str, Any]) -> list[str]:
    """Return warnings about identifiers, columns that give the label away, and proxies of sensitive columns."""
    commas = [one["name"] for one in columns if "decimal comma" in one["left_out"]]
    found = [TEXTS["warn_comma"].format(names=", ".join(commas))] if commas else []
    aside = [one for one in columns if one["left_out"] and one["name"] not in commas]
    found += [TEXTS["warn_left_out"].format(name=o["name"] or "''", why=o["left_out"]) for o in aside]
    named = {roles["label"], roles["score"], *roles["sensitive"], *roles["drop"]}
    for target, name, value, area in tells:
        message = "warn_leak" if target == roles["label"] else "warn_proxy" if target in roles["sensitive"] else ""
        if message and name not in named and (area >= _LEAK or message == "warn_proxy"):
            found.append(TEXTS[message].format(name=name, target=target, value=value, share=f"{area:.0%}"))
    return found


def _is_threshold(text: str, most: float) -> bool:
    if not (match := _THRESHOLD.fullmatch(text)):
        return False
    return 0.0 < float(match[2]) < 100.0 if match[2] else (0.0 if most == 1.0 else -most) <= float(match[1]) <= most


def _is_stale(project: Project, step: str, result: dict[str, Any]) -> bool:
    """Return whether settings that a result depends on have changed since."""
    return bool(project.look) and any(result["settings"][name] != project.now[name] for name in _USED[step])


def _show(request: Request, project: Project, step: str, errors: dict[str, str]) -> Response:
    """Show a step of a project."""
    columns, settings, result = project.look.get("columns", []), project.settings, project.results.get(step)
    least = 1 if project.look.get("more") else 2  # the rows that are described may be of one group
    few = [one["name"] for one in columns if least <= one["distinct"] <= 100]
    few += [*settings["sensitive"], *settings["strata"], settings["by"]]
    named, (chosen, curve) = {"train": settings["label"], "repair": settings["score"]}, _chosen(project)
    context = {**vars(project), "project": project, "name": request.path_params["name"], "step": step}
    context |= {"columns": columns, "result": result, "chosen": chosen}
    context["few"] = [(name, name) for name in dict.fromkeys(few) if name]
    context["dates"] = [(one["name"],) * 2 for one in columns if one["kind"] == "date" and one["name"] not in few]
    context["warnings"] = find_warnings([] if step == "choose" else columns, project.look.get("tells", ()), settings)
    context["criteria"] = [(name[10:], text) for name, text in TEXTS.items() if name.startswith("criterion_")]
    context["actions"] = [(name, TEXTS[f"action_{name}"]) for name, column in named.items() if column]
    context["pictures"] = _pictures(project, request.query_params) if step == "choose" else {}
    if step == "audit" and result:
        path, used, stale = project.path, result["settings"], _is_stale(project, step, result)
        context |= {"command": audit_command(path, used), "code": audit_code(path, used), "stale": stale}
    if step == "take" and chosen:
        context["stale"] = result and (result["made"], result["settings"]) != (chosen, curve["settings"])
        recipe = (project.path, curve["settings"], chosen, curve["range"])
        context |= {"command": take_commands(*recipe), "code": take_code(*recipe, regression=curve["regression"])}
    return _page(f"{step}.html", errors, **context)


def _chosen(project: Project) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the chosen point, and the curve that it is on."""
    chosen = project.state["chosen"]
    result = project.results.get(f"tradeoff-{chosen['curve']}", {"points": []})
    points = result["points"][chosen["index"] :][:1]
    if not points:
        return {}, {}
    point = {name: points[0][name] for name in ("method", "amount")}
    taken = {one["name"].casefold() for one in project.look.get("columns", ())}
    usual = added_column(result["settings"], point)
    free = next(name for name in chain([usual], (f"{usual}_{k}" for k in count(2))) if name.casefold() not in taken)
    return ({**point, "output": free} if free != usual else point), result


def _pictures(project: Project, query: Any) -> dict[str, Any]:
    """Return the curves with the coordinates of their points, and the point of each to look at."""
    pictures = {}
    for name in ("repair", "aware", "blind"):
        result = project.results.get(f"tradeoff-{name}", {"points": []})
        points = [{**point, "index": index} for index, point in enumerate(result["points"])]
        if not points:
            continue
        across, x_ticks = _axis([0.0, result["floor"], *(point["disparity"] for point in points)], _LEFT, _RIGHT)
        up, y_ticks = _axis([point["error"] for point in points], _BOTTOM, _TOP)
        for point in points:
            point |= {"x": across(point["disparity"]), "y": up(point["error"])}
        chosen = min(points, key=lambda point: (point["amount"] < 1, point["error"]))
        taken = project.state["chosen"]
        if query.get("curve") == name and query.get("point", "").isdecimal():
            taken = {"curve": name, "index": int(query["point"])}
        if taken["curve"] == name:
            chosen = points[min(taken["index"], len(points) - 1)]
        about = {"floor": across(result["floor"]), "result": result, "stale": _is_stale(project, "choose", result)}
        about |= {"methods": [*dict.fromkeys(point["method"] for point in points)], "points": points, "point": chosen}
        pictures[name] = {**about, "x_ticks": x_ticks, "y_ticks": y_ticks}
    return pictures


def _axis(values: list[float], start: float, end: float) -> tuple[Callable[[float], float], list[tuple[float, float]]]:
    """Return the position of a value on an axis, and its ticks."""
    low, span = min(values), (max(values) - min(values)) or 1.0

    def place(value: float) -> float:
        return round(start + (end - start) * (0.04 + 0.92 * (value - low) / span), 1)

    return place, [(low + span * k / 3, place(low + span * k / 3)) for k in range(4)]


def serve_app(
    file: str | None, *, home: Path, port: int = 0, open_browser: bool = True, on_start: Callable[[str], object]
) -> None:
    """Serve the workbench on this machine until it is interrupted."""
    os.umask(0o077)  # what is written here and by jobs is for this person only
    with socket.create_server(("127.0.0.1", port)) as listener:
        port, token, start = listener.getsockname()[1], secrets.token_urlsafe(24), ""
        workbench = Workbench(home, port, token)
        with contextlib.closing(workbench.projects):
            if file is not None:
                start = f"p/{workbench.open('path', {'path': file})}/data"
            url = f"http://127.0.0.1:{port}/{start}?token={token}"
            on_start(url)
            if open_browser:
                webbrowser.open(url)
            options: Any = {"log_config": None, "log_level": "critical", "server_header": False, "ws": "none"}
            uvicorn.Server(uvicorn.Config(workbench.app, lifespan="off", **options)).run([listener])
