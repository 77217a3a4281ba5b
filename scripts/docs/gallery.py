"""The gallery: short examples run when the site is built, long ones show their image in docs/images.

Results are cached by the content of the example and of the library, so that an unchanged example is not run again.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Example", "examples", "gallery_files"]

#: The files that examples write when they run; those named ``plot_`` write one image.
_RESULTS = {"audit_page": ("audit.html", "compare.html")}
_TIMEOUT_S = 1200  # on a busy machine an example takes many times longer


@dataclass(frozen=True)
class Example:
    """An example: its name, its docstring, its code, and the files that it writes when the site is built."""

    name: str
    description: str
    code: str
    results: tuple[str, ...]

    @property
    def title(self) -> str:
        """The docstring's first line."""
        return self.description.splitlines()[0].split(": ``")[0].rstrip(".").replace("``", "`")


def examples(root: Path) -> list[Example]:
    """Return all examples of the repository, those that are run first."""
    examples = []
    for path in sorted((root / "examples").glob("[!_]*.py")):
        code = path.read_text(encoding="utf-8")
        image = (f"{path.stem}.png",) if path.stem.startswith("plot_") else ()
        description = ast.get_docstring(ast.parse(code)) or path.stem
        examples.append(Example(path.stem, description, code, _RESULTS.get(path.stem, image)))
    return sorted(examples, key=lambda example: not example.results)


def gallery_files(root: Path, cache: Path) -> dict[str, str | Path]:
    """Return the gallery's pages as text and its images as paths, by address in the site."""
    listed = examples(root)
    with ThreadPoolExecutor(2) as pool:
        ran = dict(
            zip(listed, pool.map(lambda one: _run(root, cache, one) if one.results else None, listed), strict=True)
        )
    files: dict[str, str | Path] = {}
    cards = []
    for example, folder in ran.items():
        image = _image(root, example)
        for result in example.results:
            files[f"gallery/{result}"] = folder / result
        files[f"gallery/{example.name}.md"] = _page(example, image, folder)
        shown = f"![]({image})" if image else ""
        cards.append(f"<li markdown>{shown}[{example.title}]({example.name}.md)</li>")
    files["gallery/index.md"] = (
        "# Gallery\n\nEach page shows a file of `examples/`. Those with printed output were run when "
        "this site was built; the others take minutes or need a cluster, and are run by the tests.\n\n"
        '<ul class="gallery" markdown>\n' + "\n".join(cards) + "\n</ul>\n"
    )
    return files


def _image(root: Path, example: Example) -> str:
    """Return the address of an example's image, relative to the gallery."""
    written = [result for result in example.results if result.endswith(".png")]
    stored = root / "docs" / "images" / f"{example.name}.png"
    return written[0] if written else f"../images/{stored.name}" if stored.exists() else ""


def _page(example: Example, image: str, folder: Path | None) -> str:
    parts = [f"# {example.title}", *example.description.split("\n", 1)[1:]]
    if image:
        parts.append(f"![{example.title.replace('`', '')}]({image})")
    pages = [result for result in example.results if result.endswith(".html")]
    if pages:
        parts.append("The pages that it writes: " + ", ".join(f'<a href="{one}">{one}</a>' for one in pages) + ".")
    if folder is not None:
        printed = (folder / "printed.txt").read_text(encoding="utf-8").rstrip()
        parts.append(f"Output:\n\n```text\n{printed}\n```")
    parts.append(f'```python title="examples/{example.name}.py"\n{example.code}```')
    return "\n\n".join(parts) + "\n"


def _run(root: Path, cache: Path, example: Example) -> Path:
    """Run an example, unless nothing has changed since the last time; return the folder of its results."""
    folder = cache / f"{example.name}-{_key(root, example)}"
    if (folder / "printed.txt").exists():
        return folder
    for old in cache.glob(f"{example.name}-*"):
        shutil.rmtree(old)
    folder.mkdir(parents=True)
    path = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(  # noqa: S603 - our own examples
            [sys.executable, "-W", "error", str(root / "examples" / f"{example.name}.py"), *example.results],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        shutil.rmtree(folder)
        raise RuntimeError(f"examples/{example.name}.py did not finish within {_TIMEOUT_S} seconds.") from None
    missing = [result for result in example.results if not (folder / result).exists()]
    if done.returncode or missing:
        shutil.rmtree(folder)
        raise RuntimeError(f"examples/{example.name}.py failed (missing: {missing}):\n{done.stderr[-2000:]}")
    (folder / "printed.txt").write_text(done.stdout, encoding="utf-8")
    return folder


def _key(root: Path, example: Example) -> str:
    """Return a hash of everything that the result depends on: the example and the library's source."""
    sources = sorted((root / "src").rglob("*.py")) + sorted((root / "src").rglob("templates/**/*.*"))
    digest = hashlib.sha256(example.code.encode())
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
