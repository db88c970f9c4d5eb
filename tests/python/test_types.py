"""Tasks and plans: files, dicts and NumPy arrays in and out, errors with the library's text."""

import dataclasses
import subprocess

import numpy as np
import pytest

import neuroshard
from neuroshard import (
    EXECUTABLE,
    DeviceCost,
    InputError,
    Plan,
    PlanCost,
    Shard,
    Table,
    Task,
    Topology,
)


def test_files_are_read_and_written_to_the_byte(golden, tmp_path):
    for kind, name in ((Task, "task.json"), (Plan, "plan.json")):
        kind.read(golden / name).write(tmp_path / name)
        assert (tmp_path / name).read_bytes() == (golden / name).read_bytes()


def test_a_dict_is_as_good_as_dataclasses(task):
    as_dict = {
        "batch_size": 4096,
        "optimizer": "rowwise_adagrad",
        "tables": [
            {
                "name": "user",
                "num_embeddings": 100_000,
                "embedding_dim": 64,
                "pooling_factor": 3.0,
                "index_distribution": {"zipf_exponent": 1.1},
            },
            dataclasses.asdict(task.tables[1]) | {"data_type": "fp32"},
        ],
        "topology": {"world_size": 2, "local_world_size": 1, "memory_bytes": 64 << 20},
    }
    optional = ("reuse_histogram", "index_distribution", "row_access", "devices", "same_device_as")
    for name in optional:
        del as_dict["tables"][1][name]
    assert Task.from_dict(as_dict) == Task.from_dict(task.to_dict())
    assert neuroshard.plan(as_dict).shards == neuroshard.plan(task).shards


def test_numpy_numbers_and_arrays(task):
    histogram = np.zeros(neuroshard.REUSE_BINS)
    histogram[3] = 1.0
    table = Table("t", np.int64(1000), np.int32(16), np.float64(2.5), reuse_histogram=histogram)
    topology = Topology(2, np.array([1 << 20, 2 << 20]), local_world_size=1)
    read = Task.from_dict(Task([table], topology, np.int64(4096)).to_dict())
    assert read.tables[0].num_embeddings == 1000
    assert read.tables[0].reuse_histogram == histogram.tolist()
    assert read.topology.memory_bytes == [1 << 20, 2 << 20]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"embedding_dim": 0},
            "task: tables[0].embedding_dim: expected an integer between 1 and 65536, got 0",
        ),
        (
            {"data_type": "fp8"},
            'task: tables[0].data_type: expected "fp32" or "fp16", got "fp8"',
        ),
        (
            {"min_shard_columns": -1},
            "task: tables[0].min_shard_columns: expected an integer between 0 and 65536, got -1",
        ),
        (
            {"devices": [0, 2]},
            "task: tables[0].devices[1]: expected a device from 0 to 1, got 2",
        ),
        (
            {"same_device_as": "user"},
            "task: tables[0].same_device_as: expected the name of another table of the task, "
            "got \"user\", the table's own",
        ),
        (
            {"reuse_histogram": [0.5] * 17},
            "task: tables[0].reuse_histogram: expected 17 shares that add up to 1, "
            "got a sum of 8.5",
        ),
    ],
)
def test_errors_name_place_expected_and_actual(task, change, text):
    if "reuse_histogram" in change:
        change = change | {"index_distribution": None}
    task.tables = [dataclasses.replace(task.tables[0], **change)]
    with pytest.raises(InputError) as error:
        neuroshard.plan(task)
    assert str(error.value) == text
    assert isinstance(error.value, ValueError)
    assert error.value.exit_code == 2


def test_values_that_json_does_not_have(task):
    task.batch_size = float("nan")
    with pytest.raises(InputError, match="^task: batch_size: expected a finite number, got nan$"):
        neuroshard.plan(task)
    task.batch_size = object()
    with pytest.raises(InputError, match="^task: batch_size: expected a number, .* got object$"):
        neuroshard.plan(task)
    with pytest.raises(InputError, match="expected a Task, a dict or the path .*, got int"):
        neuroshard.plan(7)


def test_the_same_text_as_the_command_line(golden, tmp_path):
    path = tmp_path / "broken.json"
    path.write_text((golden / "task.json").read_text().replace("65536", "-1", 1))
    run = subprocess.run([EXECUTABLE, "plan", path], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    with pytest.raises(InputError) as error:
        Task.read(path)
    assert run.stderr == f"neuroshard: {error.value}\n"
    with pytest.raises(InputError, match=r"missing\.json"):
        Task.read(tmp_path / "missing.json")


def test_violations_of_a_plan(task):
    plan = Plan(task, [Shard("user", 0, 64, 0), Shard("item", 0, 16, 1)])
    assert plan.violations() == ['table "item": columns 16 to 31 are on no device']
    plan.shards = [*plan.shards, Shard("item", 16, 16, 0)]
    assert plan.violations() == []


def test_pinned_tables(task):
    user, item = task.tables
    task.tables = [
        dataclasses.replace(user, devices=[1]),
        dataclasses.replace(item, same_device_as="user"),
    ]
    read = Task.from_dict(task.to_dict())
    assert read.tables[0].devices == [1]
    assert read.tables[1].same_device_as == "user"
    assert Task.from_dict(read.to_dict()) == read
    plan = neuroshard.plan(task)
    assert [shard.device for shard in plan.shards] == [1, 1]
    assert plan.violations() == []
    assert neuroshard.plan_like(plan).shards == plan.shards
    plan.shards = [Shard("user", 0, 64, 0), Shard("item", 0, 32, 0)]
    assert plan.violations() == [
        'shards[0].device: expected "user" on device 1, got 0',
        'shards[1].device: expected "item" on device 1, got 0',
    ]


def test_short_reprs(task):
    dlrm = next(w for w in neuroshard.list_workloads() if w.name == "dlrm-2021")
    big = Task(dlrm.tables(), Topology(16, "64GiB", local_world_size=8), 65536, "rowwise_adagrad")
    assert repr(big) == "<Task: 856 tables, 16 devices, batch size 65536, rowwise_adagrad>"
    cost = PlanCost(2.5, [DeviceCost(1.0, 0.5, 0.5, 0, 0), DeviceCost(1.5, 0.5, 0.5, 0, 0)])
    assert repr(cost) == "<PlanCost: 2.500 ms, device 1 of 2 is the slowest>"
    assert repr(PlanCost(0.0, [])) == "<PlanCost: 0.000 ms>"
    plan = Plan(big, [Shard("t0", 0, 64, 0)])
    start = "<Plan: 856 tables in 1 shard on 16 devices, batch size 65536"
    assert repr(plan) == start + ">"
    plan.predicted = cost
    assert repr(plan) == start + ", predicted cost 2.500 ms>"
    # Whatever is wrong inside, a repr is there to be looked at.
    assert repr(Task(None, None, None)) == "<Task: tables, devices, batch size None, sgd>"
    assert repr(Plan(None, None)) == "<Plan: tables in shards on devices, batch size None>"
    as_dict = {"tables": [1], "topology": {"world_size": 1}, "batch_size": 8}
    assert repr(Plan(as_dict, [])) == "<Plan: 1 table in 0 shards on 1 device, batch size 8>"
    assert repr(Table("t", 10, 4, 1.5)) == (
        "Table(name='t', num_embeddings=10, embedding_dim=4, pooling_factor=1.5)"
    )
    table = Table("t", 10, 4, 1.5, "fp16", reuse_histogram=np.full(17, 1 / 17), num_features=2)
    assert repr(table) == (
        "Table(name='t', num_embeddings=10, embedding_dim=4, pooling_factor=1.5, "
        "data_type='fp16', reuse_histogram=<17 shares>, num_features=2)"
    )
