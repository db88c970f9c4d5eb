"""Signals that end long work in order, and its progress."""

import io
import os
import signal
import subprocess
import sys
import threading

import pytest

from neuroshard import progress
from neuroshard.progress import ProgressLine
from neuroshard.stopping import Stopped, signals_call, stop_now


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal():
    """What shells start in the background ignores SIGINT, and what is ignored stays so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_work(number, code):
    before = signal.getsignal(number)
    with pytest.raises(Stopped, match=f"stopped by {number.name}") as stopped:
        with signals_call(stop_now):
            os.kill(os.getpid(), number)
            signal.pause()
    assert stopped.value.exit_code == code
    assert signal.getsignal(number) is before


def test_each_signal_is_told():
    found = []
    with signals_call(found.append):
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
    assert found == [15, 15, 2]


def test_signals_that_are_ignored_stay_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_call(stop_now):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_leaves_signals_alone():
    found = []

    def work():
        with signals_call(stop_now):
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_a_line_on_a_terminal_is_taken_away(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    with pytest.raises(Stopped), ProgressLine() as line:
        line.show("1 of 40 tasks, some of which take long")
        line.show("2 of 40 tasks")  # too soon
        stop_now(signal.SIGTERM)
    assert screen.getvalue() == "\r1 of 40 tasks, some\x1b[K\r\x1b[K"


@pytest.mark.parametrize(("name", "kind"), [("dumb", Screen), ("", Screen), ("xterm", io.StringIO)])
def test_elsewhere_there_is_a_line_now_and_then(monkeypatch, name, kind):
    said = kind()
    now = 0.0
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setenv("TERM", name)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with ProgressLine() as line:
        for second in range(20_000):
            now = float(second)
            line.show(f"second {second}")
    lines = said.getvalue().splitlines()
    assert lines[:3] == ["second 5", "second 10", "second 15"]
    assert lines[-1] == "second 19984" or int(lines[-1].split()[1]) > 19_900
    assert 300 < len(lines) < 450


LONG_WORK = """
import sys
import time

import neuroshard
from neuroshard.stopping import Stopped, signals_call, stop_now


class Device:
    bytes_between_passes = 0

    def prepare(self, pieces, optimizer, seed):
        return Set()

    def has_room(self):
        return False

    def disturb_caches(self, num_bytes):
        return num_bytes


class Set:
    bytes_touched = 1

    def forward(self):
        time.sleep(0.001)
        return 1.0

    backward = forward


task = neuroshard.Task(
    [neuroshard.Table(f"t{i}", 1000, 64, 3.0) for i in range(4)], neuroshard.Topology(1, 1 << 60), 64
)
from neuroshard.types import task_text

collection = neuroshard._core.Collection(task_text(task), "mine", [], 1, 2, 1 << 30, 0.5, 0)
try:
    with signals_call(stop_now):
        neuroshard._core.collect(
            [(collection, sys.argv[1])],
            1_000_000,
            '{"kind": "none"}',
            '{"name": "none"}',
            0.25,
            False,
            1,
            Device,
            lambda done, requested, left: print(done, flush=True),
        )
except Stopped as stopped:
    sys.exit(stopped.exit_code)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_collection_that_is_stopped_keeps_its_samples(tmp_path, number):
    path = tmp_path / "costs.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", LONG_WORK, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        done = 0
        while done < 3:
            line = run.stdout.readline()
            assert line, run.stderr.read().decode()
            done = int(line)
        run.send_signal(number)
        _, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (128 + number, b"")
    content = path.read_bytes()
    assert content.endswith(b"\n") and content.count(b"\n") > done
