"""Processes that make calls, watched: one that dies or does not come back is told by its call."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from . import calls
from .promise import Violation

#: Of a call, before it counts as hung. A planning with the most tables and devices takes seconds.
_MOST_SECONDS = 30.0

#: Until a process makes its first call.
_LEAST_SECONDS_TO_BEGIN = 60.0

#: Of a process's addresses: an absurd size is an error, and not the machine's end.
_MOST_BYTES = 12 << 30

#: Of one function; then it is left.
_MOST_FAILURES = 50


@dataclass
class Failure:
    number: int
    reason: str


@dataclass
class Result:
    """Of the calls of one function."""

    tries: int = 0
    returned: int = 0
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0


def work(words: Sequence[str]) -> None:
    """In a process of its own: says of each number that it begins, and what became of it. `words`
    are those that `_Worker` gives."""
    name, seed, first, step, end = words[0], *map(int, words[1:5])
    folder, inputs = Path(words[5]), Path(words[6])
    # Standard output is the line to the one that watches; the library shall not write to it.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with contextlib.suppress(ValueError, OSError):
        # AddressSanitizer takes terabytes of addresses, and has a limit of its own
        # (scripts/run_tests.sh).
        if "libasan" not in os.environ.get("LD_PRELOAD", ""):
            resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(folder)
    place = calls.Workplace(folder, inputs)
    call = calls.find_call(name)
    assert call is not None
    for number in range(first, end, step):
        place.tidy()
        print("begin", number, file=out, flush=True)
        print(_became_of(lambda: calls.try_call(call, seed, number)), file=out, flush=True)


def _became_of(try_it: Callable[[], bool]) -> str:
    try:
        return "returned" if try_it() else "refused"
    except Violation as violation:
        where = ""
        if violation.__cause__ is not None:
            last = traceback.extract_tb(violation.__cause__.__traceback__)[-1]
            where = f" at {Path(last.filename).name}:{last.lineno}"
        return "failed " + ascii(str(violation) + where)
    except Exception as error:  # of what is looked at in an answer
        return "failed " + ascii(f"{type(error).__name__}: {error}")


@functools.cache
def _inputs() -> Path:
    """The folder of the files that all processes copy."""
    folder = Path(tempfile.mkdtemp(prefix="neuroshard-torture-inputs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    calls.write_inputs(folder)
    return folder


#: What runs `work` with the words that follow.
_COMMAND = (sys.executable, "-m", "python_objects", "--work")


class _Worker:
    """One process, and another in its place where it dies."""

    def __init__(
        self, command: Sequence[str], name: str, seed: int, first: int, step: int, end: int
    ) -> None:
        self._command = command
        self._arguments = (name, seed, step, end)
        self._folder = Path(tempfile.mkdtemp(prefix="neuroshard-torture-"))
        self.number = first
        self.is_over = False
        self._start(first)

    def _start(self, first: int) -> None:
        name, seed, step, end = self._arguments
        self.number, self.begun = first, False
        self.deadline = time.monotonic() + _LEAST_SECONDS_TO_BEGIN
        words = [name, str(seed), str(first), str(step), str(end), str(self._folder)]
        words.append(str(_inputs()))
        package = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [*self._command, *words],
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._process.stdout is not None
        self.out: IO[bytes] = self._process.stdout
        self._unread = b""

    def read(self, result: Result) -> None:
        """What it has said; where that is nothing, it has ended."""
        text = os.read(self.out.fileno(), 1 << 16)
        if not text:
            self._ended(result)
            return
        *lines, self._unread = (self._unread + text).split(b"\n")
        for line in lines:
            self._take(line.decode(), result)

    def _take(self, line: str, result: Result) -> None:
        word, _, rest = line.partition(" ")
        if word == "begin":
            self.number, self.begun = int(rest), True
            self.deadline = time.monotonic() + _MOST_SECONDS
            return
        result.tries += 1
        result.returned += word == "returned"
        if word == "failed":
            result.failures.append(Failure(self.number, rest))
        self.begun = False

    def _ended(self, result: Result) -> None:
        code = self._process.wait()
        self._kill()
        if code == 0:
            self.is_over = True
            return
        if not self.begun:
            raise RuntimeError(f"python_objects: a process could not begin: exit code {code}")
        told = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._go_on(result, told)

    def stop_if_late(self, result: Result) -> None:
        if time.monotonic() < self.deadline:
            return
        self._kill()
        self._process.wait()
        self._go_on(result, f"took longer than {_MOST_SECONDS:.0f} s")

    def _go_on(self, result: Result, reason: str) -> None:
        result.tries += 1
        result.failures.append(Failure(self.number, reason))
        _, _, step, end = self._arguments
        self.out.close()
        if self.number + step >= end or len(result.failures) >= _MOST_FAILURES:
            self.is_over = True
            return
        self._start(self.number + step)

    def _kill(self) -> None:
        """With what it may have started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        self._kill()
        self._process.wait()
        self.out.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def _workers(
    command: Sequence[str], name: str, seed: int, first: int, runs: int, processes: int
) -> Iterator[list[_Worker]]:
    number = min(processes, runs)
    workers: list[_Worker] = []
    try:
        for n in range(number):
            workers.append(_Worker(command, name, seed, first + n, number, first + runs))
        yield workers
    finally:
        for worker in workers:
            worker.close()


def torture(
    name: str,
    *,
    seed: int,
    first: int,
    runs: int,
    processes: int,
    command: Sequence[str] = _COMMAND,
) -> Result:
    """Makes the calls of these numbers."""
    result = Result()
    begin = time.monotonic()
    with _workers(command, name, seed, first, runs, processes) as workers:
        while any(not worker.is_over for worker in workers):
            with selectors.DefaultSelector() as selector:
                for worker in workers:
                    if not worker.is_over:
                        selector.register(worker.out, selectors.EVENT_READ, worker)
                for key, _ in selector.select(timeout=0.5):
                    key.data.read(result)
            for worker in workers:
                if not worker.is_over:
                    worker.stop_if_late(result)
            if len(result.failures) >= _MOST_FAILURES:
                break
    result.seconds = time.monotonic() - begin
    return result
