"""Deployments that can write almost nowhere: compiled code without a cache, or in one that nobody else can write to.

Numba's cache files are pickles. The first tests put a pickle that leaves a trace wherever another user could, and look
whether it ran. The others run the commands under a root that is mounted read-only, as a user without a name and a home.
"""

import importlib.util
import logging
import os
import pickle
import shutil
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching, config

import fairtransport
from fairtransport import _columns
from fairtransport._columns import code_cache
from fairtransport.transport import kernels

STRANGER = 12345  # no user of this machine
SOURCE = (
    "from fairtransport._columns.compilation import cached_njit\n\n\n@cached_njit()\ndef double(x):\n    return 2 * x\n"
)


class Trace:
    """A pickle that writes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path(self.path).write_text, ("ran",))


@pytest.fixture
def loops(tmp_path, monkeypatch, caplog):
    """A module with a compiled function, in a package that nobody can write to; without a home."""
    path = tmp_path / "package" / "loops.py"
    path.parent.mkdir()
    path.write_text(SOURCE)

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(caching.InTreeCacheLocator, "ensure_cache_path", refuse)
    monkeypatch.setattr(code_cache, "_notified", [])
    monkeypatch.setattr(code_cache._patience, "_left_s", 0.0)  # whatever was compiled before
    monkeypatch.setattr(config, "CACHE_DIR", "")
    for name, folder in (("HOME", "home"), ("TMPDIR", "temporary")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "home").write_text("")  # no folder can be made in it
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(code_cache.tempfile, "tempdir", str(tmp_path / "temporary"))
    caplog.set_level(logging.WARNING, "fairtransport")

    def load():
        spec = importlib.util.spec_from_file_location("loops", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def cache_of(module):
    return module.double.stats.cache_path


def private(tmp_path):
    return tmp_path / "temporary" / f"fairtransport-numba-{os.geteuid()}"


def poison(folder, module_path, trace):
    """Put an index that leaves a trace where numba would look for it; the name is numba's."""
    inner = folder / caching.UserWideCacheLocator.get_suitable_cache_subpath(str(module_path))
    inner.mkdir(parents=True)
    name = f"loops.double-4.py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}.nbi"
    (inner / name).write_bytes(pickle.dumps(Trace(trace)))


def test_private_folder_is_made_used_and_announced_once(loops, tmp_path, caplog):
    module = loops()
    assert caplog.messages == []  # nothing is said before something is compiled
    assert module.double(21) == 42
    assert module.double(2.5) == 5.0
    assert stat.S_IMODE(private(tmp_path).stat().st_mode) == 0o700
    assert Path(cache_of(module)).parent == private(tmp_path)
    assert len(caplog.messages) == 1
    assert "NUMBA_CACHE_DIR" in caplog.messages[0]
    again = loops()
    assert again.double(21) == 42
    assert sum(again.double.stats.cache_hits.values()) == 1


def test_a_long_compilation_says_so_once(loops, monkeypatch, caplog):
    monkeypatch.setattr(code_cache, "_notified", ["said before"])
    monkeypatch.setattr(code_cache._patience, "_left_s", 1e-6)
    module = loops()
    assert (module.double(21), module.double(2.5)) == (42, 5.0)
    assert len(caplog.messages) == 1
    assert "being compiled" in caplog.messages[0]


@pytest.mark.trust
def test_what_was_compiled_ahead_is_not_compiled_again(tmp_path):
    """``python -m fairtransport.compile`` leaves nothing to compile to a fit and an audit of other sizes."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = partial(subprocess.run, env=environment, check=True, capture_output=True, text=True)
    assert "training, continuous: " in run([sys.executable, "-m", "fairtransport.compile"]).stdout
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}
    code = (
        "import numpy as np, fairtransport as ft; rng = np.random.default_rng(1); X = rng.normal(size=(4500, 7));"
        "g = rng.choice(['a', 'b'], 4500); y = (X[:, 0] + (g == 'a') + rng.normal(size=4500) > 0).astype(int);"
        "ft.TransportClassifier().fit(X, y, sensitive_features=g); ft.audit(rng.random(4500), y, sensitive_features=g)"
    )
    run([sys.executable, "-W", "ignore", "-c", code])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")} == kept


def test_the_poison_works_where_the_operator_names_its_folder(loops, tmp_path, monkeypatch):
    """So that the tests below test something."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "given"))
    poison(tmp_path / "given", tmp_path / "package" / "loops.py", tmp_path / "trace")
    assert loops().double(21) == 42
    assert (tmp_path / "trace").exists()


def symlink(folder, tmp_path):
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")


POISONED = {
    "mode 0777": lambda folder, _: folder.chmod(0o777),
    "mode 0755": lambda folder, _: folder.chmod(0o755),
    "mode 0720": lambda folder, _: folder.chmod(0o720),
    "a link": symlink,
    "of another user": lambda folder, _: (folder.chmod(0o700), os.chown(folder, STRANGER, STRANGER)),
    "in a folder that everyone can write to": lambda folder, _: (folder.chmod(0o700), folder.parent.chmod(0o777)),
    "in a folder of another user": lambda folder, _: (folder.chmod(0o700), os.chown(folder.parent, STRANGER, STRANGER)),
}


@pytest.mark.parametrize("way", POISONED)
def test_poisoned_temporary_folder_is_not_read(loops, tmp_path, way, caplog):
    if "another user" in way and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    poison(private(tmp_path), tmp_path / "package" / "loops.py", tmp_path / "trace")
    POISONED[way](private(tmp_path), tmp_path)
    module = loops()
    assert module.double(21) == 42
    assert cache_of(module) is None
    assert not (tmp_path / "trace").exists()
    assert len(caplog.messages) == 1


def test_home_that_everyone_can_write_to_is_not_read(loops, tmp_path, monkeypatch):
    home = tmp_path / "shared"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    poison(home / ".cache" / "numba", tmp_path / "package" / "loops.py", tmp_path / "trace")
    home.chmod(0o777)
    assert Path(cache_of(loops())).parent == private(tmp_path)
    home.chmod(0o755)
    (home / ".cache").chmod(0o777)
    assert Path(cache_of(loops())).parent == private(tmp_path)
    (home / ".cache").chmod(0o755)
    assert cache_of(loops()).startswith(str(home))
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("home", ["~", "", "relative"])
def test_without_a_home_the_working_directory_is_neither_read_nor_written(loops, tmp_path, monkeypatch, home):
    """Numba takes the literal ``~`` for a home where a user has none: whoever fills the folder would run code."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{home}/.cache".lstrip("/"))
    poison(Path(f"{home}/.cache/numba".lstrip("/")), tmp_path / "package" / "loops.py", tmp_path / "trace")
    before = sorted(Path().rglob("*"))
    module = loops()
    assert module.double(21) == 42
    assert Path(cache_of(module)).parent == private(tmp_path)
    assert sorted(Path().rglob("*")) == before
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("content", [b"", b"\x80", b"not a pickle", pickle.dumps("0.1") + b"rest"])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_cache_is_compiled_again(loops, content, ending):
    first = loops()
    assert first.double(21) == 42
    for path in Path(cache_of(first)).glob(f"*.{ending}"):
        path.write_bytes(content)
    assert loops().double(21) == 42


def test_full_disk_ends_no_call(loops, monkeypatch, caplog):
    def full(self, *arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_data", full)
    module = loops()
    assert (module.double(21), module.double(2.5)) == (42, 5.0)
    assert len(caplog.messages) == 1
    assert "No space left on device" in caplog.messages[0]


def test_every_compiled_function_of_the_package_is_cached_safely():
    """`numba.njit(cache=True)` itself is nowhere: it raises where nothing is writable."""
    package = Path(fairtransport.__file__).parent
    calls = [path.name for path in package.rglob("*.py") if "njit(cache=" in path.read_text(encoding="utf-8")]
    assert calls == ["code_cache.py"]  # its docstring


# Every mount becomes read-only but the volume. What remains of root's rights is to read: the interpreter may lie in a
# home folder.
NAMESPACE = """
set -e
mount --make-rprivate /
mount --bind "$1" /mnt
findmnt -rno TARGET -O rw | while read -r target; do
    case "$target" in /proc*|/sys*) ;; *) mount -o remount,bind,ro "$target" 2>/dev/null || true ;; esac
done
mount --bind "$1/volume" /mnt/volume && mount -o remount,bind,rw /mnt/volume
cd "$2"; shift 2
if [ "$(id -u)" = 0 ] && [ -z "$MAPPED" ]; then
    exec setpriv --reuid=12345 --regid=12345 --clear-groups --inh-caps=-all,+dac_read_search \\
        --ambient-caps=+dac_read_search "$@"
fi
exec "$@"
"""


class Container:
    """A read-only root, in it ``/mnt/data``, and a volume that is writable: ``/mnt/volume``."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "data").mkdir()
        (folder / "volume").mkdir()
        if os.geteuid() == 0:
            os.chown(folder / "volume", STRANGER, STRANGER)
            folder.chmod(0o755)

    def python(self, *arguments, folder="/mnt/data", **environment):
        root = os.geteuid() == 0
        known = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "MAPPED": "" if root else "1"}
        start = ["unshare", "-m" if root else "-rm", "bash", "-c", NAMESPACE, "container", str(self.folder), folder]
        return subprocess.run(
            [*start, sys.executable, *arguments], env=known | environment, capture_output=True, text=True, check=False
        )

    def command(self, *arguments, **options):
        return self.python("-m", "fairtransport.cli", *arguments, **options)


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    if not all(map(shutil.which, ("unshare", "setpriv", "findmnt"))):
        pytest.skip("needs util-linux")
    made = Container(tmp_path_factory.mktemp("container"))
    probe = made.python("-c", "import tempfile; tempfile.gettempdir()")
    if "No usable temporary directory" not in probe.stderr:
        pytest.skip("needs the right to mount in a namespace")
    rng = np.random.default_rng(0)
    lines = ["age,job,sex,y,s"]
    for row in range(300):
        age = rng.normal(40, 9) + 5 * (row % 2)
        label = int(age + rng.normal(0, 9) > 42)
        lines.append(
            f"{age:.1f},{rng.choice(['x', 'y'])},{'ab'[row % 2]},{label},{1 / (1 + np.exp((42 - age) / 9)):.4f}"
        )
    (made.folder / "data" / "people.csv").write_text("\n".join(lines) + "\n")
    for package in (_columns, kernels):  # compiled code that an image brings along
        seed = (
            made.folder / "data" / "cache" / caching.UserWideCacheLocator.get_suitable_cache_subpath(package.__file__)
        )
        seed.mkdir(parents=True)
        for path in (Path(package.__file__).parent / "__pycache__").glob("*.nb[ic]"):
            shutil.copy(path, seed)
    return made


@pytest.mark.trust
@pytest.mark.parametrize("home", [{}, {"HOME": "/nonexistent"}])
def test_help_says_nothing_of_a_cache(container, home):
    done = container.command("--help", **home)
    assert done.returncode == 0
    assert "audit" in done.stdout
    assert done.stderr == ""


@pytest.mark.trust
def test_nothing_is_writable_and_one_line_says_so(container):
    code = "from fairtransport.transport.kernels.rows import draw_index; print(draw_index(0, 0, 1))"
    done = container.python("-c", code)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert done.stderr.startswith("Compiled code cannot be cached")
    assert done.stderr.count("\n") == 1


@pytest.mark.trust
def test_every_command_works_and_leaves_nothing_behind(container):
    """With compiled code from a read-only folder, in a working directory that is writable; nothing else is."""
    people = "/mnt/data/people.csv"
    commands = [
        ("audit", people, "--score", "s", "--sensitive", "sex", "--label", "y", "--html", "audit.html"),
        ("train", people, "--label", "y", "--sensitive", "sex", "--drop", "s", "--out", "model.ft"),
        ("score", "model.ft", people, "--out", "scored.csv"),
        ("repair", people, "--score", "s", "--sensitive", "sex", "--out", "repaired.parquet"),
        ("stream", people, "--model", "model.ft", "--sensitive", "sex", "--store", "store", "--out", "stream.csv"),
        ("datasets",),
    ]
    for command in commands:
        done = container.command(*command, folder="/mnt/volume", NUMBA_CACHE_DIR="/mnt/data/cache")
        assert done.returncode == 0, (command, done.stderr)
        assert "Traceback" not in done.stderr
        assert "Warning" not in done.stderr, done.stderr
    left = {path.name for path in (container.folder / "volume").iterdir()}
    wanted = {"audit.html", "model.ft", "scored.csv", "repaired.parquet", "stream.csv", "store"}
    assert wanted <= left
    assert not [name for name in left - wanted if not name.startswith("stream.csv")], left


def test_folder_named_by_the_operator_is_used_first_and_may_be_read_only(loops, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "given"))
    assert loops().double(21) == 42
    assert caplog.messages == []

    def refuse(path, mode="r"):
        if "w" in mode:
            raise OSError(30, "Read-only file system")
        return open(path, mode)  # noqa: PTH123 - numba closes it

    monkeypatch.setattr(caching, "open", refuse, raising=False)
    monkeypatch.setattr(caching.tempfile, "TemporaryFile", lambda dir: refuse(dir, "w"))  # noqa: A006
    module = loops()
    assert module.double(21) == 42
    assert sum(module.double.stats.cache_hits.values()) == 1
    assert caplog.messages == []
    assert module.double(2.5) == 5.0  # not in the cache, and cannot be written
    assert len(caplog.messages) == 1
    assert "Read-only file system" in caplog.messages[0]
