"""Fuzz the readers with atheris: they may raise expected errors, but not crash, hang or exceed the memory limit.

    python scripts/fuzz --seconds 600 --write docs/trust/fuzz.json    all targets, one after the other
    python scripts/fuzz --seconds 600 --only model_file model_use     some of them
    python scripts/fuzz model_file -max_total_time=60                 one, with options of libFuzzer

A run goes on from the cases that earlier runs kept (out/fuzz/corpus), and its figures are added to those in the file:
remove both to begin anew. `targets` lists the readers, and explains how to add one. Where atheris has no wheel, pip
builds it and needs libFuzzer: compile the sources of LLVM's compiler-rt/lib/fuzzer (g++ -fPIC does), all but
FuzzerMain.cpp and FuzzerInterceptors.cpp, into an archive, and call ``LIBFUZZER_LIB=<archive> make fuzz``.
"""
# ruff: noqa: INP001 - a program, not a package

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

from targets import attempt, load_target, target_names

MAX_MEMORY = 2048  # MiB for a process, including libraries and instrumentation
MAX_SECONDS = 20  # for one case
FINDINGS = Path("out/fuzz")  # the cases of findings
MAX_LENGTH = 4096  # bytes in a case

# Compiled loops are imported without instrumentation, because numba would try to compile it.
_INSTRUMENTED = ["fairtransport", "zipfile", "json", "csv"]
_COMPILED = [
    "fairtransport._columns",
    *(
        f"fairtransport.transport.kernels.{name}"
        for name in ("binned", "dual_newton", "functions", "line", "rows", "sgd", "trees")
    ),
]
_DONE = re.compile(r"Done (\d+) runs in (\d+) second")
_MEMORY = re.compile(r"rss: (\d+)Mb")


def fuzz_one(name: str, options: list[str]) -> None:
    """Run the fuzzer on one target in this process; this does not return."""
    import atheris  # noqa: PLC0415 - `fuzz_all` does not need it

    warnings.simplefilter("ignore")
    for compiled in _COMPILED:
        importlib.import_module(compiled)
    with atheris.instrument_imports(include=_INSTRUMENTED):
        target = load_target(name)

    def one_case(data: bytes) -> None:
        attempt(target, data)

    for seed in (b"", *target.seeds()):  # what is compiled at the first use takes longer than a case may
        one_case(seed)
    corpus = FINDINGS / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"{number:03}").write_bytes(seed)
    limits = [
        f"-artifact_prefix={FINDINGS}/",
        f"-rss_limit_mb={MAX_MEMORY}",
        f"-timeout={MAX_SECONDS}",
        f"-max_len={MAX_LENGTH}",
    ]
    atheris.Setup([sys.argv[0], *limits, *options, str(corpus)], one_case)
    atheris.Fuzz()


def fuzz_all(names: list[str], seconds: int, write: Path | None) -> int:
    """Run targets, each in its own process, and return the number of targets with findings."""
    shares = {name: load_target(name).SHARE for name in names}
    known = json.loads(write.read_text())["targets"] if write is not None and write.exists() else {}
    figures, n_findings = dict(known), 0
    for name in names:
        time = max(1, round(seconds * shares[name] / sum(shares.values())))
        command = [sys.executable, str(Path(__file__).parent), name, f"-max_total_time={time}", "-print_final_stats=1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
        counted, memory = _DONE.search(done.stderr), _MEMORY.findall(done.stderr)
        if done.returncode or counted is None:
            n_findings += 1
            print(f"{name}: a finding\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}", flush=True)  # noqa: T201
            continue
        most = max(map(int, memory), default=0)
        before = known.get(name, {"cases": 0, "seconds": 0, "most_memory_mib": 0})
        figures[name] = {
            "cases": before["cases"] + int(counted[1]),
            "seconds": before["seconds"] + int(counted[2]),
            "most_memory_mib": max(before["most_memory_mib"], most),
        }
        print(f"{name}: {int(counted[1]):,} cases in {counted[2]} s, at most {most} MiB", flush=True)  # noqa: T201
    total = sum(figure["cases"] for figure in figures.values())
    print(f"{total:,} cases, {n_findings} of {len(names)} targets with findings")  # noqa: T201
    if write is not None and not n_findings:
        content = {"cases": total, "findings": 0, "memory_limit_mib": MAX_MEMORY, "targets": figures}
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(json.dumps(content, indent=1) + "\n")
    return n_findings


def main() -> None:
    """Fuzz the target that is the first argument, or all targets."""
    if len(sys.argv) > 1 and sys.argv[1] in target_names():
        fuzz_one(sys.argv[1], sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument("--only", nargs="+", choices=target_names(), metavar="TARGET", help="some targets")
    parser.add_argument("--write", type=Path, help="a JSON file for the figures")
    options = parser.parse_args()
    sys.exit(min(fuzz_all(options.only or target_names(), options.seconds, options.write), 1))


if __name__ == "__main__":
    main()
