"""Files that Python itself reads: how much of one, how strictly, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import neuroshard
import pytest
from neuroshard import InputError
from neuroshard.runtime import read_runtime_costs, read_samples

ROOT = Path(__file__).resolve().parents[2]


def example(name):
    """The example of a format in its document."""
    document = (ROOT / "docs" / "formats.md").read_text()
    begin = '{"format": "' + name + '"'
    return begin + document.split("```json\n" + begin)[1].split("```")[0]


SAMPLES = example("neuroshard/runtime-costs/1")
COSTS = example("neuroshard/runtime-model/1")
READERS = [
    pytest.param(read_samples, SAMPLES, id="read_samples"),
    pytest.param(read_runtime_costs, COSTS, id="read_runtime_costs"),
]


def refusal(function, *arguments, **options):
    with pytest.raises(InputError) as error:
        function(*arguments, **options)
    text = str(error.value)
    assert text.isprintable()
    return text


@pytest.mark.parametrize(("read", "right"), READERS)
def test_a_file_beyond_the_limit_is_refused(read, right, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text(right + " " * 4096)
    monkeypatch.setenv("NEUROSHARD_MAX_INPUT", "4KiB")
    text = refusal(read, path)
    assert text.startswith(f"{path}: expected at most 4.00 KiB (NEUROSHARD_MAX_INPUT), got ")


def test_an_evaluation_beyond_the_limit_is_refused(task, tmp_path, monkeypatch):
    plan = neuroshard.plan(task, steps=100)
    path = tmp_path / "evaluation.json"
    path.write_text(" " * 40_000)
    monkeypatch.setenv("NEUROSHARD_MAX_INPUT", "32KiB")
    text = refusal(plan.report, tmp_path / "report.html", evaluations=path)
    assert text == f"{path}: expected at most 32.00 KiB (NEUROSHARD_MAX_INPUT), got 39.06 KiB"
    assert [each.name for each in tmp_path.iterdir()] == ["evaluation.json"]


def test_an_evaluation_is_utf_8(task, tmp_path):
    plan = neuroshard.plan(task, steps=100)
    path = tmp_path / "evaluation.json"
    path.write_bytes(b'{"format": "\xff"}')
    text = refusal(plan.report, tmp_path / "report.html", evaluations=path)
    assert text.startswith(f"{path}: line 1, column 13: ") and "UTF-8" in text


ENDLESS = """
import resource
import neuroshard
from neuroshard import InputError, Shard, Plan, Table, Task, Topology
from neuroshard.runtime import read_runtime_costs, read_samples

task = Task([Table("t", 1000, 64, 3.0)], Topology(1, "1GiB"), batch_size=4096)
plan = neuroshard.plan(task, steps=10)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for read in (
    read_samples,
    read_runtime_costs,
    lambda path: plan.report("report.html", evaluations=path),
):
    try:
        read("/dev/zero")
    except InputError as error:
        print(error)
"""


def test_no_file_is_read_without_end(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", ENDLESS],
        cwd=tmp_path,
        env={**os.environ, "NEUROSHARD_MAX_INPUT": "16MiB"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    told = "/dev/zero: expected at most 16.00 MiB (NEUROSHARD_MAX_INPUT), got more"
    assert (run.returncode, run.stdout.splitlines()) == (0, [told] * 3), run.stderr


#: Of both examples: a change of text that is in them, and what is said of the file.
LAX = [
    ('"world_size": 2', '"world_size": 2, "world_size": 2', "expected this field once, got it more"),
    ('"kind": "cpu"', '"kind": "cpu", "kind": "gpu"', "expected this field once, got it more"),
    ('"kind": "cpu"', '"kind": NaN', "invalid literal"),
    ('"kind": "cpu"', '"kind": Infinity', "invalid literal"),
    ('"kind": "cpu"', '"kind": 1e999', "expected a number that a double can hold"),
    ('"kind": "cpu"', '"kind": 1' + "0" * 400, "expected a number that a double can hold"),
    ('"kind": "cpu"', '"kind": ' + "[" * 64 + "]" * 64, "expected at most 64 levels of nesting"),
    ('"kind": "cpu"', '"kind": "\\ud800"', "surrogate"),
    ('"kind": "cpu"', '"kind": "cpu",', "expected string literal, got unexpected '}'"),
    ('"world_size": 2', '"world_size": 2.0', "expected an integer from 1 to 65536, got 2.0"),
    ('"world_size": 2', '"world_size": 18446744073709551616', "expected an integer from 1 to 65536"),
    ('"hardware"', '"hard"', "expected no field 'hard'"),
]


@pytest.mark.parametrize(("read", "right"), READERS)
@pytest.mark.parametrize(("old", "new", "text"), LAX)
def test_what_is_not_strict_json_is_refused(read, right, old, new, text, tmp_path):
    path = tmp_path / "file"
    path.write_text(right.replace(old, new, 1))
    told = refusal(read, path)
    assert told.startswith(f"{path}: ") and text in told


@pytest.mark.parametrize(("read", "right"), READERS)
def test_deep_nesting_is_refused(read, right, tmp_path):
    path = tmp_path / "file"
    path.write_text(right.replace('"cpu"', "[" * 1_000_000, 1))
    assert "expected at most 64 levels of nesting" in refusal(read, path)


@pytest.mark.parametrize(("read", "right"), READERS)
def test_paths_of_any_kind(read, right, tmp_path):
    assert refusal(read, b"\xff").endswith("expected Unicode text without NUL, got '\\udcff'")
    assert "expected Unicode text without NUL" in refusal(read, "a/\0")
    assert "expected a path, got int" in refusal(read, 3)
    assert "expected a readable file, got Is a directory" in refusal(read, tmp_path)
    (tmp_path / "file").write_text(right)
    assert read(os.fsencode(tmp_path / "file")) == read(str(tmp_path / "file"))


def test_places_in_lines(tmp_path):
    path = tmp_path / "costs.jsonl"
    path.write_text(SAMPLES.replace('"index": 0,', '"index": ,'))
    assert refusal(read_samples, path).startswith(f"{path}: line 2, column 11: ")


#: Times beyond which sums and ratios are no numbers, and a change of the example that has them.
ABSURD = ["1e-31", "1e31", "1e308"]


@pytest.mark.parametrize("lookups", ["0", "-1", "1e-400", "1e9", "1e300", "true"])
def test_lookups_are_as_of_tasks(lookups, tmp_path):
    path = tmp_path / "file"
    path.write_text(SAMPLES.replace('"pooling_factor": 3.0', f'"pooling_factor": {lookups}'))
    place = f"{path}: line 2: modules[0].tables[0].pooling_factor: "
    assert refusal(read_samples, path).startswith(place + "expected a number above 0, at most 1")


@pytest.mark.parametrize("time", ABSURD)
def test_times_that_cannot_be(time, tmp_path):
    path = tmp_path / "file"
    expected = f"expected 0 or a number between 1e-30 and 1e+30, got {float(time)}"
    for old, place in [('"forward_ms": 1.25', "forward_ms"), ('"backward_ms": 2.5', "backward_ms")]:
        path.write_text(SAMPLES.replace(old, f'"{place}": {time}'))
        assert refusal(read_samples, path) == f"{path}: line 2: {place}: {expected}"
    path.write_text(SAMPLES.replace("[[0.5, ", f"[[{time}, "))
    assert "operator_ms: expected a list of lists of 2 numbers" in refusal(read_samples, path)
    for old, name in [
        ('"pooled_modules": 0.5', "forward.pooled_modules"),
        ('"all_reduced": 1.5', "backward.all_reduced"),
        ('"lookups": 19.0', "operators.sequence.lookups"),
    ]:
        path.write_text(COSTS.replace(old, old.rpartition(" ")[0] + " " + time))
        assert refusal(read_runtime_costs, path) == f"{path}: layouts[0].{name}: {expected}"


def test_the_examples_are_right(tmp_path):
    """What the changes above begin with."""
    (tmp_path / "samples").write_text(SAMPLES)
    (tmp_path / "costs").write_text(COSTS)
    assert len(read_samples(tmp_path / "samples").samples) == 1
    assert read_runtime_costs(tmp_path / "costs").operator_model == "fbgemm-cpu-epyc"
    assert json.loads(COSTS)["hardware"] == {"kind": "cpu"}
