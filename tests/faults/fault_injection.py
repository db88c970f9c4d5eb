#!/usr/bin/env -S python3 -B
"""Lets every request of the executable to the system fail once, each at every place in the program
that makes it, and checks that it ends with an error and without harm:

    tests/faults/fault_injection.py build/release/cli/neuroshard build/release/tests/libfault_shim.so
        --sample 100                only 100 of the places that ask for memory, drawn by --seed
        --commands plan,compare     only these (commands.py)
        --kinds memory,write        only requests of these kinds
        --stays                     from the place on all requests of the kind fail, not only one
        --depth 3                   return addresses that tell places of memory apart
        --again JOB                 a failure once more, as it was printed; its folder is kept

What must hold of each: the process ends by itself within two minutes, with an exit code that is
documented; if that is not 0, then with one line on stderr that says which file or what lacked, with
all files whole, old or absent, and with what it was to continue still to be continued; if it is 0,
then with the results of a run without a fault. Exit code 1 if anything does not hold.
"""

import argparse
import errno
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from commands import COMMANDS, Command
from workplace import (
    Reference,
    Run,
    Workplace,
    is_continued,
    masked_lines,
    shown_lines,
    to_go_on_from,
    what_is_wrong_with_files,
    what_is_wrong_with_success,
)

HALF = -1  # of the bytes are read or written, without an error
JUMP = -2  # of a clock, by a day

# How requests of each kind fail.
WAYS = {
    "memory": [errno.ENOMEM],
    "map": [errno.ENOMEM],
    "open": [errno.EMFILE, errno.EIO],
    "read": [errno.EIO, errno.EINTR, HALF],
    "write": [errno.ENOSPC, errno.EIO, errno.EINTR, HALF],
    "print": [errno.ENOSPC],
    "sync": [errno.EIO],
    "truncate": [errno.EIO],
    "seek": [errno.EIO],
    "list": [errno.EIO],
    "clock": [JUMP],
    "rename": [errno.EACCES, errno.EIO],
    "mkdir": [errno.EACCES, errno.ENOSPC],
    "chmod": [errno.EPERM],
    "lock": [errno.ENOLCK],
    "close": [errno.EIO],
    "pipe": [errno.EMFILE],
    "fork": [errno.EAGAIN],
    "thread": [errno.EAGAIN],
}
# What no command may notice.
HARMLESS = {("read", errno.EINTR), ("read", HALF), ("write", errno.EINTR), ("write", HALF), ("clock", JUMP)}



@dataclass(frozen=True)
class Job:
    """A place that fails, in one command."""

    command: str
    with_old: bool
    kind: str
    place: str
    how: int

    def __str__(self) -> str:
        old = "old" if self.with_old else "new"
        return f"{self.command}:{old}:{self.kind}:{self.place}:{way_name(self.how)}"

    @staticmethod
    def parse(text: str) -> "Job":
        command, old, kind, place, way = text.split(":")
        how = {"half": HALF, "jump": JUMP}.get(way) or getattr(errno, way)
        return Job(command, old == "old", kind, place, how)


def way_name(how: int) -> str:
    return {HALF: "half", JUMP: "jump"}.get(how) or errno.errorcode[how]


class FaultInjection:
    """Lists places and lets them fail."""

    def __init__(self, options: argparse.Namespace, folder: Path):
        self.options = options
        self.shim = options.shim.resolve()
        self.work = Workplace(options.executable.resolve(), folder)
        self.folder = folder
        self.references: dict[tuple[str, bool], Reference] = {}
        self.frames: dict[str, str] = {}

    def environment(self, **settings: str) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.shim),
            "FAULT_DEPTH": str(self.options.depth),
            **settings,
        }

    def reference(self, command: Command, with_old: bool) -> Reference:
        key = (command.name, with_old)
        if key not in self.references:
            self.references[key] = self.work.reference(command, with_old)
        return self.references[key]

    def places(self, command: Command, with_old: bool) -> dict[str, str]:
        """Kind by place, in the order in which two runs reach them."""
        found: dict[str, str] = {}
        old = self.reference(command, with_old).old
        lines = self.folder / f"places-{command.name}-{with_old}"
        for _ in range(2):
            run = self.work.run(command, old, self.environment(FAULT_LIST=str(lines)))
            if run.exit_code != 0:
                raise SystemExit(f"{command.name}: expected exit code 0 without a fault: {run.err}")
            for line in lines.read_text().splitlines():
                kind, place, frames = line.split("\t")
                if "__cxa_thread_atexit" in frames:
                    continue  # glibc ends a process in which it cannot note a thread's destructor
                found.setdefault(place, kind)
                self.frames.setdefault(place, frames)
            lines.unlink()
        return found

    def jobs(self, pool: ThreadPoolExecutor) -> list[Job]:
        """Places of memory fail in the first command that reaches them, others in each."""
        chosen = [
            (command, with_old)
            for command in COMMANDS
            if not self.options.commands or command.name in self.options.commands
            for with_old in ([False, True] if command.outputs else [False])
        ]
        result: list[Job] = []
        memory: list[Job] = []
        memory_seen: set[str] = set()
        places = pool.map(lambda key: self.places(*key), chosen)
        for (command, with_old), found in zip(chosen, places):
            for place, kind in found.items():
                if self.options.kinds and kind not in self.options.kinds:
                    continue
                job = [Job(command.name, with_old, kind, place, how) for how in WAYS[kind]]
                if kind != "memory":
                    result += job
                elif place not in memory_seen:
                    memory_seen.add(place)
                    memory += job
        print(f"{len(memory)} places that ask for memory, {len(result)} other faults", flush=True)
        if self.options.sample is not None and self.options.sample < len(memory):
            memory = random.Random(self.options.seed).sample(memory, self.options.sample)
        return result + memory

    def run(self, job: Job) -> tuple[Job, str, list[str]]:
        """What came of it, in a word, and what is wrong."""
        command = self.work.by_name[job.command]
        reference = self.reference(command, job.with_old)
        handle, mark_name = tempfile.mkstemp(dir=self.folder, prefix="mark-")
        os.close(handle)
        mark = Path(mark_name)
        mark.unlink()
        environment = self.environment(
            FAULT_KIND=job.kind,
            FAULT_AT=job.place,
            FAULT_HOW=str(job.how),
            FAULT_MARK=str(mark),
            FAULT_STAYS="1" if self.options.stays else "0",
        )
        run = self.work.run(
            command, reference.old, environment, keep=self.folder if self.options.again else None
        )
        if not mark.exists():
            return job, "not reached", what_is_wrong_with_success(reference, run)
        mark.unlink()
        wrong = self.what_is_wrong(job, command, reference, run)
        if self.options.again:
            print(f"exit code {run.exit_code}, stderr:\n{run.err}")
        return job, "went on" if run.exit_code == 0 else "error", wrong

    def what_is_wrong(
        self, job: Job, command: Command, reference: Reference, run: Run
    ) -> list[str]:
        if run.is_hanging:
            return ["it hangs"]
        if run.exit_code < 0:
            return [f"ended by signal {-run.exit_code}: {run.err[-300:]}"]
        if run.exit_code == 0:
            return what_is_wrong_with_success(reference, run)
        if (job.kind, job.how) in HARMLESS and not self.options.stays:
            return [f"exit code {run.exit_code} where all can be done: {run.err[-300:]}"]
        wrong = what_is_wrong_with_files(command, reference, run)
        wrong += self.what_is_wrong_with_error(job, reference, run)
        if any(is_continued(command, name) for name in reference.files):
            again = self.work.run(command, to_go_on_from(command, reference, run))
            if again.exit_code != 0:
                wrong.append(f"cannot be continued: {again.err}")
            else:
                wrong += [f"continued: {text}" for text in what_is_wrong_with_success(reference, again)
                          if "stdout" not in text and "stderr" not in text]
        return wrong

    def what_is_wrong_with_error(self, job: Job, reference: Reference, run: Run) -> list[str]:
        wrong = []
        if run.exit_code not in (2, 3):
            wrong.append(f"exit code {run.exit_code} for a fault of the machine")
        if job.kind in ("memory", "map", "thread") and run.exit_code != 3:
            wrong.append(f"exit code {run.exit_code}, not 3: {run.err}")
        said = [
            line
            for line, masked in zip(shown_lines(run.err), masked_lines(run.err))
            if masked not in reference.err
        ]
        if len(said) != 1 or not said[0].startswith("neuroshard: ") or not said[0].isprintable():
            return wrong + [f"expected one line on stderr, got {run.err[-500:]!r}"]
        named = {
            "memory": ["memory", "threads: "],  # a thread's own
            "map": ["memory"],
            "thread": ["thread"],
            "fork": ["process"],
            "pipe": ["process"],
        }.get(job.kind)
        if named is None:
            files = {*reference.files, *reference.inputs, *(f"{name}/" for name in ["out", "kept"])}
            named = [*files, "out", "kept", "table", "stdout", ".safetensors", "models: ", "/proc/"]
        if not any(name in said[0] for name in named):
            wrong.append(f"stderr does not say what lacked: {said[0]}")
        return wrong

    def where(self, place: str) -> str:
        """The place in words: functions and lines of the program, innermost first."""
        frames = self.frames.get(place, "").split()
        offsets = [f[len("program+") :] for f in frames if f.startswith("program+")]
        others = [f for f in frames if not f.startswith("program+")]
        named = subprocess.run(
            ["addr2line", "-Cfpse", str(self.work.executable), *offsets],
            capture_output=True, text=True, check=False,
        ).stdout.splitlines()  # fmt: skip
        return " < ".join([*others[-1:], *(line[:120] for line in named[:4])])


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("executable", type=Path)
    parser.add_argument("shim", type=Path)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=words)
    parser.add_argument("--kinds", type=words)
    parser.add_argument("--stays", action="store_true")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--again", type=Job.parse)
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    injection = FaultInjection(options, folder)
    if options.again:
        job, outcome, wrong = injection.run(options.again)
        print(f"{job}: {outcome}", *wrong, f"in {folder}", sep="\n  ")
        return 1 if wrong else 0
    outcomes: Counter[tuple[str, str]] = Counter()
    failures = 0
    with ThreadPoolExecutor(options.workers) as pool:
        jobs = injection.jobs(pool)
        for done, (job, outcome, wrong) in enumerate(pool.map(injection.run, jobs), 1):
            outcomes[job.kind, outcome] += 1
            if wrong:
                failures += 1
                outcomes[job.kind, "failures"] += 1
                print(f"{job}: {outcome}\n    at {injection.where(job.place)}")
                print(*(f"    {text}" for text in wrong), sep="\n", flush=True)
            if done % 1000 == 0:
                print(f"{done} of {len(jobs)}, {time.monotonic() - start:.0f} s", flush=True)
    columns = ["error", "went on", "not reached", "failures"]
    print("kind", *columns, sep="\t")
    for kind in WAYS:
        counts = [outcomes[kind, column] for column in columns]
        if any(counts):
            print(kind, *counts, sep="\t")
    print(f"{len(jobs)} faults, {failures} failures, {time.monotonic() - start:.0f} s")
    subprocess.run(["rm", "-rf", folder], check=False)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
