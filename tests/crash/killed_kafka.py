"""Forks children that run ``fairtransport stream --kafka --resume`` and are killed, until everything is read.

Run as a program by the test, with a folder, ``file`` or ``topic``, and a number of kills. A process that has used the
client library must not fork, so children do everything that needs it. When a child has come to the end, readers of
committed messages must find each message of the input scored once, and everything must be as in a run that was not
killed and had the same batches. Then it all begins again with other topics.

Transactions are short, so random moments seldom hit one. With ``topic``, every second child kills itself at a random
call of the client library: before it, when the messages are with the broker, or after it.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import confluent_kafka  # noqa: F401 - loaded before the forks

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "stream"))

from kafka_world import broker, committed_offsets, make_model, make_rows, messages, produce
from killed_streams import forked, killed, prepared

from fairtransport.cli.app import app
from fairtransport.storage import read_container
from fairtransport.stream import read_journal
from fairtransport.stream.kafka import TopicOutput, TopicSource

ROUNDS, PARTITIONS, ROWS, BAD = 40, 2, 100, {13, 70}
MODEL = "m.ft"


def run(home, folder, brokers, number, *output, group="scoring"):
    """Run the command to its end."""
    read = ["--kafka", brokers, "--topic", f"rows-{number}", "--group-id", group]
    model = ["--model", str(home / MODEL), "--sensitive", "sex", "--score", "s"]
    often = ["--batch", "10", "--checkpoint-every", "2"]
    app(["stream", *model, *read, "--store", str(folder / "store"), "--resume", *often, *output], standalone_mode=False)


def run_to_call(number, after, *arguments):
    """Run the command, and die at its n-th call of the producer."""
    real, calls = TopicOutput._call, iter(range(number + 1))

    def call(self, function, *more):
        is_last = next(calls) == number
        if is_last and not after:
            self._producer.flush(5)
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(self, function, *more)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    TopicOutput._call = call
    run(*arguments)


def outputs(kind, folder, number):
    if kind == "file":
        return ["--out", str(folder / "out.jsonl")]
    return ["--output-topic", f"scored-{number}", "--rejected-topic", f"rejected-{number}"]


def done(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def repeat_batches(entries, *arguments, **options):
    """Run the command with the batches of a journal."""
    real, left = TopicSource.take, list(entries)

    def take(self, n_lines, **waiting):
        if left:
            self.repeat(left.pop(0))
        return real(self, n_lines, **waiting)

    TopicSource.take = take
    run(*arguments, **options)


def state(folder):
    """The newest checkpoint, apart from the names of group and output."""
    newest = read_container(max((folder / "store").glob("checkpoint-*.ft")), kind="checkpoint")
    return newest.schema["version"], {name: array.tobytes() for name, array in newest.arrays.items()}


def compare(home, kind, folder, brokers, number, result):
    """Compare with a run that was not killed; what is wrong goes to a file."""
    wrong, again = [], prepared(home / "again")
    repeat_batches(
        read_journal(folder / "store"), home, again, brokers, number, "--out", str(again / "out.jsonl"), group="again"
    )
    expected = (again / "out.jsonl").read_bytes().splitlines()
    rejected = (again / "store" / "rejected.jsonl").read_bytes().splitlines()
    aborted = 0
    if kind == "file":
        found = (folder / "out.jsonl").read_bytes().splitlines()
        set_aside = (folder / "store" / "rejected.jsonl").read_bytes().splitlines()
        wrong += ["output"] * (found != expected)
    else:
        sent = messages(brokers, f"scored-{number}", n_partitions=PARTITIONS)
        found = [value for _, _, value in sent]
        in_order = [
            [int(key) for partition, key, _ in sent if partition == index] for index in range(PARTITIONS)
        ]  # keys of a partition are in the order in which they were sent
        wrong += ["order"] * any(keys != sorted(keys) for keys in in_order)
        wrong += ["output"] * (sorted(found) != sorted(expected))
        set_aside = [value for _, _, value in messages(brokers, f"rejected-{number}")]
        aborted = len(messages(brokers, f"scored-{number}", n_partitions=PARTITIONS, committed=False)) - len(sent)
        ends = committed_offsets(brokers, "scoring", f"rows-{number}", n_partitions=PARTITIONS)
        wrong += ["offsets"] * (ends != [ROWS // PARTITIONS] * PARTITIONS)
    wrong += ["rejected"] * (set_aside != rejected)
    ids = sorted(json.loads(line)["id"] for line in found)
    wrong += ["once"] * (ids != sorted(set(range(ROWS)) - BAD))
    journals = [(store / "store" / "journal.jsonl").read_bytes() for store in (folder, again)]
    wrong += ["journal"] * (journals[0] != journals[1]) + ["state"] * (state(folder) != state(again))
    result.write_text(json.dumps({"wrong": wrong, "aborted": aborted, "rows": len(found)}))


def main():
    home, kind, n_kills = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    chance = random.Random(0)  # noqa: S311 - moments, not secrets
    make_model(home / MODEL)
    warm = prepared(home / "warm")
    (warm / "rows.jsonl").write_bytes(b"\n".join(make_rows(50)) + b"\n")
    model = ["--model", str(home / MODEL), "--sensitive", "sex", "--score", "s"]
    app(["stream", str(warm / "rows.jsonl"), *model, "--out", str(warm / "out.jsonl")], standalone_mode=False)
    names = [f"{name}-{k}={n}" for k in range(ROUNDS) for name, n in (("rows", 2), ("scored", 2), ("rejected", 1))]
    kills, finished, aborted, wrong, takes, unfinished = 0, 0, 0, [], None, 0
    with broker(*names) as brokers:
        while (kills < n_kills or (home / "killed").exists()) and finished < ROUNDS:
            folder = home / "killed"
            if not folder.exists():
                prepared(folder)
                rows = make_rows(ROWS, bad=BAD)
                if not done(forked(produce, brokers, f"rows-{finished}", rows, n_partitions=PARTITIONS)):
                    raise RuntimeError("The messages could not be produced.")
            began = time.perf_counter()
            call = (chance.randint(0, 20), chance.random() < 0.5) if kind == "topic" and kills % 2 and takes else None
            arguments = (home, folder, brokers, finished, *outputs(kind, folder, finished))
            child = forked(run, *arguments) if call is None else forked(run_to_call, *call, *arguments)
            if takes is None:  # the first round is not killed, and says how long one takes
                ended, status = False, 0 if done(child) else 1
                takes = time.perf_counter() - began
            elif call is not None:
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                ended = status == -signal.SIGKILL
            else:
                ended, status = killed(child, chance.uniform(0.0, 0.7 * takes * (1 + unfinished / 20)))
            if ended:
                kills, unfinished = kills + 1, unfinished + 1
                continue
            wrong += [f"exit status {status}"] * (status != 0)
            if not done(forked(compare, home, kind, folder, brokers, finished, home / "result.json")):
                raise RuntimeError("The comparison failed.")
            result = json.loads((home / "result.json").read_text())
            wrong, aborted = wrong + result["wrong"], aborted + result["aborted"]
            finished, unfinished = finished + 1, 0
            for used in (folder, home / "again"):
                shutil.rmtree(used)
    counts = {"kills": kills, "finished": finished, "aborted": aborted, "rows": result["rows"]}
    print(json.dumps({**counts, "seconds": takes, "wrong": wrong}))  # noqa: T201


if __name__ == "__main__":
    main()
