#!/usr/bin/env -S python3 -B
"""Runs every command on a disk that is read-only, full or soon full, and those that write also
twice at once on the same outputs, and checks that no file is half written, lost or changed:

    tests/faults/disks.py build/release/cli/neuroshard
        --commands plan,compare     only these (commands.py)

The disks are small ones in memory (tmpfs), mounted where no other process sees them. On one that is
read-only or full a command ends as ever, or with exit code 2 and one line that names the output and
the reason, after which the same command goes on elsewhere from what it left. Of two at once, each
ends well or is refused in one line, at least one ends well, and then all files are those of one
alone. Exit code 1 if anything does not hold, 77 where mounting is not permitted.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commands import COMMANDS, Command
from workplace import (
    Reference,
    Run,
    Workplace,
    files_in,
    is_continued,
    to_go_on_from,
    what_is_wrong_with_files,
    what_is_wrong_with_refusal,
    what_is_wrong_with_results,
    what_is_wrong_with_success,
)

SKIPPED = 77
# Mounts of one's own, for root and for others where the kernel lets them.
NAMESPACES = (["unshare", "-m"], ["unshare", "-r", "-m"])
DISK_BYTES = 16 << 20  # some times what a command reads and writes
PAGE = os.sysconf("SC_PAGE_SIZE")  # what tmpfs gives a file at least

READ_ONLY, AT_ONCE = "read-only", "two at once"


@dataclass(frozen=True)
class Try:
    """A command in a place that is bad in one way."""

    command: Command
    with_old: bool
    way: str
    room: int = 0  # bytes free, of a disk that is not read-only
    delay: float = 0.0  # of the second of two, as a share of the time that one takes

    def __str__(self) -> str:
        over = ", over older files" if self.with_old else ""
        how = f", {self.room} bytes free" if self.way.startswith("full") else ""
        how += f", the second later by {self.delay:g} of its time" if self.way == AT_ONCE else ""
        return f"{self.command.name}, {self.way}{how}{over}"


@contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """An empty disk of its own."""
    place = tempfile.mkdtemp(dir=folder, prefix="disk-")
    options = f"size={DISK_BYTES},mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        yield Path(place)
    finally:
        unmount(place)
        os.rmdir(place)


def unmount(place: str) -> None:
    """A process that another thread is just starting has this one's open files for a moment."""
    end = time.monotonic() + 10.0
    while subprocess.run(["umount", place], capture_output=True, check=False).returncode != 0:
        if time.monotonic() > end:
            subprocess.run(["umount", place], check=True)
        time.sleep(0.05)


def leave_room(mounted: Path, room: int) -> None:
    """Fills a disk but for `room` bytes."""
    status = os.statvfs(mounted)
    with (mounted / "filler").open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, status.f_bavail * status.f_frsize - room)


def pages_of(reference: Reference, command: Command) -> int:
    """Pages that a run takes of the disk: a file that is replaced stays until the new one is
    there."""
    pages = 0
    for name, size in reference.sizes.items():
        before = len(reference.old.get(name, b"")) if is_continued(command, name) else 0
        pages += -(-size // PAGE) - -(-before // PAGE)
    return pages


def tries_of(command: Command, references: dict[bool, Reference]) -> list[Try]:
    found = []
    for with_old, reference in references.items():
        found += [Try(command, with_old, READ_ONLY), Try(command, with_old, "full")]
        # One page: a file of lines begins, and ends in the middle of a line. Half: one of several
        # outputs is written, or the longest one in part.
        pages = pages_of(reference, command)
        for free in sorted({1, pages // 2}):
            if 0 < free < pages:
                found.append(Try(command, with_old, "full soon", room=free * PAGE))
        if command.outputs:
            found += [Try(command, with_old, AT_ONCE, delay=delay) for delay in (0.0, 0.3)]
    return found


def run_on_disk(work: Workplace, attempt: Try, reference: Reference) -> tuple[str, list[str]]:
    """What came of it, in words, and what is wrong."""
    command = attempt.command
    with disk(work.folder) as mounted:
        place = mounted / "place"
        place.mkdir()
        work.fill(place, command, reference.old)
        if attempt.way == READ_ONLY:
            # This mount of it: only root may change a disk's own options.
            subprocess.run(["mount", "-o", "remount,bind,ro", mounted], check=True)
        else:
            leave_room(mounted, attempt.room)
        run = work.run_in(place, command)
        run.files = files_in(place)
    if run.exit_code == 0:
        return "ended well", what_is_wrong_with_success(reference, run)
    reason = "Read-only file system" if attempt.way == READ_ONLY else "No space left on device"
    wrong = what_is_wrong_with_refusal(command, reference, run, reason)
    wrong += what_is_wrong_with_files(command, reference, run)
    again = work.run(command, to_go_on_from(command, reference, run))
    if again.exit_code != 0:
        wrong.append(f"cannot be run again: {again.err[-300:]}")
    wrong += [f"run again: {text}" for text in what_is_wrong_with_results(reference, again.files)]
    return "refused", wrong


def run_two(work: Workplace, attempt: Try, reference: Reference) -> tuple[str, list[str]]:
    """What came of two at once, in words, and what is wrong."""
    command = attempt.command
    place = Path(tempfile.mkdtemp(dir=work.folder, prefix="two-"))
    work.fill(place, command, reference.old)

    def start(delay: float) -> Run:
        time.sleep(delay)
        return work.run_in(place, command)

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(start, (0.0, attempt.delay * reference.seconds)))
    refused = [run for run in runs if run.exit_code != 0]
    wrong = [
        text for run in refused for text in what_is_wrong_with_refusal(command, reference, run)
    ]
    if len(refused) == 2:
        wrong.append(f"neither ended well: {[run.err[-300:] for run in runs]}")
    wrong += what_is_wrong_with_results(reference, files_in(place))
    shutil.rmtree(place)
    return ("both ended well" if not refused else "one was refused"), wrong


def enter_namespace() -> None:
    """Goes on as a process with mounts of its own, or ends where there are none to be had."""
    said = "unshare is not installed"
    with tempfile.TemporaryDirectory() as place:
        for namespace in NAMESPACES if shutil.which("unshare") else ():
            mount = [*namespace, "mount", "-t", "tmpfs", "tmpfs", place]
            tried = subprocess.run(mount, capture_output=True, text=True, check=False)
            if tried.returncode == 0:
                break
            said = " ".join(tried.stderr.split())
        else:
            print(f"skipped: no disk can be mounted here: {said}")
            sys.exit(SKIPPED)
    python = [sys.executable, "-B", str(Path(__file__).resolve())]
    os.execvp(namespace[0], [*namespace, *python, *sys.argv[1:], "--in-namespace"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("executable", type=Path)
    parser.add_argument("--commands", type=lambda text: text.split(","))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--in-namespace", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.in_namespace:
        enter_namespace()
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="disks-"))
    work = Workplace(options.executable.resolve(), folder)
    chosen = [
        command
        for command in COMMANDS
        if not options.commands or command.name in options.commands
    ]

    def references_of(command: Command) -> dict[bool, Reference]:
        ways = (False, True) if command.outputs else (False,)
        return {with_old: work.reference(command, with_old) for with_old in ways}

    def run(attempt: Try) -> tuple[Try, str, list[str]]:
        reference = references[attempt.command.name][attempt.with_old]
        run_it = run_two if attempt.way == AT_ONCE else run_on_disk
        return attempt, *run_it(work, attempt, reference)

    outcomes: Counter[tuple[str, str]] = Counter()
    failures = 0
    with ThreadPoolExecutor(options.workers) as pool:
        names = [command.name for command in chosen]
        references = dict(zip(names, pool.map(references_of, chosen)))
        tries = [
            attempt for command in chosen for attempt in tries_of(command, references[command.name])
        ]
        for attempt, outcome, wrong in pool.map(run, tries):
            outcomes[attempt.way, outcome] += 1
            if wrong:
                failures += 1
                print(f"{attempt}: {outcome}")
                print(*(f"    {text}" for text in wrong), sep="\n", flush=True)
    shutil.rmtree(folder)
    for (way, outcome), count in sorted(outcomes.items()):
        print(f"{way}: {count} {outcome}")
    print(f"{len(tries)} tries, {failures} failures, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
