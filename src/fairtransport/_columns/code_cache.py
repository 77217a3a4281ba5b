"""Functions compiled by numba, with a cache on disk wherever there is a safe place for one.

Numba's cache files are pickles, so whoever can write one can run code in the process that reads it. The cache is, in
this order, the folder named by ``NUMBA_CACHE_DIR``, the package's own ``__pycache__``, the user's cache folder, and a
private folder among the temporary files. The last two are used only if no other user can write to them. Where none is
usable, functions are compiled in each process anew.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching

_TEMPORARY = (
    "Compiled code is cached among the temporary files, because neither the package nor the home folder is writable."
)
_COMPILING = (
    "Functions are being compiled, which takes some seconds, once for each kind of call; python -m "
    "fairtransport.compile does it ahead."
)
_NOT_CACHED = "Compiled code cannot be cached ({reason}), so every start compiles it again."

_log = logging.getLogger("fairtransport")
# Older versions of numba have these names with an underscore.
_PREFIX = "" if hasattr(caching, "InTreeCacheLocator") else "_"
_UserProvided: Any = getattr(caching, f"{_PREFIX}UserProvidedCacheLocator")
_UserWide: Any = getattr(caching, f"{_PREFIX}UserWideCacheLocator")
_InTree: Any = getattr(caching, f"{_PREFIX}InTreeCacheLocator")
_notified: list[str] = []


def compiled(function: Any, **options: Any) -> Any:
    """Return `numba.njit` of a function, which caches compiled code if it can.

    ``numba.njit(cache=True)`` raises at once where no folder is writable, and raises in the middle of a call where
    the disk is full or a cache file is damaged. Here the function is compiled instead, and one line in the log of
    ``fairtransport`` says why the next start will be slow, too.
    """
    dispatcher = njit(**options)(function)
    try:  # what `enable_caching` sets, from numba 0.60 on
        dispatcher._cache = _SafeCache(function)  # noqa: SLF001
    except (RuntimeError, OSError):  # no locator found a folder
        dispatcher._cache = _NoCache()  # noqa: SLF001
    dispatcher.compile = _patience.timed(dispatcher.compile)
    return dispatcher


class _Patience:
    """Says once, after two seconds of compiling, what a caller waits for."""

    def __init__(self) -> None:
        self._left_s = 2.0

    def timed(self, compile_signature: Any) -> Any:
        """Return a function that compiles, and counts its seconds."""

        def call(signature: Any) -> Any:
            began = time.perf_counter()
            compiled = compile_signature(signature)
            if self._left_s > 0.0:
                self._left_s -= time.perf_counter() - began
                is_kept = not any(message.startswith(_NOT_CACHED[:20]) for message in _notified)
                if self._left_s <= 0.0 and is_kept:  # otherwise every start compiles, as was said
                    _log.warning(_COMPILING)
            return compiled

        return call


_patience = _Patience()


class _NoCache(caching.NullCache):
    def save_overload(self, sig: Any, data: Any) -> None:
        del sig, data
        _notify(_NOT_CACHED.format(reason="no safe folder is writable"))


class _GivenFolder(_UserProvided):
    """The folder that ``NUMBA_CACHE_DIR`` names; one that was filled before may be read-only."""

    def ensure_cache_path(self) -> None:
        try:
            super().ensure_cache_path()
        except OSError:
            if not Path(self.get_cache_path()).is_dir():
                raise


class _UserFolder(_UserWide):
    """The user's cache folder, unless another user could write to it.

    Without a home folder, numba's path begins with a literal ``~`` and is relative to the working directory.
    """

    def ensure_cache_path(self) -> None:
        folder = Path(self.get_cache_path())
        if not folder.is_absolute():
            raise FileNotFoundError("There is no home folder.")
        super().ensure_cache_path()
        _check_private(folder)


class _TemporaryFolder(_UserWide):
    """A private folder among the temporary files."""

    def __init__(self, py_func: Any, py_file: Any) -> None:
        super().__init__(py_func, py_file)
        self._subpath = self.get_suitable_cache_subpath(py_file)
        self._cache_path = ""  # until the folder is known to be private

    def ensure_cache_path(self) -> None:
        self._cache_path = str(_private_temporary_folder() / self._subpath)
        super().ensure_cache_path()


class _SafeCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = (_GivenFolder, _InTree, _UserFolder, _TemporaryFolder)


class _SafeCache(caching.FunctionCache):
    """A cache that does not fail: what cannot be read is compiled, what cannot be written is left."""

    _impl_class = _SafeCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - a damaged pickle raises whatever it likes
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001 - likewise, because saving reads the index first
            reason = error.strerror if isinstance(error, OSError) else None
            _notify(_NOT_CACHED.format(reason=reason or type(error).__name__))
        else:
            if isinstance(self._impl.locator, _TemporaryFolder):
                _notify(_TEMPORARY)


def _notify(message: str) -> None:
    """Log a message, if it is the first of this process."""
    if not _notified:
        _notified.append(message)
        _log.warning("%s NUMBA_CACHE_DIR names a folder for it; see the documentation on installing.", message)


def _private_temporary_folder() -> Path:
    """Return this user's folder for the cache, made with mode 0700 if it is not there."""
    if not hasattr(os, "geteuid"):
        raise FileNotFoundError("The owner of a folder is not known on this system.")
    parent = Path(tempfile.gettempdir()).resolve(strict=True)
    if parent == Path.cwd():  # where `tempfile` ends when nothing else is writable
        raise FileNotFoundError("There is no folder for temporary files.")
    folder = parent / f"fairtransport-numba-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if stat.S_IMODE(folder.lstat().st_mode) & 0o077:
        raise PermissionError("Other users may enter the folder.")
    _check_private(folder)
    return folder


def _check_private(folder: Path) -> None:
    """Raise PermissionError if a user other than this one and root could write to a folder or put another in its place.

    That is, if someone else owns it or a folder that it lies in, or if one of these is writable for everyone. The
    sticky bit of a parent (as of ``/tmp``) keeps others from replacing what lies in it.
    """
    if not hasattr(os, "geteuid"):
        return
    for part in {folder, *folder.parents, folder.resolve(), *folder.resolve().parents}:
        status = part.lstat()
        if status.st_uid not in {0, os.geteuid()}:
            raise PermissionError("Another user owns the folder, or one that it lies in.")
        sticky = status.st_mode & stat.S_ISVTX and part != folder
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & stat.S_IWOTH and not sticky:
            raise PermissionError("Every user may write to the folder, or to one that it lies in.")
