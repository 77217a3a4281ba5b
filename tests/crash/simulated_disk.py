"""A disk that loses what was not flushed: finds every state in which a kill or a loss of power can leave a folder.

The code under test runs on real files. Around each call that changes a file, a kill may come, and a write may be cut in
the middle; what a kill leaves is what the files have at that moment. A loss of power also takes what was written since
the last ``fsync`` of a file, all of it or none, for each file independently, or leaves zeros in its place; names last
since the last ``fsync`` of their folder.
"""

# ruff: noqa: PTH110, PTH112, PTH116, PTH120

import contextlib
import itertools
import os
import shutil
from pathlib import Path

__all__ = ["CALLS", "SimulatedDisk", "restore"]

#: Functions of ``os`` that change a disk, or that make a change durable.
CALLS = ("open", "write", "fsync", "ftruncate", "replace", "unlink", "mkdir")


def restore(folder, state):
    """Make the folder what the state says."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    for name, content in state:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


class SimulatedDisk:
    """Finds the states of a folder while code changes it; all of what it has at the start is durable.

    ``ignored`` says of a name that nothing depends on the file; ``on_state`` is called with each state, a frozenset of
    pairs of name and content, and with whether power was lost; ``current`` is the state if nothing is lost.
    """

    def __init__(self, folder, ignored, on_state):
        self.folder, self.ignored, self.on_state = folder, ignored, on_state
        self.n_calls, self.current = 0, None
        self._real = {name: getattr(os, name) for name in CALLS}
        self._paths = {}  # of open files and folders
        self._kept = folder.with_name("kept")  # a link to each file, so that no number of a file is used twice
        self._nodes, self._contents = {}, {}  # number and content of each file and folder, by name; None: a folder
        self._durable = {}  # content of each file, by number
        for path in folder.rglob("*"):
            self._look(path)
        self._durable_nodes = dict(self._nodes)
        self._durable |= {node: self._contents[name] for name, node in self._nodes.items()}

    @contextlib.contextmanager
    def recording(self):
        """Record all calls of this process."""
        self._kept.mkdir()
        for name in CALLS:
            setattr(os, name, getattr(self, f"_{name}"))
        try:
            yield self
        finally:
            for name, call in self._real.items():
                setattr(os, name, call)
            shutil.rmtree(self._kept)

    # ---------------------------------------------------------------- calls

    def _open(self, path, flags, *arguments, **options):
        is_new = flags & os.O_CREAT and not os.path.exists(path)
        handle = self._real["open"](path, flags, *arguments, **options)
        self._paths[handle] = Path(path)
        if is_new:
            self._kept.joinpath(str(self.n_calls)).hardlink_to(path)
            self._happened(path)
        return handle

    def _write(self, handle, content):
        path = self._paths.get(handle)
        if path is None or self.folder not in path.parents:
            return self._real["write"](handle, content)
        name = self._name(path)
        if not self.ignored(name):
            files, half = self._files(), bytes(content[: len(content) // 2])
            self.on_state(frozenset({**files, name: files[name] + half}.items()), False)
        written = self._real["write"](handle, content)
        self._happened(path)
        return written

    def _fsync(self, handle):
        path = self._paths[handle]
        name = self._name(path)
        if path.is_dir():
            within = {one: node for one, node in self._nodes.items() if os.path.dirname(one) == name}
            elsewhere = {one: node for one, node in self._durable_nodes.items() if os.path.dirname(one) != name}
            self._durable_nodes = {**elsewhere, **within}
        else:
            self._durable[os.fstat(handle).st_ino] = path.read_bytes()
        self._happened(path)

    def _ftruncate(self, handle, length):
        self._real["ftruncate"](handle, length)
        self._happened(self._paths[handle])

    def _replace(self, source, target, **options):
        self._real["replace"](source, target, **options)
        self._look(source)
        self._happened(target)

    def _unlink(self, path, **options):
        self._real["unlink"](path, **options)
        self._happened(path)

    def _mkdir(self, path, *arguments, **options):
        self._real["mkdir"](path, *arguments, **options)
        self._happened(path)

    # ---------------------------------------------------------------- states

    def _happened(self, path):
        """Find the states after a call that has changed this file or folder."""
        self.n_calls += 1
        self._look(path)
        if self.ignored(self._name(path)):
            return
        files = self._files()
        self.current, states = frozenset(files.items()), {}
        self.on_state(self.current, False)
        durable = {name: self._durable.get(self._nodes[name], b"") for name in files}
        volatile = [name for name in files if durable[name] != files[name]]
        for kept in itertools.product([True, False], repeat=len(volatile)):
            lost = {name: durable[name] for name, keep in zip(volatile, kept, strict=True) if not keep}
            states[frozenset({**files, **lost}.items())] = None
        zeros = {name: durable[name].ljust(len(files[name]), b"\0") for name in volatile}
        states[frozenset({**files, **zeros}.items())] = None
        folders = {"", *self._durable_nodes}
        named = {name: node for name, node in self._durable_nodes.items() if os.path.dirname(name) in folders}
        contents = {name: self._durable.get(node, b"") for name, node in named.items() if not self.ignored(name)}
        states[frozenset((name, content) for name, content in contents.items() if content is not None)] = None
        for state in states:
            if state != self.current:
                self.on_state(state, True)

    def _look(self, path):
        name = self._name(path)
        self._nodes.pop(name, None)
        self._contents.pop(name, None)
        if name and os.path.exists(path):
            self._nodes[name] = os.stat(path).st_ino
            is_folder = os.path.isdir(path)
            self._contents[name] = None if is_folder else Path(path).read_bytes()
            if is_folder:
                self._durable[self._nodes[name]] = None

    def _files(self):
        """Return the content of each file on which something depends, by name."""
        named = self._contents.items()
        return {name: content for name, content in named if content is not None and not self.ignored(name)}

    def _name(self, path):
        name = os.path.relpath(path, self.folder)
        return "" if name == "." else name
