"""The server of the workbench: pages, forms and files, for the person who started it only."""

from __future__ import annotations

import contextlib
import errno
import hmac
import html
import os
import re
import secrets
import shutil
import socket
import webbrowser
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

import fairtransport as ft
from fairtransport._labels import positive_label
from fairtransport.app.projects import STEPS, Project, Projects, new_folder, split_thresholds
from fairtransport.app.recipes import audit_command, take_code, take_commands
from fairtransport.app.texts import TEXTS
from fairtransport.report.style.web_pages import base_style, template_environment
from fairtransport.serving.settings import SecurityHeaders, local_names

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
_MOST_FORM = 1 << 20
_FORMATS = re.compile(r"(\.csv|\.tsv|\.jsonl|\.ndjson)(\.gz|\.zst)?$|\.(parquet|feather|arrow|xlsx?)$", re.IGNORECASE)
_THRESHOLD = re.compile(r"-?\d*\.?\d+(e-?\d+)?|top \d*\.?\d+ ?%", re.IGNORECASE)
_CRITERIA = ("demographic_parity", "equalized_odds", "equal_opportunity")


class Gate:
    """Middleware that admits this machine's own browser, with the cookie that the one-time token was exchanged for."""

    def __init__(self, app: Any, port: int, token: str) -> None:
        self._app, self._hosts, self._token = app, local_names(port), token
        self._name, self._cookie = f"fairtransport-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            await (self._answer(Request(scope)) or self._app)(scope, receive, send)

    def _answer(self, request: Request) -> Response | None:
        """Return the refusal of a request for another host, from another page or without cookie, or the cookie."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        site, token = request.headers.get("sec-fetch-site", "none"), request.query_params.get("token", "")
        foreign = host not in self._hosts or origin not in {None, f"http://{host}"}
        if request.method != "GET":
            foreign = foreign or origin is None or site not in {"none", "same-origin"}
        if foreign or (site in {"cross-site", "same-site"} and not token):
            return PlainTextResponse(TEXTS["refused_origin"], 403)
        if self._token and hmac.compare_digest(token.encode(), self._token.encode()):
            self._token = ""  # it works once
            # Not a redirect: the first request after one from another site would have no strict cookie.
            path = html.escape("/" + request.url.path.lstrip("/"))
            answer = HTMLResponse(f'<meta http-equiv="refresh" content="0;url={path}">')
            answer.set_cookie(self._name, self._cookie, httponly=True, samesite="strict")
            return answer
        known = hmac.compare_digest(request.cookies.get(self._name, "").encode(), self._cookie.encode())
        return None if known else PlainTextResponse(TEXTS["refused_token"], 403)


@cache
def _templates() -> Any:
    environment = template_environment("fairtransport.app")
    environment.globals |= {"t": TEXTS, "steps": [*STEPS]}
    return environment


def _page(template: str, /, errors: dict[str, str] | None = None, **context: Any) -> Response:
    text = _templates().get_template(template).render({"errors": errors or {}, "job": None, **context})
    return HTMLResponse(text, 422 if errors else 200)


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
            Route("/p/{name}/job", self.job),
            Route("/p/{name}/cancel", self.cancel, methods=["POST"]),
            Route("/p/{name}/file/{file}", self.file),
            Route("/p/{name}/{step}", self.step, methods=["GET", "POST"]),
        ]
        gates = [Middleware(SecurityHeaders, changes=_HEADERS), Middleware(Gate, port=port, token=token)]
        self.app = Starlette(routes=routes, middleware=gates)

    def _start(self, errors: dict[str, str], typed: dict[str, str]) -> Response:
        """Show the ways to open data, and the projects."""
        shown = {"shipped": ft.datasets.list_datasets(), "home": self.projects.home, "step": "start"}
        return _page("start.html", errors, typed=typed, folders=self.projects.known(), **shown)

    async def open_path(self, request: Request) -> Response:
        """Open a file by its path, a shipped data set, or the folder of a project."""
        typed = {name: values[-1] for name, values in (await _form(request)).items()}
        field = next((name for name in ("shipped", "folder") if name in typed), "path")
        try:
            name = await to_thread.run_sync(self._open, field, typed)
        except (OSError, ValueError) as error:
            return self._start({field: _say(error)}, typed)
        return RedirectResponse(f"/p/{name}/data", 303)

    def _open(self, field: str, typed: dict[str, str]) -> str:
        text = typed.get(field, "").strip().strip('"')
        path = Path(text)
        with contextlib.suppress(RuntimeError):  # of a person who is not known here
            path = path.expanduser()
        if field == "folder":
            return self.projects.load(path)
        if field == "shipped" and text in {one.name for one in ft.datasets.list_datasets()}:
            return self.projects.create(text, {"path": f"{text}.parquet", "shipped": text})
        if not text or not path.is_file():
            raise ValueError(TEXTS["error_path"])
        if "copy" not in typed:
            return self.projects.create(path.name, {"path": str(path.resolve())})
        with new_folder(self.projects.home, path.name) as folder:
            (folder / copy_name(path.name)).touch(mode=0o600)
            shutil.copyfile(path, folder / copy_name(path.name))
            return self.projects.create(path.name, {"path": copy_name(path.name)}, folder)

    async def upload(self, request: Request) -> Response:
        """Copy a file from the browser into a new project."""
        name = request.query_params.get("name", "")
        if not _FORMATS.search(name):
            return JSONResponse({"error": TEXTS["error_upload"]}, 422)
        try:
            with new_folder(self.projects.home, name) as folder:
                (folder / copy_name(name)).touch(mode=0o600)
                with (folder / copy_name(name)).open("wb") as file:
                    async for chunk in request.stream():
                        await to_thread.run_sync(file.write, chunk)
                made = self.projects.create(name, {"path": copy_name(name)}, folder)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except OSError as error:
            return JSONResponse({"error": _say(error)}, 507)
        return JSONResponse({"go": f"/p/{made}/data"})

    async def step(self, request: Request) -> Response:
        """Show a step of a project; with a form, keep what was typed, check it, and start the step."""
        name, step = request.path_params["name"], request.path_params["step"]
        project = self.projects.find(name)
        if project is None and self.projects.home / name in self.projects.known():
            return self._start({"folder": TEXTS["error_project"]}, {"folder": str(self.projects.home / name)})
        if project is None or step not in STEPS:
            return RedirectResponse("/", 303)
        if request.method != "POST":
            return _show(request, project, step, {})
        form = await _form(request)
        try:
            await to_thread.run_sync(_keep, project, step, form)
        except OSError as error:
            return _show(request, project, step, {"": _say(error)})
        if "save" in form:
            return Response(status_code=204)
        return self._begin(request, project, step, chosen="curve" in form)

    def _begin(self, request: Request, project: Project, step: str, *, chosen: bool) -> Response:
        """Start the step, and show it; or the one that follows it, where there is nothing to compute."""
        following = "take" if chosen else step
        errors = {} if chosen else _check(project, step)
        if step == "data":
            following = "audit" if project.settings["score"] else "choose"
        elif not errors and not chosen and project.job.running:
            errors = {"": TEXTS["error_busy"]}
        elif not errors and not chosen:
            self.projects.start(project, {"choose": "tradeoff"}.get(step, step), *_chosen(project))
        if errors:
            return _show(request, project, step, errors)
        return RedirectResponse(f"/p/{request.path_params['name']}/{following}", 303)

    async def job(self, request: Request) -> Response:
        """Return where the job of a project stands."""
        project = self.projects.find(request.path_params["name"])
        shown = ("share", "text", "running")
        return JSONResponse({name: getattr(project.job, name) for name in shown} if project else {})

    async def cancel(self, request: Request) -> Response:
        """End the job of a project."""
        project = self.projects.find(request.path_params["name"])
        if project is not None:
            project.job.cancel()
        return RedirectResponse(request.headers.get("referer", "/"), 303)

    async def file(self, request: Request) -> Response:
        """Return a result: a page for a frame, or any file to download."""
        project, name = self.projects.find(request.path_params["name"]), request.path_params["file"]
        known = {file for result in project.results.values() for file in result.get("files", ())} if project else set()
        if project is None or name not in known or not (project.folder / name).is_file():
            return PlainTextResponse(TEXTS["error_gone"], 404)
        if "download" in request.query_params:
            return FileResponse(project.folder / name, filename=name, media_type="application/octet-stream")
        return FileResponse(project.folder / name, headers={"Content-Security-Policy": _RESULT_POLICY})


async def _form(request: Request) -> dict[str, list[str]]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_FORM:
            return {}
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


def _keep(project: Project, step: str, form: dict[str, list[str]]) -> None:
    """Keep what was typed, and the point that was chosen."""
    for field, usual in {**(STEPS["audit"] if step == "choose" else {}), **STEPS[step]}.items():
        if field in form or f"has_{field}" in form:
            typed = form.get(field, [])
            project.settings[field] = typed if isinstance(usual, list) else (typed or [""])[-1]
    if "curve" in form and form["index"][-1].isdecimal():
        project.state["chosen"] = {"curve": form["curve"][-1], "index": int(form["index"][-1])}
    project.save()


def copy_name(name: str) -> str:
    """Return the name of a copy of a file: of the name that was given, only the known extension is used."""
    found = _FORMATS.search(name)
    return "data" + (found[0].lower() if found else "".join(Path(name).suffixes[-1:]))


def _say(error: Exception) -> str:
    if isinstance(error, OSError):
        return TEXTS["error_disk" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "error_write"]
    return str(error)


def _check(project: Project, step: str) -> dict[str, str]:
    """Return what is wrong with the settings of a step, by field; above the form where the field is under Data."""
    settings, repairs = project.settings, step == "choose" and project.settings["action"] == "repair"
    roles = [name for name in (settings["score"], settings["label"], *settings["sensitive"]) if name]
    twice = next((name for name in roles if roles.count(name) > 1), None)
    wrong = [text for text in split_thresholds(settings["thresholds"]) if not _THRESHOLD.fullmatch(text)]
    size, parity = settings["min_size"], settings["criterion"] == "demographic_parity"
    known: dict[str, Any] = {one["name"]: one for one in project.look.get("columns", ())}
    label = known.get(settings["label"], {"distinct": 0})
    found = {
        "sensitive": "error_twice" if twice else "" if settings["sensitive"] else "error_sensitive",
        "score": "" if settings["score"] or settings["label"] else "error_need",
    }
    if step != "data":
        found |= {
            "thresholds": "error_threshold" if wrong else "",
            "min_size": "" if size.isdecimal() and int(size) else "error_min_size",
            "criterion": "" if parity or settings["label"] else "error_label",
            "by": "error_by" if step == "audit" and settings["by"] and (settings["strata"] or not parity) else "",
        }
        if label["distinct"] > 2 and settings["criterion"] == "equal_opportunity":
            found["criterion"] = "error_opportunity"
    if label["distinct"] > 2 and (repairs or label["kind"] != "number"):
        found["action" if repairs else "label" if step == "data" else ""] = "error_labels"
    elif label["distinct"] in {1, 2}:
        try:
            positive_label(label["values"], settings["pos_label"] or None, source="")
        except ValueError:
            found["pos_label" if step == "data" else ""] = "error_pos_label"
    return {field: TEXTS[text].format(name=twice, text=", ".join(wrong)) for field, text in found.items() if text}


def _show(request: Request, project: Project, step: str, errors: dict[str, str]) -> Response:
    """Show a step of a project."""
    columns, settings = project.look.get("columns", []), project.settings
    few = [(one["name"], one["name"]) for one in columns if 2 <= one["distinct"] <= 100]
    given = {"train": settings["label"], "repair": settings["score"]}
    chosen, curve = _chosen(project)
    known = {"project": project, "name": request.path_params["name"], "step": step, "columns": columns, "few": few}
    context: dict[str, Any] = known | {
        "settings": settings,
        "job": project.job,
        "result": project.results.get(step),
        "chosen": chosen,
        "criteria": [(name, TEXTS[f"criterion_{name}"]) for name in _CRITERIA],
        "actions": [(name, TEXTS[f"action_{name}"]) for name, column in given.items() if column],
        "pictures": _pictures(project, request.query_params) if step == "choose" else {},
    }
    if step == "audit" and context["result"]:
        context["command"] = audit_command(project.path, context["result"]["settings"])
    if step == "take" and chosen:
        recipe = (project.path, curve["settings"], chosen, curve["range"])
        context |= {"command": take_commands(*recipe), "code": take_code(*recipe, regression=curve["regression"])}
    return _page(f"{step}.html", errors, **context)


def _chosen(project: Project) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the chosen point, and the curve that it is on."""
    chosen = project.state["chosen"] or {"curve": "", "index": 0}
    result = project.results.get(f"tradeoff-{chosen['curve']}", {"points": []})
    points = result["points"][chosen["index"] :][:1]
    return ({"method": points[0]["method"], "amount": points[0]["amount"]}, result) if points else ({}, {})


_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 620, 20, 310  # of the area of points, in a picture of 640 by 360


def _pictures(project: Project, query: Any) -> dict[str, Any]:
    """Return the curves with the coordinates of their points, and the point of each to look at."""
    pictures = {}
    for name in ("repair", "aware", "blind"):
        result = project.results.get(f"tradeoff-{name}")
        if result is None:
            continue
        points = [{**point, "index": index} for index, point in enumerate(result["points"])]
        across, x_ticks = _axis([0.0, result["floor"], *(point["disparity"] for point in points)], _LEFT, _RIGHT)
        up, y_ticks = _axis([point["error"] for point in points], _BOTTOM, _TOP)
        for point in points:
            point |= {"x": across(point["disparity"]), "y": up(point["error"])}
        chosen = min(points, key=lambda point: (point["amount"] < 1, point["error"]))
        if query.get("curve") == name and query.get("point", "").isdecimal():
            chosen = points[min(int(query["point"]), len(points) - 1)]
        pictures[name] = {"points": points, "point": chosen, "plain": points[0], "floor": across(result["floor"])}
        pictures[name] |= {"methods": [*dict.fromkeys(point["method"] for point in points)], "result": result}
        pictures[name] |= {"x_ticks": x_ticks, "y_ticks": y_ticks, "rates": [*points[0]["groups"][0]]}
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
        port, token = listener.getsockname()[1], secrets.token_urlsafe(24)
        workbench = Workbench(home, port, token)
        try:
            start = ""
            if file is not None:
                name = workbench.projects.create(Path(file).name, {"path": str(Path(file).resolve())})
                start = f"p/{name}/data"
            url = f"http://127.0.0.1:{port}/{start}?token={token}"
            on_start(url)
            if open_browser:
                webbrowser.open(url)
            options: Any = {"log_config": None, "log_level": "critical", "server_header": False, "ws": "none"}
            uvicorn.Server(uvicorn.Config(workbench.app, lifespan="off", **options)).run([listener])
        finally:
            workbench.projects.close()
