"""Processes that tests start: scripts of their own, and the command as a user has it."""

import json
import os
import shlex
import socket
import subprocess
import sys
import time

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def run_script(script, *arguments, timeout=600):
    """Run a Python script with one thread to its end; return the JSON that it prints."""
    command = [sys.executable, "-W", "ignore", str(script), *map(str, arguments)]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=timeout)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return json.loads(done.stdout)


def with_command(folder):
    """Return an environment with the program ``fairtransport`` on its path, whichever way the package is installed."""
    folder.mkdir(exist_ok=True)
    program = folder / "fairtransport"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fairtransport.cli "$@"\n')
    program.chmod(0o755)
    return {**os.environ, **ONE_THREAD, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def run_block(language, text, folder, environment):
    """Run a block of code of a page, in Python or bash, to its end; return what it prints."""
    command = [sys.executable, "-c"] if language == "python" else ["bash", "-euo", "pipefail", "-c"]
    done = subprocess.run(
        [*command, text], cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=300
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def free_port():
    """Return a port of this machine that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def until(condition, seconds=60):
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
