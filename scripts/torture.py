#!/usr/bin/env python3
"""Everything of docs/reliability.md in one command, `make torture`: generated inputs for every
reader and every Python function, commands that are killed, requests to the system that fail, and
disks that are full or read-only. All parts run, also after one that failed; at the end a table says
what was tried how often and failed. Exit code 1 if anything did.

    scripts/torture.py [--runs 200000] [--calls 2000] [--kills 300] [--sample 3000]
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXECUTABLE = "build/release/cli/neuroshard"
SHIM = "build/release/tests/libfault_shim.so"
# "task: 60000 tries, 0 failures; ..." of one part's kind, or "1000 tries, 0 failures, 12 s" of all.
RESULT = re.compile(r"^(?:(?P<of>[\w. -]+): )?(?P<tries>\d+) (?:tries|faults), (?P<failures>\d+) failures")
SKIPPED = 77


@dataclass
class Part:
    """A command, and what its tries are of."""

    of: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    is_one: bool = False
    """Whether its results are one row."""

    def __str__(self) -> str:
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join([*settings, *self.command])


def parts_of(options: argparse.Namespace) -> list[Part]:
    faults = ["tests/faults/fault_injection.py", EXECUTABLE, SHIM, "--kinds"]
    other_kinds = "map,open,read,write,print,sync,truncate,seek,list,clock,rename,mkdir,chmod,lock,close,pipe,fork,thread"
    return [
        Part("inputs", ["build/release/fuzz/torture", "--runs", str(options.runs)]),
        Part(
            "Python objects",
            ["build/python/bin/python", "-m", "python_objects", "--runs", str(options.calls)],
            {"PYTHONPATH": "fuzz"},
            is_one=True,
        ),
        Part("disks that are full or read-only, two writers", ["tests/faults/disks.py", EXECUTABLE]),
        Part(
            "kills at a random moment",
            ["tests/faults/kill_moments.py", EXECUTABLE, "--kills", str(options.kills)],
        ),
        Part("requests that fail, but for memory", [*faults, other_kinds]),
        Part(
            "memory that is refused",
            [*faults, "memory", "--sample", str(options.sample)],
        ),
    ]


@dataclass
class Row:
    """Of the table."""

    of: str
    tries: str
    failures: str
    command: str


def run(part: Part) -> tuple[list[Row], bool]:
    """Shows what the command prints, and reads its results from it."""
    print(f"== {part}", flush=True)
    start = time.monotonic()
    with subprocess.Popen(
        part.command, cwd=ROOT, env={**os.environ, **part.environment}, text=True,
        stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        found = []
        for line in process.stdout:
            print(line, end="", flush=True)
            if result := RESULT.match(line):
                found.append(result)
    print(f"== {time.monotonic() - start:.0f} s", flush=True)
    command = f"`{part}`"
    if process.returncode == SKIPPED:
        return [Row(part.of, "skipped", "", command)], True
    if not found:
        return [Row(part.of, "none", f"exit code {process.returncode}", command)], False
    if part.is_one:
        tries = sum(int(result["tries"]) for result in found)
        failures = sum(int(result["failures"]) for result in found)
        rows = [Row(f"{part.of}, {len(found)} functions", str(tries), str(failures), command)]
    else:
        rows = [
            Row(f"{part.of}: {found_of}" if (found_of := result["of"]) else part.of,
                result["tries"], result["failures"], command)
            for result in found
        ]  # fmt: skip
    return rows, process.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=200_000, help="inputs for each reader")
    parser.add_argument("--calls", type=int, default=2_000, help="calls of each Python function")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--sample", type=int, default=3_000, help="places that ask for memory")
    options = parser.parse_args()
    rows: list[Row] = []
    all_well = True
    start = time.monotonic()
    for part in parts_of(options):
        more, well = run(part)
        rows += more
        all_well = all_well and well
    print("\n| input or fault | tries | failures | command |\n|---|---|---|---|")
    before = ""
    for row in rows:
        command = "the same" if row.command == before else row.command
        print(f"| {row.of} | {row.tries} | {row.failures} | {command} |")
        before = row.command
    print(f"\n{time.monotonic() - start:.0f} s")
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main())
