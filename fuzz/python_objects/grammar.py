"""Right objects, made anew for each call: tables, tasks, plans, options, batches of data."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import neuroshard
from neuroshard import (
    DeviceCost,
    DeviceMove,
    Plan,
    PlanCost,
    PlanMoves,
    Shard,
    Table,
    TableStatistics,
    Task,
    Topology,
)

from .odd import Own

MODELS = ("analytic-a100-40gb", "analytic-a100-nvswitch")

#: Names that all tasks and plans have, so that those of different arguments fit together.
NAMES = ("user", "item", "ad", "shop")


def table(random: random.Random, name: str) -> Table:
    made = Table(
        name,
        random.choice((1, 10, 1000, 100_000)),
        random.choice((4, 16, 64)),
        random.choice((0.5, 1, 3.0, 20.0)),
    )
    use = random.randrange(5)
    if use == 0:
        made.reuse_histogram = [1.0] + [0.0] * 16
    elif use == 1:
        made.reuse_histogram = np.full(17, 1 / 17)
    elif use == 2:
        made.index_distribution = {"zipf_exponent": 1.1}
    elif use == 3:
        made.index_distribution = {"access_classes": [[1, 1.0]]}
    if random.random() < 0.2:
        made.data_type = "fp16"
    if random.random() < 0.2:
        made.row_access = [[0.5, 0.75], [1.0, 1.0]]
    if random.random() < 0.2:
        made.devices = random.choice(([0], (0, 1), np.array([1])))
    if random.random() < 0.2:
        made.allow = random.choice(([], ["columns"], ("columns", "rows"), ["replicas"]))
    if random.random() < 0.2:
        made.min_shard_columns = random.choice((0, 4, 64))
        made.extra_bytes_per_shard = random.choice((0, 100))
    return made


def topology(random: random.Random) -> Topology:
    devices = random.choice((1, 2, 2, 4))
    memory: Any = random.choice((1 << 30, "1GiB", "256MiB", [1 << 28] * devices))
    return Topology(
        devices,
        memory,
        local_world_size=random.choice((None, 1, devices)),
        interconnect=random.choice(("", "a100-nvswitch")),
    )


def task_object(random: random.Random) -> Task:
    number = random.choice((1, 2, 2, 3, 4))
    return Task(
        tables=[table(random, name) for name in NAMES[:number]],
        topology=topology(random),
        batch_size=random.choice((8, 4096, 65536)),
        optimizer=random.choice(("sgd", "rowwise_adagrad")),
    )


def task_dict(random: random.Random) -> dict[str, Any]:
    """As a task file has it, of plain dicts and lists."""
    made = task_object(random)
    content = dict(made.__dict__)
    content["tables"] = [each.to_dict() for each in made.tables]
    content["topology"] = made.topology.to_dict()
    if random.random() < 0.5:
        content["format"] = "neuroshard/task/1"
    return content


def task(random: random.Random) -> Any:
    """In any of the forms that functions take."""
    kind = random.randrange(8)
    if kind == 0:
        return "task.json"
    return task_dict(random) if kind < 4 else task_object(random)


def tasks(random: random.Random) -> Any:
    """One or several, as `compare` takes them."""
    kind = random.randrange(4)
    if kind == 0:
        return task(random)
    if kind == 1:
        return {"first": task(random), "second": "task.json"}
    return [task(random) for _ in range(random.choice((0, 1, 2)))]


def _cost(random: random.Random, devices: int) -> PlanCost:
    each = [
        DeviceCost(random.choice((0.5, 1.0)), 0.25, 0.25, 1 << 20, 64) for _ in range(devices)
    ]
    return PlanCost(max(device.total_ms for device in each), each)


def plan_object(random: random.Random) -> Plan:
    """A valid one, which nobody has searched for: every table whole, or in two pieces."""
    of = task_object(random)
    for each in of.tables:
        each.devices, each.allow = None, neuroshard.types.CUTS
        each.min_shard_columns = 0
    devices = of.topology.world_size
    shards = []
    for number, each in enumerate(of.tables):
        where = number % devices
        if random.random() < 0.3:
            half = each.embedding_dim // 2
            shards.append(Shard(each.name, 0, half, where))
            shards.append(Shard(each.name, half, half, (where + 1) % devices))
        else:
            shards.append(Shard(each.name, 0, each.embedding_dim, where))
    made = Plan(of, shards)
    if random.random() < 0.4:
        made.predicted = _cost(random, devices)
    if random.random() < 0.2:
        made.warnings = ["a warning"]
    if random.random() < 0.2:
        made.moves = PlanMoves(0.1, 1000, 50, 2.0, [DeviceMove(0, 1, 50, None)])
    return made


def plan(random: random.Random) -> Any:
    """In any of the forms that functions take."""
    kind = random.randrange(8)
    if kind <= 1:
        return "plan.json"
    if kind == 2:
        return Plan.read("plan.json")  # one that was searched for, with models and options
    made = plan_object(random)
    if kind == 3:
        content = made.to_dict()
        content["task"] = task_dict(random) if random.random() < 0.3 else made.task
        return content
    return made


def models(random: random.Random) -> Any:
    return random.choice((list(MODELS), list(MODELS), MODELS, MODELS[0], (), np.array(MODELS)))


def search_options(random: random.Random) -> dict[str, Any]:
    """With which a search is short, whichever one of them is damaged."""
    options: dict[str, Any] = {"steps": 50, "time_limit_seconds": 0.3}
    if random.random() < 0.3:
        options["seed"] = random.choice((0, 7, 2**64 - 1))
    if random.random() < 0.3:
        options["num_threads"] = random.choice((0, 1, 2))
    if random.random() < 0.3:
        options["cuts"] = random.choice(("columns", [], ["columns", "rows"], "none"))
    if random.random() < 0.3:
        options["improvement"] = random.choice(("thorough", "brief"))
    if random.random() < 0.3:
        options["pessimism"] = random.choice((0, 0.5, 1.0))
    if random.random() < 0.3:
        options["least_gain"] = random.choice((0, 0.01, np.float32(0.5)))
    return options


def table_statistics(random: random.Random) -> TableStatistics:
    return TableStatistics(
        random.choice((1.0, 50.0)),
        [1.0] + [0.0] * 16,
        batch_size=random.choice((8, 4096)),
        max_index=random.choice((0, 39)),
        accesses=random.choice(((), [(10, 0.75), (40, 1.0)])),
    )


_INTEGERS = ("int64", "int32", "uint8", "uint64", ">i4")


def jagged(random: random.Random, samples: int) -> Any:
    """(values, offsets) of one feature of a batch."""
    lengths = [random.randrange(4) for _ in range(samples)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(random.choice(_INTEGERS))
    rows = [random.choice((0, 1, 7, 250)) for _ in range(sum(lengths))]
    values: Any = np.array(rows, dtype=random.choice(_INTEGERS))
    if random.random() < 0.2:
        values = np.repeat(values, 2)[::2]  # not contiguous
    if random.random() < 0.2:
        return [values.tolist(), offsets.tolist()]
    return values, offsets


@dataclass
class JaggedParts:
    """What `KeyedJaggedTensor.to_dict` has of a feature; a tensor's way to NumPy included."""

    pair: Any

    def values(self) -> Any:
        return OnDevice(self._part(0))

    def offsets(self) -> Any:
        return OnDevice(self._part(1))

    def _part(self, which: int) -> Any:
        try:
            return self.pair[which]
        except (LookupError, TypeError) as error:
            raise Own("own pair") from error


@dataclass
class OnDevice:
    array: Any

    def cpu(self) -> Any:
        return self

    def numpy(self) -> Any:
        return self.array


@dataclass
class KeyedJagged:
    """As much of TorchRec's `KeyedJaggedTensor` as statistics look at."""

    samples: Any
    parts: dict[str, Any]

    def stride(self) -> Any:
        return self.samples

    def to_dict(self) -> dict[str, Any]:
        return self.parts


def batch(random: random.Random) -> Any:
    samples = random.choice((0, 4, 4, 7))
    pairs = {name: jagged(random, samples) for name in ("user_id", "item_id")}
    if random.random() < 0.2:
        return KeyedJagged(samples, {name: JaggedParts(pair) for name, pair in pairs.items()})
    return pairs


def features(random: random.Random) -> Any:
    return random.choice(
        (
            {"user": "user_id"},
            {"user": ["user_id"], "item": ("item_id", "user_id")},
            {"user": "user_id", "none": []},
        )
    )


def path(random: random.Random, name: str) -> Any:
    """A file's path in any of the forms that functions take."""
    return random.choice((name, Path(name), f"./{name}", name.encode()))
