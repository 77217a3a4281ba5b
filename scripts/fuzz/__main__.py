"""Fuzz the readers with atheris: no crash but our own errors, no hang, no memory beyond the limit.

    python scripts/fuzz --seconds 600 --write docs/trust/fuzz.json    all targets, one after the other
    python scripts/fuzz model_file -max_total_time=60                 one, with options of libFuzzer

`targets` says what is fuzzed, and how another reader is added.
"""
# ruff: noqa: INP001 - a program, not a package

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from targets import attempt, load_target, target_names

MOST_MEMORY = 2048  # MiB that a process may take, the libraries and the instruments included
MOST_SECONDS = 20  # of one case
FINDINGS = Path("out/fuzz")  # cases that found something
LONGEST = 4096  # bytes of a case

# Compiled loops are left out, by loading them before: numba reads their code, and would read the instruments, too.
_INSTRUMENTED = ["fairtransport", "zipfile", "json", "csv"]
_COMPILED = [
    "fairtransport._columns",
    *(
        f"fairtransport.transport.kernels.{name}"
        for name in ("areas", "binned", "buckets", "dual_newton", "maps", "quantiles", "slices", "sort_keys", "updates")
    ),
]
_DONE = re.compile(r"Done (\d+) runs in (\d+) second")
_MEMORY = re.compile(r"rss: (\d+)Mb")


def fuzz_one(name: str, options: list[str]) -> None:
    """Hand one target over to the fuzzer, in this process; it does not return."""
    import atheris  # noqa: PLC0415 - the other half of this program does without

    warnings.simplefilter("ignore")
    for compiled in _COMPILED:
        importlib.import_module(compiled)
    with atheris.instrument_imports(include=_INSTRUMENTED):
        target = load_target(name)

    def one_case(data: bytes) -> None:
        attempt(target, data)

    FINDINGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds()):
            (Path(folder) / f"{number:03}").write_bytes(seed)
        limits = [
            f"-artifact_prefix={FINDINGS}/",
            f"-rss_limit_mb={MOST_MEMORY}",
            f"-timeout={MOST_SECONDS}",
            f"-max_len={LONGEST}",
        ]
        atheris.Setup([sys.argv[0], *limits, *options, folder], one_case)
        atheris.Fuzz()


def fuzz_all(seconds: int, write: Path | None) -> int:
    """Run all targets, each in a process of its own, and return how many found something."""
    names = target_names()
    shares = {name: load_target(name).SHARE for name in names}
    figures, n_findings = {}, 0
    for name in names:
        time = max(1, round(seconds * shares[name] / sum(shares.values())))
        command = [sys.executable, str(Path(__file__).parent), name, f"-max_total_time={time}", "-print_final_stats=1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
        counted, memory = _DONE.search(done.stderr), _MEMORY.findall(done.stderr)
        if done.returncode or counted is None:
            n_findings += 1
            print(f"{name}: a finding\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")  # noqa: T201
            continue
        most = max(map(int, memory), default=0)
        figures[name] = {"cases": int(counted[1]), "seconds": int(counted[2]), "most_memory_mib": most}
        print(f"{name}: {int(counted[1]):,} cases in {counted[2]} s, at most {most} MiB")  # noqa: T201
    total = sum(figure["cases"] for figure in figures.values())
    print(f"{total:,} cases, {n_findings} of {len(names)} targets with findings")  # noqa: T201
    if write is not None and not n_findings:
        told = {"cases": total, "findings": 0, "memory_limit_mib": MOST_MEMORY, "targets": figures}
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(json.dumps(told, indent=1) + "\n")
    return n_findings


def main() -> None:
    """Fuzz one target where its name is given first, or all."""
    if len(sys.argv) > 1 and sys.argv[1] in target_names():
        fuzz_one(sys.argv[1], sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument("--write", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    sys.exit(min(fuzz_all(given.seconds, given.write), 1))


if __name__ == "__main__":
    main()
