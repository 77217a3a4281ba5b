"""Build the sdist and the wheel, look into both, install the wheel into a clean environment, and use it there.

``make release-check`` runs it; ``--extras`` also measures what each extra installs, for the table of docs/install.md.
"""
# ruff: noqa: INP001, T201 - a program that prints

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "out" / "release"
#: Folders and files that the sdist has at its top, besides what the build writes.
SOURCES = {
    *("benchmarks", "deploy", "docs", "examples", "scripts", "src", "tests", "CHANGELOG.md", "CITATION.cff"),
    *("CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "constraints-lowest.txt"),
    *("constraints.txt", "mkdocs.yml", "pyproject.toml", ".gitignore", "PKG-INFO"),
}
#: A part of the tests that needs none of the tools of the tests but pytest.
TESTS = ["tests/metrics", "tests/test_groups.py", "tests/repair/test_quantile.py", "tests/persistence/test_files.py"]
LEFTOVERS = re.compile(r"(^|/)(__pycache__|out|\.venv[^/]*)(/|$)|\.(pyc|nbi|nbc|tmp|ft)$")


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command without anything of this repository on its path."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([str(word) for word in command], cwd=cwd, env=clean, check=True)  # noqa: S603 - our own commands


def environment(name: str, *packages: str | Path) -> tuple[Path, float]:
    """Make a virtual environment and return its folder of programs and the processor seconds of the installation."""
    folder = WORK / name
    venv.create(folder, with_pip=True, clear=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "-c", ROOT / "constraints.txt", *packages)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return folder / "bin", after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def megabytes(programs: Path) -> float:
    """Return the size of what is installed, without pip."""
    (packages,) = (programs.parent / "lib").glob("python3*/site-packages")
    files = (path for path in packages.rglob("*") if not path.relative_to(packages).parts[0].startswith("pip"))
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def check_contents(sdist: Path, wheel: Path) -> None:
    """Raise if the sdist or the wheel lacks something, or has something else."""
    with tarfile.open(sdist) as archive:
        sources = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in sources}
    own = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "fairtransport").rglob("*")}
    code = {name for name in own if name.endswith((".py", ".typed", ".html", ".css", ".js", ".txt", ".csv.gz"))}
    problems = {
        "in the sdist, not expected": tops - SOURCES,
        "not in the sdist": SOURCES - tops,
        "leftovers": {name for name in sources | names if LEFTOVERS.search(name)},
        "not in the wheel": code - names,
        "in the wheel, not expected": {name for name in names if not name.startswith("fairtransport")},
    }
    found = {what: sorted(which)[:10] for what, which in problems.items() if which}
    if found or "fairtransport/py.typed" not in names:
        raise SystemExit(f"The archives are not as they should be: {found}")
    for path, count in ((sdist, len(sources)), (wheel, len(names))):
        print(f"{path.name}: {count} files, {path.stat().st_size / 1e6:.1f} MB", flush=True)


def main() -> None:
    """Build, check, install, use."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", action="store_true", help="measure every extra")
    options = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    programs, _ = environment("build", "build")
    run(programs / "python", "-m", "build", "--outdir", WORK / "dist", ROOT)
    (sdist,), (wheel,) = ((WORK / "dist").glob(pattern) for pattern in ("*.tar.gz", "*.whl"))
    check_contents(sdist, wheel)
    programs, seconds = environment("clean", f"{wheel}[cli,report,tables]")
    print(f"installed: {megabytes(programs):.0f} MB in {seconds:.0f} processor seconds", flush=True)
    run(programs / "fairtransport", "demo", "--quick", "--out", "demo", cwd=WORK)
    with tarfile.open(sdist) as archive:
        archive.extractall(WORK, filter="data")
    unpacked = WORK / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(unpacked / "src")  # the tests see the installed package
    packages = ["hypothesis", "POT", "pytest", "pytest-timeout"]
    run(programs / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", *packages)
    chosen = "not (paper or trust or engines or models)"
    run(programs / "python", "-m", "pytest", "-q", "-m", chosen, *TESTS, cwd=unpacked)
    if options.extras:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for name in ["", *(extra for extra in extras if extra not in {"bench", "docs", "test"})]:
            programs, seconds = environment("extra", f"{wheel}[{name}]" if name else wheel)
            print(f"| {name or 'the core'} | {megabytes(programs):.0f} MB | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
