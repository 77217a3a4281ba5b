"""The house itself: private modules stay private, files do not import in circles, `help` works without any extra."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import fairtransport
from fairtransport.app.projects import STEPS
from fairtransport.app.recipes import METHODS, take_code

HOME = Path(fairtransport.__file__).parent
NAMES = {
    path: ".".join(("fairtransport", *path.relative_to(HOME).with_suffix("").parts)) for path in HOME.rglob("*.py")
}
MODULES = {name.removesuffix(".__init__"): path for path, name in NAMES.items()}

#: What an extra brings: none of it may be needed to look at the package.
EXTRAS = (
    *("torch", "lightgbm", "xgboost", "matplotlib", "jinja2", "duckdb", "pandas", "polars", "pyarrow", "onnx"),
    *("prometheus_client", "starlette", "typer", "uvicorn"),
)


def imports_of(path):
    """The modules of the package that a file imports, anywhere in it, also for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fairtransport"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
    return found


GRAPH = {name: imports_of(path) for name, path in MODULES.items()}


def test_an_underscore_means_that_only_the_own_package_imports_it():
    strangers = []
    for name, imported in GRAPH.items():
        for other in imported:
            parts = other.split(".")
            private = [i for i, part in enumerate(parts) if part.startswith("_")]
            if private and private[0] > 1 and name.split(".")[1:2] != parts[1:2]:
                strangers.append((name, other))
    assert strangers == []


def test_files_do_not_import_in_circles():
    # A package's own file lists what it exports; a module that asks a neighbouring package is no circle.
    inside = {name: {other for other in imported if other != "fairtransport"} for name, imported in GRAPH.items()}
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    graph = {name: others - packages for name, others in inside.items() if name not in packages}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_help_and_members_need_no_extra():
    code = (
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        f"hidden = lambda name: name.partition('.')[0] in {EXTRAS!r}\n"
        "PathFinder.find_spec = staticmethod(lambda name, *a: None if hidden(name) else find(name, *a))\n"
        "import inspect, pydoc, fairtransport\n"
        "names = dict(inspect.getmembers(fairtransport))\n"
        "assert 'TransportClassifier' in names and 'torch' not in names\n"
        "assert 'TransportClassifier' in pydoc.render_doc(fairtransport)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def _assigned(path, name):
    """The value of a literal that a file assigns, or nothing."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    return ()


def names_of(code):
    """The names of the package that code uses: those that it imports, and those behind ``ft.``."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairtransport"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if re.fullmatch(r"ft(\.\w+)+", name):
                yield f"fairtransport{name[2:]}"


def test_the_workbench_calls_what_users_call():
    """It is the proof that the public names suffice: those that a package lists, and that the reference shows."""
    reference = _assigned(HOME.parents[1] / "scripts" / "docs" / "api_pages.py", "PACKAGES")
    settings = {name: value for fields in STEPS.values() for name, value in fields.items()}
    recipes = [take_code("a.csv", settings, {"method": method, "amount": 1.0}) for method in METHODS]
    codes = [path.read_text(encoding="utf-8") for path in (HOME / "app").glob("*.py")]
    secret = set()
    for code in (*codes, *recipes):
        for name in names_of(code):
            package, _, last = name.rpartition(".")
            while package not in MODULES:  # an attribute of something that is public itself
                package, _, last = package.rpartition(".")
            known = package in reference and last in _assigned(MODULES[package], "__all__")
            if not (known or name in reference or name.startswith("fairtransport.app")):
                secret.add(name)
    assert secret == set()
