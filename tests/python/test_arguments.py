"""Callers' arguments: names, sizes, times, paths; and the places of faults in them."""

import dataclasses
import math
import re
from collections import deque
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import neuroshard
from neuroshard import InputError, Plan, PlanCost, Shard, Table, TableStatistics, Task, Topology
from neuroshard.arguments import names_of, seconds_of

ANALYTIC = ["analytic-a100-40gb", "analytic-a100-nvswitch"]


def refusal(function, *arguments, **named):
    with pytest.raises(InputError) as error:
        function(*arguments, **named)
    return str(error.value)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("greedy-size", ["greedy-size"]),
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        ((), []),
        (np.array(["a", "b"]), ["a", "b"]),
        ({"a": 1, "b": 2}.values(), None),
        (Path("folder/mine.safetensors"), ["folder/mine.safetensors"]),
        ([Path("mine.safetensors"), "b"], ["mine.safetensors", "b"]),
    ],
)
def test_a_name_is_a_list_of_one(value, names):
    if names is None:
        assert "algorithms[0]: expected a name, got int" in refusal(names_of, value, "algorithms")
    else:
        assert names_of(value, "algorithms") == names


@pytest.mark.parametrize("value", [None, 7, b"name", {"a": "b"}, {"a", "b"}, 2.5])
def test_what_is_no_list_of_names(value):
    text = refusal(names_of, value, "models")
    kind = "None" if value is None else type(value).__name__
    assert text == f"models: expected a name or a list of names, got {kind}"


def test_one_name_where_functions_take_several(task):
    found = neuroshard.compare(task, algorithms="greedy-size", models=ANALYTIC)
    assert [(entry.task, entry.algorithm) for entry in found.entries] == [("0", "greedy-size")]
    with pytest.raises(InputError, match='"no-such-model"'):  # whole, not letter by letter
        neuroshard.plan(task, models="no-such-model")
    with pytest.raises(InputError, match=r"models\[1\]: expected a name, got None"):
        neuroshard.plan(task, models=["a", None])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"pooling_factor": math.nan}, "pooling_factor: expected a finite number, got nan"),
        ({"pooling_factor": -math.inf}, "pooling_factor: expected a finite number, got -inf"),
        (
            {"pooling_factor": np.float32("nan")},
            "pooling_factor: expected a finite number, got nan",
        ),
        (
            {"reuse_histogram": [0.5, math.nan], "index_distribution": None},
            "reuse_histogram[1]: expected a finite number, got nan",
        ),
        (
            {"reuse_histogram": np.array([0.5, math.nan]), "index_distribution": None},
            "reuse_histogram[1]: expected a finite number, got nan",
        ),
        (
            {"index_distribution": {"access_classes": [[10, 0.5], [20, math.inf]]}},
            "index_distribution.access_classes[1][1]: expected a finite number, got inf",
        ),
        ({"data_type": b"fp32"}, "data_type: expected a number, text, a list or a dict, got bytes"),
        (
            {"num_embeddings": 1j},
            "num_embeddings: expected a number, text, a list or a dict, got complex",
        ),
        (
            {"reuse_histogram": TableStatistics(1.0, [1.0], 8)},
            "reuse_histogram: expected a number, text, a list or a dict, got TableStatistics",
        ),
        (
            {"index_distribution": {"zipf_exponent": {1.5}}},
            "index_distribution.zipf_exponent: expected a number, text, a list or a dict, got set",
        ),
        (
            {"index_distribution": {(1, 2): 3}},
            "index_distribution: expected names of fields, got (1, 2)",
        ),
        ({"name": "\ud800"}, r"name: expected Unicode text, got '\ud800'"),
    ],
)
def test_faults_are_named_by_place(task, change, text):
    task.tables = [task.tables[1]] * 3 + [dataclasses.replace(task.tables[0], **change)]
    place = f"tables[3].{text}"
    assert refusal(neuroshard.plan, task) == f"task: {place}"
    assert refusal(neuroshard.plan, {**task.to_dict()}) == f"task: {place}"
    assert refusal(neuroshard.compare, {"mine": task}) == f"mine: {place}"
    assert refusal(neuroshard.price, Plan(task, [])) == f"plan: task.{place}"
    assert refusal(task.write, "never-written.json") == f"task: {place}"
    assert not Path("never-written.json").exists()


def test_emoji_are_fine():
    task = Task([Table("\U0001f600", 10, 4, 1.0)], Topology(1, 1 << 30), 8)
    assert Task.from_dict(task.to_dict()).tables[0].name == "\U0001f600"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"batch_size": math.nan}, "batch_size: expected a finite number, got nan"),
        ({"tables": Table("t", 1, 4, 1)}, "tables: expected a list of Tables or dicts, got Table"),
        ({"tables": "user"}, "tables: expected a list of Tables or dicts, got str"),
        ({"tables": {"name": "t"}}, "tables: expected a list of Tables or dicts, got dict"),
        ({"tables": None}, "tables: expected a list of Tables or dicts, got None"),
        ({"tables": [Topology(1, 1)]}, "tables[0]: expected a Table or a dict, got Topology"),
        ({"tables": ["user"]}, "tables[0]: expected a Table or a dict, got str"),
        ({"topology": Table("t", 1, 4, 1.0)}, "topology: expected a Topology or a dict, got Table"),
        ({"topology": 4}, "topology: expected a Topology or a dict, got int"),
    ],
)
def test_wrong_kinds_in_a_task(task, change, text):
    assert refusal(neuroshard.plan, dataclasses.replace(task, **change)) == f"task: {text}"
    assert refusal(neuroshard.plan, {**task.to_dict(), **change}) == f"task: {text}"
    assert refusal(neuroshard.price, Plan(dataclasses.replace(task, **change), [])) == (
        f"plan: task.{text}"
    )


def test_wrong_kinds_in_a_plan(task):
    for change, text in (
        ({"task": 7}, "task: expected a Task or a dict, got int"),
        ({"shards": [1]}, "shards[0]: expected a Shard or a dict, got int"),
        ({"shards": Shard("a", 0, 4, 0)}, "shards: expected a list of Shards or dicts, got Shard"),
        ({"predicted": 1.5}, "predicted: expected a PlanCost or a dict, got float"),
        (
            {"predicted": PlanCost(1.5, [task])},
            "predicted.devices[0]: expected a DeviceCost or a dict, got Task",
        ),
        ({"search": {"wall_ms": math.inf}}, "search.wall_ms: expected a finite number, got inf"),
    ):
        plan = dataclasses.replace(Plan(task, []), **change)
        assert refusal(plan.violations) == f"plan: {text}"
    assert refusal(neuroshard.plan, Plan(task, [])).startswith("task: expected a Task, a dict or")
    assert refusal(neuroshard.price, task).startswith("plan: expected a Plan, a dict or")
    assert refusal(neuroshard.compare, 7) == "tasks: expected a list or a dict of tasks, got int"


def test_a_value_that_contains_itself(task):
    ring = []
    ring.append(ring)
    task.tables[0].index_distribution = {"access_classes": ring}
    text = refusal(neuroshard.plan, task)
    assert text.startswith("task: tables[0].index_distribution.access_classes[0][0]")
    assert text.endswith("expected at most 100 levels of lists and dicts, got more")


def test_other_lists_and_dicts_are_welcome(task):
    expected = Task.from_dict(task.to_dict())
    table = task.tables[0]
    table.index_distribution = MappingProxyType({"access_classes": deque([(10, 1.0)])})
    read = Task.from_dict(MappingProxyType(task.to_dict() | {"tables": tuple(task.tables)}))
    assert read.tables[0].index_distribution == {"access_classes": [[10, 1.0]]}
    assert read.tables[1] == expected.tables[1]


def test_sizes_as_text(task):
    for memory, expected in (
        ("64MiB", 64 << 20),
        (["64MiB", 32 << 20], [64 << 20, 32 << 20]),
        (("1.5GiB", "80GB"), [3 << 29, 80 * 10**9]),
    ):
        task.topology = Topology(2, memory, local_world_size=1)
        assert Task.from_dict(task.to_dict()).topology.memory_bytes == expected
        task.topology = {"world_size": 2, "memory_bytes": memory}
        assert Task.from_dict(task.to_dict()).topology.memory_bytes == expected
    for memory, place, text in (
        ("2 GB", "memory_bytes", '"2 GB"'),
        (["1GiB", "lots"], "memory_bytes[1]", '"lots"'),
        ("", "memory_bytes", '""'),
    ):
        message = f"topology.{place}: expected a size such as 80GiB"
        for topology in (Topology(2, memory), {"world_size": 2, "memory_bytes": memory}):
            task.topology = topology
            assert refusal(neuroshard.plan, task).startswith(f"task: {message}")
            assert refusal(neuroshard.plan, task).endswith(f"got {text}")
            assert refusal(neuroshard.plan, dict(task.__dict__)).startswith(f"task: {message}")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("1s", 1.0), ("500ms", 0.5), ("2min", 120.0), (3, 3.0), (0.25, 0.25), (np.float32(0.5), 0.5), (1e308, 1e308)],
)
def test_times(value, seconds):
    assert seconds_of(value, "time_limit") == seconds


@pytest.mark.parametrize(
    "value",
    [0, -1.0, math.nan, math.inf, -math.inf, np.inf, "1", "0s", "infs", "1e400s", "", "soon", None]
    + [[1], True],
)
def test_times_that_mean_nothing(value):
    assert refusal(seconds_of, value, "time_limit").startswith("time_limit: expected ")


def test_a_path_is_as_good_as_a_task_or_plan(task, golden, tmp_path):
    path = tmp_path / "task.json"
    task.write(path)
    found = neuroshard.plan(path, models=ANALYTIC, steps=100)
    assert found.shards == neuroshard.plan(task, models=ANALYTIC, steps=100).shards
    assert neuroshard.reuse_histograms(str(path)) == neuroshard.reuse_histograms(task)
    compared = neuroshard.compare([path], algorithms="greedy-size", models=ANALYTIC)
    assert compared.entries[0].task == str(path)
    found.write(tmp_path / "plan.json")
    assert neuroshard.price(tmp_path / "plan.json", models=ANALYTIC).predicted == found.predicted
    missing = str(tmp_path / "missing.json")
    for function in (neuroshard.plan, neuroshard.price, neuroshard.compare, neuroshard.evaluate):
        assert refusal(function, missing).startswith(f"{missing}: ")
    with pytest.raises(InputError, match=re.escape("plan.json")):
        neuroshard.plan(golden / "plan.json")
