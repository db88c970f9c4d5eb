#!/usr/bin/env -S python3 -B
"""Kills every command that writes at random moments (SIGKILL), and checks that no file is half
written, lost or changed, and that the same command then ends as it would have:

    tests/faults/kill_moments.py build/release/cli/neuroshard --kills 1000

A third of the commands end before their moment comes: tries go on until that many were killed, or
three times as many were made.

Temporary files that a killed command leaves (.neuroshard-*.tmp) are counted, not failures: nobody
but the next user can remove them. Exit code 1 if anything does not hold.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from commands import COMMANDS, Command
from workplace import (
    TEMPORARY,
    Reference,
    Workplace,
    to_go_on_from,
    what_is_wrong_with_files,
    what_is_wrong_with_results,
    what_is_wrong_with_success,
)

# What comes of a command that was killed.
LEFT_ONE, LEFT_NONE = "left a temporary file", "left none"


def try_kill(
    work: Workplace, command: Command, reference: Reference, seconds: float
) -> tuple[str, list[str]]:
    """What came of a kill after that time, in a word, and what is wrong."""
    run = work.run(command, reference.old, kill_after=seconds)
    if run.exit_code == 0:
        return "had ended", what_is_wrong_with_success(reference, run)
    if run.exit_code != -9:
        return "failed", [f"exit code {run.exit_code} before it was killed: {run.err[-300:]}"]
    wrong = what_is_wrong_with_files(command, reference, run, is_killed=True)
    temporary = [name for name in run.files if TEMPORARY.search(name)]
    again = work.run(command, to_go_on_from(command, reference, run))
    if again.exit_code != 0:
        wrong.append(f"cannot be run again: {again.err}")
    wrong += [f"run again: {text}" for text in what_is_wrong_with_results(reference, again.files)]
    return LEFT_ONE if temporary else LEFT_NONE, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("executable", type=Path)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=lambda text: text.split(","))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    work = Workplace(options.executable.resolve(), folder)
    writing = [
        command
        for command in COMMANDS
        if command.outputs and (not options.commands or command.name in options.commands)
    ]
    references = {
        (command.name, with_old): work.reference(command, with_old)
        for command in writing
        for with_old in (False, True)
    }
    draw = random.Random(options.seed)

    def attempt(number: int) -> tuple[str, float, str, list[str]]:
        command = writing[number % len(writing)]
        reference = references[command.name, number // len(writing) % 2 == 1]
        seconds = moments[number] * reference.seconds
        return command.name, seconds, *try_kill(work, command, reference, seconds)

    moments = [draw.random() for _ in range(3 * options.kills)]
    outcomes: Counter[str] = Counter()
    tries = killed = failures = 0
    with ThreadPoolExecutor(options.workers) as pool:
        while killed < options.kills and tries < len(moments):
            numbers = range(tries, min(tries + options.kills - killed, len(moments)))
            for name, seconds, outcome, wrong in pool.map(attempt, numbers):
                outcomes[outcome] += 1
                if wrong:
                    failures += 1
                    print(f"{name}, to be killed after {seconds:.4f} s: {outcome}")
                    print(*(f"    {text}" for text in wrong), sep="\n", flush=True)
            tries = numbers.stop
            killed = outcomes[LEFT_ONE] + outcomes[LEFT_NONE]
    shutil.rmtree(folder)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    print(f"{tries} tries, {failures} failures, {killed} killed, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
