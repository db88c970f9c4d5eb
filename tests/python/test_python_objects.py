"""Some generated calls of every function; `make torture` makes more of them."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fuzz"))

from python_objects import calls, damage, promise, workers  # noqa: E402
from python_objects.odd import Own  # noqa: E402

SEED = 1

#: Of each function; fewer of those that take long.
RUNS = 200


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield


@pytest.mark.parametrize("call", calls.CALLS, ids=lambda call: call.name)
def test_the_promise_is_kept(call, request):
    if call.name == "evaluate_on_cluster":
        request.getfixturevalue("simgrid")
    runs = max(10, RUNS // call.one_in)
    result = workers.torture(call.name, seed=SEED, first=0, runs=runs, processes=2)
    told = [f"--call {call.name} --seed {SEED} --first {f.number}: {f.reason}" for f in result.failures]
    assert told == []
    assert result.tries == runs
    # Else the calls would say little.
    assert runs // 10 < result.returned


def test_arguments_follow_from_seed_and_number(tmp_path):
    calls.write_inputs(tmp_path)
    call = calls.find_call("Task.from_dict")
    made = [str(calls.arguments_of(call, 1, 5)) for _ in range(2)]
    assert made[0] == made[1]
    assert len({str(calls.arguments_of(call, 1, number)) for number in range(50)}) > 40


# What watches over the calls must itself be seen to work.


def broken(function, **arguments):
    with pytest.raises(promise.Violation) as violation:
        promise.call(function, arguments)
    return str(violation.value)


def raise_in(error):
    def function(**_):
        raise error

    return function


def test_errors_that_are_not_the_packages():
    for error, text in (
        (AttributeError("no attribute"), "AttributeError: 'no attribute'"),
        (SystemError("bad"), "SystemError: 'bad'"),
        (MemoryError(), "MemoryError: "),
        (TypeError("plan(): incompatible function arguments."), "TypeError: 'plan(): incompatible"),
        (promise.NeuroShardError(""), "NeuroShardError: no text"),
        (promise.NeuroShardError("got <object object at 0x7f>"), "of its insides"),
    ):
        assert text in broken(raise_in(error), value=1)
    two_lines = promise.NeuroShardError("a")
    two_lines.args = ("a\nb",)
    assert "more than a line" in broken(raise_in(two_lines))
    for error in (Own("own"), promise.NeuroShardError("one line")):
        assert promise.call(raise_in(error), {}) == (False, None)
    assert promise.call(lambda value: value, {"value": 3}) == (True, 3)
    assert promise.call(lambda value: value, {"other": 3}) == (False, None)


def test_changed_arguments_and_warnings():
    def change(value):
        value[0] = 7

    for value in ([1], {0: 1}, np.array([1]), bytearray(b"a")):
        assert broken(change, value=value) == "an argument was changed"
    assert "RuntimeWarning" in broken(lambda value: value + np.float16(60000), value=np.float16(60000))


def test_damage_reaches_every_place():
    seen = set()
    for number in range(2000):
        arguments = {"a": {"b": [1, 2]}, "bound": 5, "whole": [3]}
        damage.damage(
            random.Random(number), arguments, frozenset(("whole",)), frozenset(("bound",))
        )
        assert arguments["bound"] == 5
        assert type(arguments["whole"]) is list
        if not isinstance(arguments.get("a"), dict):
            seen.add("a")
        elif not isinstance(arguments["a"].get("b"), list):
            seen.add("b")
        elif promise.snapshot(arguments["a"]["b"]) != promise.snapshot([1, 2]):
            seen.add("item")
        if promise.snapshot(arguments["whole"]) != promise.snapshot([3]):
            seen.add("inside")
    assert seen == {"a", "b", "item", "inside"}


FAILING = """
import os, signal, sys, time
sys.path.insert(0, {fuzz!r})
from python_objects import calls, workers

def end(number):
    os.kill(os.getpid(), signal.SIGSEGV)

def hang(number):
    time.sleep(1000)

def leave(number):
    os._exit(4)

def change(number):
    raise calls.Violation("something")

calls.find_call = globals().get
calls.try_call = lambda call, seed, number: call(number) if number % 7 == 3 else True
workers.work(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("end", "ended by signal 11"),
        ("hang", "took longer than 2 s"),
        ("leave", "ended with exit code 4"),
        ("change", "'something'"),
    ],
)
def test_a_call_that_fails_is_told_by_its_number(name, reason, monkeypatch, tmp_path):
    script = tmp_path / "failing.py"
    script.write_text(FAILING.format(fuzz=str(ROOT / "fuzz")))
    monkeypatch.setattr(workers, "_MOST_SECONDS", 2.0)
    result = workers.torture(
        name, seed=1, first=0, runs=20, processes=2, command=[sys.executable, str(script)]
    )
    assert result.tries == 20
    assert {failure.reason for failure in result.failures} == {reason}
    assert sorted(failure.number for failure in result.failures) == [3, 10, 17]
    assert result.returned == 17
